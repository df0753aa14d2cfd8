"""What is asked back: after its delay, by entry or all, and not over a new subscription."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.consumer_options import Delays
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def fill(world: PulsarWorld, kind: str, count: int, **options: Any) -> ConsumerEngine:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type=kind, **options)
    world.sender(world.producer(client, "t", batching=False)).send_many([b"%d" % number for number in range(count)])
    world.world.run()
    return consumer


def bodies(world: PulsarWorld, consumer: ConsumerEngine) -> list[bytes]:
    return [message.body for message in world.face(consumer)._take_many(10_000)]


def test_refused_entries_come_back_at_their_time(world: PulsarWorld) -> None:
    consumer = fill(world, "shared", 4, nack_delay=10.0)
    face = world.face(consumer)
    messages = face.receive_many(10)
    face.nack(messages[3])
    world.world.advance(2)
    face.nack([messages[1], messages[1].message_id, messages[3]])
    assert consumer.diagnose()["nacks_waiting"] == 2
    world.world.advance(7.9)
    assert bodies(world, consumer) == []
    world.world.advance(0.2)
    assert bodies(world, consumer) == [b"3"]
    world.world.advance(2)
    assert bodies(world, consumer) == [b"1"]
    assert consumer.diagnose()["nacks_waiting"] == 0


def test_each_refusal_is_answered_later(world: PulsarWorld) -> None:
    """By how often it came already, not by how often it was refused here."""
    consumer = fill(world, "shared", 1, nack_delay=Delays(first=1, limit=3))
    face, taken = world.face(consumer), []
    for _ in range(4):
        face.nack(face.receive(10))
        taken.append(world.world.mono)
    assert [later - before for before, later in itertools.pairwise(taken)] == pytest.approx([1, 2, 3])


def test_a_shorter_delay_is_not_held_up_by_a_longer_one(world: PulsarWorld) -> None:
    consumer = fill(world, "shared", 2)
    messages = world.face(consumer).receive_many(10)
    with consumer.client.driver.enter():
        consumer.redelivery.nack(messages[0].entry.ledger, messages[0].entry.entry, 60.0)
        consumer.redelivery.nack(messages[1].entry.ledger, messages[1].entry.entry, 1.0)
    world.world.advance(1.1)
    assert bodies(world, consumer) == [b"1"]


def test_refused_twice_the_earlier_time_counts(world: PulsarWorld) -> None:
    consumer = fill(world, "shared", 1)
    place = world.face(consumer).receive_many(10)[0].entry

    def refuse(*delays: float) -> None:
        with consumer.client.driver.enter():
            for delay in delays:
                consumer.redelivery.nack(place.ledger, place.entry, delay)

    refuse(10.0, 1.0, 5.0)
    assert consumer.diagnose()["nacks_waiting"] == 1
    world.world.advance(1.1)
    assert bodies(world, consumer) == [b"0"]
    refuse(20.0)
    world.world.advance(15)  # the times that did not count are over
    assert bodies(world, consumer) == []
    world.world.advance(5.1)
    assert bodies(world, consumer) == [b"0"]


def test_where_entries_cannot_be_chosen_all_come_back(world: PulsarWorld) -> None:
    consumer = fill(world, "exclusive", 3, nack_delay=1.0)
    face = world.face(consumer)
    messages = face.receive_many(10)
    face.ack(messages[0])
    face.nack(messages[1])
    world.world.advance(1.1)
    assert bodies(world, consumer) == [b"1", b"2"]


def test_a_new_subscription_brings_all_back_by_itself(world: PulsarWorld) -> None:
    consumer = fill(world, "shared", 1, nack_delay=1.0)
    face = world.face(consumer)
    face.nack(face.receive(1))
    world.cut()
    world.world.advance(5)
    messages = face.receive_many(10)
    assert [(message.body, message.redeliveries) for message in messages] == [(b"0", 0)]
    world.world.advance(5)
    assert bodies(world, consumer) == []


def test_many_are_asked_in_portions(world: PulsarWorld) -> None:
    consumer = fill(world, "shared", 1500, nack_delay=1.0, receiver_queue=2000)
    face = world.face(consumer)
    face.nack(face.receive_many(2000))
    world.world.advance(1.1)
    assert len(bodies(world, consumer)) == 1500
    assert world.control.count("REDELIVER_UNACKNOWLEDGED_MESSAGES") == 2


def test_what_was_acknowledged_a_moment_ago_does_not_come_again(codec: Any) -> None:
    """Of a batch all but one acknowledged, that one refused: its delay ends before the acknowledgements are told."""
    world = PulsarWorld(codec)
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", nack_delay=0.05, ack_grouping=10)
    world.sender(world.producer(client, "t")).send_many([b"%d" % number for number in range(10)])
    world.world.run()
    face = world.face(consumer)
    messages = face._take_many(10)
    face.ack(messages[1:])
    face.nack(messages[0])
    world.world.advance(1)
    assert [message.body for message in face._take_many(10)] == [b"0"]
    world.settled(consumer)


@pytest.mark.parametrize("batching", [True, False])
@pytest.mark.parametrize("queue", [1, 4, 1000])
def test_what_left_before_everything_was_asked_back_is_not_taken_twice(codec: Any, batching: bool, queue: int) -> None:
    """Race: the broker sends, we ask everything back, what it sent arrives, then all of it comes once more."""
    world = PulsarWorld(codec)
    world.sender(world.producer(world.client(), "t", batching=batching)).send_many([b"%d" % n for n in range(6)])
    made = world.consumer(world.client(), "t", "s", start="earliest", receiver_queue=queue)
    face = world.face(made)
    for _ in range(3):
        assert face.receive(5).body == b"0"
        with made.client.driver.enter():
            made.redeliver()
            made.redeliver()
    assert [face.receive(5).body for _ in range(6)] == [b"%d" % n for n in range(6)]
    assert not made.mailbox.take()
    assert made.epoch == 6
    world.settled(made)
    world.cut()
    world.world.advance(5)
    assert [face.receive(5).body for _ in range(6)] == [b"%d" % n for n in range(6)]
    world.settled(made)

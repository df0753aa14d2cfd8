"""Acknowledgements: grouped, kept while away, told in parts of batches, confirmed."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ClosedError, DeadlineError, LinkError
from mqclient.pulsar.codes import BrokerError
from mqclient.pulsar.consumer import ConsumerEngine
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def fill(world: PulsarWorld, count: int, batching: bool = True, **options: Any) -> tuple[ConsumerEngine, list[Any]]:
    """A consumer who took that many messages."""
    client = world.client()
    consumer = world.consumer(client, "t", "s", **options)
    producer = world.producer(client, "t", batching=batching)
    world.sender(producer).send_many([b"%d" % number for number in range(count)])
    world.world.run()
    return consumer, world.face(consumer).receive_many(count)


def backlog(world: PulsarWorld) -> int:
    return world.door.topics.make("t").subscriptions["s"].backlog


def test_a_group_is_told_after_its_time(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 3, batching=False, ack_grouping=0.1)
    face = world.face(consumer)
    for message in messages:
        face.ack(message)
    world.world.advance(0.09)
    assert (backlog(world), world.control.count("ACK")) == (3, 0)
    world.world.advance(0.02)
    assert (backlog(world), world.control.count("ACK")) == (0, 1)


@pytest.mark.parametrize("options", [{}, {"ack_timeout": 60}])
def test_what_stands_before_a_wrong_one_is_told(world: PulsarWorld, options: dict[str, Any]) -> None:
    """In its time: nobody has to acknowledge anything else."""
    consumer, messages = fill(world, 3, batching=False, ack_grouping=0.1, **options)
    wrong: Any = 5
    with pytest.raises(TypeError, match="a message, its id, or a list of these is needed here, not int"):
        world.face(consumer).ack([messages[0], wrong, messages[1]])
    world.world.advance(0.2)
    assert backlog(world) == 2


@pytest.mark.parametrize("wrong", [None, "1:0:-1", 5, {1}, [None], ["1:0:-1"]])
def test_what_is_no_message_is_named(world: PulsarWorld, wrong: Any) -> None:
    consumer, _ = fill(world, 1)
    face = world.face(consumer)
    for many in (face.ack, face.ack_confirmed, face.nack):
        with pytest.raises(TypeError, match="a message, its id, or a list of these"):
            many(wrong)
    with pytest.raises(TypeError, match="one message or its id"):
        face.ack_cumulative(wrong)
    with pytest.raises(TypeError, match="one message or its id"):
        face.retry_later(wrong, 1.0)


def test_without_grouping_each_is_told(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 3, batching=False, ack_grouping=0)
    for message in messages:
        world.face(consumer).ack(message)
    world.world.run()
    assert (backlog(world), world.control.count("ACK")) == (0, 3)


def test_a_full_group_is_told_at_once(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 1000, batching=False, ack_grouping=5.0)
    world.face(consumer).ack(messages[:999])
    world.world.run()
    assert world.control.count("ACK") == 0
    world.face(consumer).ack(messages[999])
    world.world.run()
    assert (backlog(world), world.control.count("ACK")) == (0, 1)


@pytest.mark.parametrize("batch_index", [True, False])
def test_a_part_of_a_batch(world: PulsarWorld, batch_index: bool) -> None:
    consumer, messages = fill(world, 5, type="shared", batch_index_ack=batch_index)
    face = world.face(consumer)
    face.ack(messages[1:4])
    world.world.advance(1)
    world.cut()
    world.world.advance(5)
    expected = [b"0", b"4"] if batch_index else [b"0", b"1", b"2", b"3", b"4"]
    again = face.receive_many(10)
    assert [message.body for message in again] == expected
    world.settled(consumer)
    face.ack(again)
    world.world.advance(1)
    assert backlog(world) == 0


def test_a_batch_acknowledged_by_parts_is_told_whole(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 5, batch_index_ack=False)
    for message in messages:
        world.face(consumer).ack(message.message_id)
    world.world.advance(1)
    assert backlog(world) == 0


def test_cumulative_only_goes_forward(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 10, batching=False)
    face = world.face(consumer)
    face.ack_cumulative(messages[6])
    face.ack_cumulative(messages[2])
    world.world.advance(1)
    assert (backlog(world), world.control.count("ACK")) == (3, 1)


def test_confirmed(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 3, batching=False)
    face = world.face(consumer)
    face.ack(messages[0])
    face.ack_confirmed(messages[1])
    assert (backlog(world), world.control.count("ACK")) == (1, 1)  # what was grouped went along
    face.ack_confirmed(messages[1])  # nothing to ask


@pytest.mark.parametrize("moves", ["the connection breaks", "the topic is unloaded"])
@pytest.mark.parametrize("when", ["before", "while the receipt is waited for"])
def test_confirmed_while_the_topic_moves(world: PulsarWorld, moves: str, when: str) -> None:
    consumer, messages = fill(world, 2, batching=False)
    face = world.face(consumer)

    def move() -> None:
        world.cut() if moves == "the connection breaks" else world.door.unload("t")

    if when == "before":
        move()
        world.world.run()
        assert consumer.connection is None
    else:
        world.control.drop("ACK")
        world.world.at(world.world.mono + 1, move)
    face.ack_confirmed(messages)
    assert backlog(world) == 0
    assert face.receive_many(9, timeout=1) == []


def test_not_confirmed_in_time(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 1, batching=False)
    world.control.drop("SUBSCRIBE", times=9)
    world.cut()
    world.world.run()
    before = world.world.mono
    with pytest.raises(LinkError, match="not connected to the broker"):
        world.face(consumer).ack_confirmed(messages)
    assert world.world.mono - before == pytest.approx(30)
    with pytest.raises(DeadlineError):
        world.face(consumer).ack_confirmed(messages, timeout=3)


def test_not_confirmed_after_a_seek(world: PulsarWorld) -> None:
    """What is before the new place is to come again."""
    consumer, messages = fill(world, 2, batching=False)
    world.control.drop("ACK")
    confirmed = world.ask(consumer.client, lambda: consumer.ack_confirmed(messages))
    world.face(consumer).seek("earliest")
    with pytest.raises(LinkError, match="moved before"):
        world.world.result(confirmed)
    assert [message.body for message in world.face(consumer).receive_many(2)] == [b"0", b"1"]


def test_not_confirmed_after_the_end(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 2, batching=False)
    world.cut()
    world.world.run()
    confirmed = world.ask(consumer.client, lambda: consumer.ack_confirmed(messages))
    world.face(consumer).close()
    with pytest.raises(ClosedError):
        world.world.result(confirmed)


def test_the_brokers_refusal_is_told(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 1, batching=False)
    place = world.at_broker(consumer).session.consumers
    kept = dict(place)
    place.clear()
    with pytest.raises(BrokerError, match="not found"):
        world.face(consumer).ack_confirmed(messages[0])
    place.update(kept)


def test_a_seek_forgets_what_was_acknowledged(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 3)
    face = world.face(consumer)
    face.ack(messages)
    face.seek(messages[0].message_id)
    world.world.run()
    assert [message.body for message in face.receive_many(10)] == [b"1", b"2"]


def test_a_full_group_with_its_timer_armed_is_told_once(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 1001, batching=False, ack_grouping=1.0, receiver_queue=2000)
    face = world.face(consumer)
    for message in messages:
        face.ack(message)
    world.world.advance(2)
    assert (backlog(world), world.control.count("ACK")) == (0, 2)


def test_what_cannot_be_read_is_told_with_the_reason(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 1, batching=False)
    with consumer.client.driver.enter():
        consumer.acks.refuse(messages[0].entry, 2)
    world.world.run()
    assert backlog(world) == 0
    world.cut()
    world.world.run()
    with consumer.client.driver.enter():
        consumer.acks.refuse(messages[0].entry, 2)  # nobody there to tell
    assert consumer.connection is None


def test_a_closed_consumer_has_no_timer_left(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 1, batching=False, ack_grouping=5.0)
    face = world.face(consumer)
    face.ack(messages[0])
    face.close()
    assert (backlog(world), world.control.count("ACK")) == (0, 1)
    world.world.advance(10)
    assert world.control.count("ACK") == 1


def test_with_an_ack_timeout_what_is_acknowledged_is_not_asked_back(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 6, batching=False, ack_timeout=2, ack_grouping=0.1)
    face = world.face(consumer)
    face.ack(messages[0])
    face.ack(messages[1:3])
    face.ack_cumulative(messages[4])
    assert consumer.unacked is not None
    assert len(consumer.unacked) == 1
    world.world.advance(5)
    assert backlog(world) == 1
    assert world.take(consumer) == [b"5"]


@pytest.mark.parametrize("options", [{}, {"ack_grouping": 0}, {"ack_timeout": 60}])
def test_what_is_acknowledged_after_the_end_is_told_to_nobody_and_that_is_said(
    world: PulsarWorld, options: dict[str, Any]
) -> None:
    consumer, messages = fill(world, 4, batching=False, **options)
    face = world.face(consumer)
    face.ack(messages[0])
    face.close()
    assert backlog(world) == 3
    for again in range(2):
        with pytest.raises(ClosedError, match="closed"):
            face.ack(messages[1])
        with pytest.raises(ClosedError, match="closed"):
            face.ack(messages[2:])
        with pytest.raises(ClosedError, match="closed"):
            face.ack_confirmed(messages[1])
        assert backlog(world) == 3, again


def test_what_is_acknowledged_up_to_a_message_after_the_end_too(world: PulsarWorld) -> None:
    consumer, messages = fill(world, 2, batching=False)
    face = world.face(consumer)
    face.close()
    for _ in range(2):
        with pytest.raises(ClosedError, match="closed"):
            face.ack_cumulative(messages[1])
    assert backlog(world) == 2

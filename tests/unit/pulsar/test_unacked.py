"""What is taken and not acknowledged in time comes again: no sooner, no later, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.consumer import ConsumerEngine
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def take(world: PulsarWorld, consumer: ConsumerEngine, limit: int = 1000) -> list[Any]:
    world.world.run()
    return world.face(consumer)._take_many(limit)


def bodies(messages: list[Any]) -> list[bytes]:
    return [message.body for message in messages]


def test_what_is_not_acknowledged_in_time_comes_again(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", ack_timeout=10)
    world.sender(world.producer(client, "t", batching=False)).send_many([b"0", b"1", b"2", b"3"])
    world.world.advance(100)  # what waits in the queue is not the user's yet
    first = take(world, consumer)
    face = world.face(consumer)
    face.ack(first[1])
    face.ack(first[2].message_id)
    face.nack(first[3])  # asked back already, after another delay
    world.world.advance(9.9)
    assert take(world, consumer) == []
    world.world.advance(0.2)
    again = take(world, consumer)
    assert [(message.body, message.redeliveries) for message in again] == [(b"0", 1)]
    face.ack(again)
    world.world.advance(60)
    assert bodies(take(world, consumer)) == [b"3"]
    world.settled(consumer)


def test_of_a_batch_what_is_left(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", ack_timeout=10)
    world.sender(world.producer(client, "t")).send_many([b"0", b"1", b"2"])
    messages = take(world, consumer)
    world.face(consumer).ack(messages[::2])
    world.world.advance(11)
    again = take(world, consumer)
    assert bodies(again) == [b"1"]
    world.face(consumer).ack(again)
    world.world.advance(30)
    assert take(world, consumer) == []
    assert consumer.unacked is not None
    assert len(consumer.unacked) == 0


def test_a_batch_taken_slowly_has_its_time(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", ack_timeout=10)
    world.sender(world.producer(client, "t")).send_many([b"0", b"1", b"2"])
    slow: list[Any] = []
    for _ in range(3):
        slow += take(world, consumer, 1)
        world.world.advance(8)
    assert bodies(slow) == [b"0", b"1", b"2"]
    world.face(consumer).ack(slow)
    world.world.advance(30)
    assert take(world, consumer) == []


def test_in_order_everything_comes_again(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", ack_timeout=10)
    world.sender(world.producer(client, "t", batching=False)).send_many([b"0", b"1", b"2"])
    messages = take(world, consumer)
    world.face(consumer).ack_cumulative(messages[0])
    world.world.advance(11)
    assert bodies(take(world, consumer)) == [b"1", b"2"]
    world.settled(consumer)


def test_cumulative_inside_a_batch(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", ack_timeout=10)
    sender = world.sender(world.producer(client, "t"))
    sender.send_many([b"0", b"1"])
    sender.send_many([b"2", b"3", b"4"])
    messages = take(world, consumer)
    face = world.face(consumer)
    face.ack_cumulative(messages[3])
    assert consumer.unacked is not None
    assert len(consumer.unacked) == 1
    world.world.advance(11)
    assert bodies(take(world, consumer)) == [b"4"]
    face.redeliver()  # forgets what was tracked: all of it comes again anyhow
    assert len(consumer.unacked) == 0
    assert bodies(take(world, consumer)) == [b"4"]


def test_a_lost_connection_forgets(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", ack_timeout=10)
    world.sender(world.producer(client, "t")).send(b"0")
    assert bodies(take(world, consumer)) == [b"0"]
    world.cut()
    world.world.advance(5)
    again = take(world, consumer)
    assert bodies(again) == [b"0"]
    world.world.advance(8)  # the old time must not count for the new delivery
    assert take(world, consumer) == []
    world.face(consumer).ack(again)
    world.world.advance(30)
    assert take(world, consumer) == []

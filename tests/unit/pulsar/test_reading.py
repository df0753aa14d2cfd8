"""Whether there is more to read, and where a topic ends."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar import reading, subscribing
from mqclient.pulsar.consumer import ConsumerEngine
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def more(world: PulsarWorld, reader: ConsumerEngine) -> bool:
    return world.do(reader.client, lambda: reading.has_message_available(reader))


def test_an_empty_topic(world: PulsarWorld) -> None:
    client = world.client()
    for start in ("earliest", "latest"):
        reader = world.reader(client, "t", start)
        assert not more(world, reader)
        assert world.do(client, lambda reader=reader: reading.last_message_id(reader)) is None  # type: ignore[misc]


@pytest.mark.parametrize("batching", [True, False])
def test_from_a_message_on(world: PulsarWorld, batching: bool) -> None:
    client = world.client()
    ids = world.sender(world.producer(client, "t", batching=batching)).send_many([b"0", b"1", b"2"])
    cases = [
        ("earliest", False, True),
        ("latest", False, False),
        (ids[0], False, True),
        (ids[2], False, False),
        (ids[2], True, True),
    ]
    for start, inclusive, expected in cases:
        # without permits: what is in the topic must not be seen because it is here already
        reader = world.reader(client, "t", start, start_inclusive=inclusive, receiver_queue=0)
        assert more(world, reader) == expected, (start, inclusive)
        assert world.do(client, lambda reader=reader: reading.last_message_id(reader)) == ids[2]  # type: ignore[misc]


def test_what_was_taken_counts(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.sender(world.producer(client, "t"))
    producer.send_many([b"0", b"1"])
    reader = world.reader(client, "t", "earliest", receiver_queue=1)
    face = world.face(reader)
    seen = []
    while more(world, reader):
        seen.append(face.receive(1).body)
    assert seen == [b"0", b"1"]
    producer.send(b"2")
    assert more(world, reader)


def test_the_brokers_numbers(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", receiver_queue=7)
    shown = world.do(client, lambda: reading.stats(consumer))
    assert (shown["availablePermits"], shown["type"], shown["consumerName"]) == (7, "Exclusive", consumer.name)


def test_of_many_topics_any_is_enough(world: PulsarWorld) -> None:
    client = world.client()
    world.rest("PUT", "persistent/public/default/many/partitions", 2)
    many = world.do(client, lambda: subscribing.open_reader(client, "many", "earliest", {}, None))
    assert not world.do(client, lambda: reading.has_message_available(many))
    partition = "persistent://public/default/many-partition-1"
    [sent] = world.send(world.producer(client, partition), b"x")
    assert world.do(client, lambda: reading.has_message_available(many))
    ends = world.do(client, lambda: reading.last_message_ids(many))
    assert (ends[partition], ends[partition.replace("-1", "-0")]) == (sent, None)

"""Topics: entries as they were sent, and their numbers."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.topics import Topic
from mqclient.errors import ConfigError
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.names import TopicName
from tests.support.pulsar_world import PulsarWorld, RawClient


def test_entries_keep_their_size_and_framing(codec: Any) -> None:
    world = PulsarWorld(codec)
    RawClient(world).produce([b"a"], [b"b", b"c"])
    topic = world.door.topics.make("t")
    assert [topic.messages(0), topic.messages(1)] == [1, 2]
    assert [topic.batched(0), topic.batched(1)] == [False, True]
    assert (topic.end, topic.partition) == (2, -1)


def test_numbers_by_id(codec: Any) -> None:
    world = PulsarWorld(codec)
    first = world.door.topics.make("t")
    second = world.door.topics.make("u")
    RawClient(world).produce([b"a"], [b"b"], topic="u")
    assert second.ledger > first.ledger
    ledger = second.ledger
    asked = ((ledger, 1), (ledger, 9), (ledger, -3), (ledger - 1, 5), (ledger + 1, 0))
    assert [second.entry_of(*at) for at in asked] == [1, 2, -1, -1, 2]


def test_one_name_one_topic(codec: Any) -> None:
    topics = PulsarWorld(codec).door.topics
    assert topics.make("t") is topics.make("persistent://public/default/t") is topics.get("public/default/t")
    assert topics.get("other") is None
    assert topics.producer_name() != topics.producer_name()
    with pytest.raises(ConfigError):
        topics.make("a/b")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("a/b", ServerError.InvalidTopicName),
        ("a/b/c", ServerError.TopicNotFound),
        ("parts", ServerError.NotAllowedError),
        ("parts-partition-2", ServerError.NotAllowedError),
    ],
)
def test_who_is_not_admitted(codec: Any, name: str, code: ServerError) -> None:
    topics = PulsarWorld(codec).door.topics
    topics.partition(TopicName.parse("parts"), 2)
    with pytest.raises(Refused) as refused:
        topics.admit(name)
    assert refused.value.code == code
    assert topics.admit("parts-partition-1").partition == 1


def test_only_what_is_there(codec: Any) -> None:
    topics = PulsarWorld(codec).door.topics
    with pytest.raises(Refused):
        topics.admit("new", create=False)
    assert topics.admit("new") is topics.admit("new", create=False)
    assert [topics.is_there(TopicName.parse(name)) for name in ("new", "other")] == [True, False]


def test_partitions_grow_with_their_subscriptions(codec: Any) -> None:
    topics, name = PulsarWorld(codec).door.topics, TopicName.parse("parts")
    topics.partition(name, 1)
    topics.make("parts-partition-0").subscribe("s", 1)
    topics.make("parts-partition-0").subscribe("reader", 0, durable=False)
    topics.partition(name, 3)
    assert [list(topic.subscriptions) for topic in topics.parts(name)] == [["s", "reader"], ["s"], ["s"]]
    assert len(topics.each()) == 3
    assert topics.parts(TopicName.parse("nobody")) == []


def test_who_listens_is_told(codec: Any) -> None:
    topics, told = PulsarWorld(codec).door.topics, []
    topics.listeners.append(lambda topic, there: told.append((topic.name.local, there)))
    topic = topics.make("t")
    topics.make("t")
    topics.forget(topic)
    topics.forget(topic)
    assert told == [("t", True), ("t", False)]


def test_what_is_seen_last(codec: Any) -> None:
    world = PulsarWorld(codec)
    topic = world.door.topics.make("t")
    assert (topic.last_seen, topic.readable) == (-1, 0)
    RawClient(world).produce([b"a"], [b"b"], [b"c"])
    topic.hidden[2] = True
    assert (topic.last_seen, topic.readable) == (1, 3)
    topic.txns.add((0, 0), 1)
    assert (topic.last_seen, topic.readable) == (0, 1)


def test_old_entries_are_forgotten(codec: Any) -> None:
    world = PulsarWorld(codec)
    raw = RawClient(world)
    raw.produce([b"a"], [b"b"], [b"c"])
    raw.subscribe()
    topic = world.door.topics.make("t")
    topic.trim(2)
    assert (topic.log.first, topic.subscriptions["s"].cursor.mark) == (2, 1)
    again = Topic(topic.name, 1, topic.log)
    again.resume()
    assert (again.messages_in, again.bytes_in) == (1, topic.log.bytes)


def test_times_and_chunks_are_remembered(codec: Any) -> None:
    world = PulsarWorld(codec)
    raw = RawClient(world)
    raw.ask("PRODUCER", topic="t", producer_id=1)
    for fields in ({"deliver_at": 77}, {"uuid": "u", "num_chunks": 2, "chunk_id": 1}):
        metadata = raw.codec.encode_metadata("p", 0, 1, **fields)
        raw.write(raw.codec.encode_send(1, 0, metadata, b"x"))
    topic = world.door.topics.make("t")
    assert (dict(topic.delays), topic.chunks) == ({0: 77}, {1: ("u", True)})

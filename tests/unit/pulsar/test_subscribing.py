"""How consumers and readers come to be: one topic, several, partitions, a pattern; and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mqclient.errors import ClosedError, ConfigError
from mqclient.pulsar import opening
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.consumer_options import DeadLetter
from mqclient.pulsar.multi import MultiConsumer
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.pattern import PatternConsumer
from mqclient.pulsar.subscribing import open_reader
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def test_what_is_made_of_which_topics(world: PulsarWorld) -> None:
    client = world.client()
    world.door.topics.partition(TopicName.parse("parts"), 2)
    cases: list[tuple[Any, type, int]] = [
        ("one", ConsumerEngine, 1),
        (["one"], ConsumerEngine, 1),
        ("parts", MultiConsumer, 2),
        ("parts-partition-1", ConsumerEngine, 1),
        (["one", "two", "one"], MultiConsumer, 2),
        (re.compile("parts"), PatternConsumer, 2),
    ]
    for number, (topics, kind, count) in enumerate(cases):
        engine = world.consumers(client, topics, f"s{number}")
        assert type(engine) is kind
        assert len(engine.topics) == count


def test_letters_are_named_after_the_first_topic(world: PulsarWorld) -> None:
    engine = world.multi(world.client(), ["a", "b"], "s", type="shared", retry=True, dead_letter=DeadLetter(3))
    assert [topic.rpartition("/")[2] for topic in engine.topics] == ["a", "b", "a-s-RETRY"]
    assert engine.options.dead_letter == DeadLetter(
        3, "persistent://public/default/a-s-DLQ", "persistent://public/default/a-s-RETRY"
    )


def test_a_listener_begins_when_all_is_open(world: PulsarWorld) -> None:
    client = world.client()
    seen: list[bytes] = []
    world.consumer(client, "t", "s", listener=lambda message: seen.append(message.body))
    world.sender(world.producer(client, "t")).send(b"x")
    world.world.run()
    assert seen == [b"x"]


def test_what_is_refused_leaves_nothing(world: PulsarWorld) -> None:
    client = world.client()
    for topics, options, text in (
        ([], {}, "at least one topic"),
        (["t", re.compile("t")], {}, "stands alone"),
        (re.compile("t"), {"retry": True, "type": "shared"}, "not a pattern"),
        ("t", {"listener": 5}, "is a function"),
    ):
        with pytest.raises(ConfigError, match=text):
            world.consumers(client, topics, "s", **options)
    with pytest.raises(ConfigError, match="a reader reads topics"):
        open_reader(client, re.compile("t"), "earliest", {}, None)
    world.control.answer("SUBSCRIBE", ServerError.AuthorizationError, "not you", times=1)
    with pytest.raises(BrokerError, match="not you"):
        world.consumers(client, "t", "s")
    assert not client._members
    world.do(client, lambda: opening.close(client))
    with pytest.raises(ClosedError):
        world.consumers(client, "t", "s")

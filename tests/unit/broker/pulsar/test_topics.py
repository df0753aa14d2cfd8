"""Topics: entries as they were sent, and their numbers."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
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

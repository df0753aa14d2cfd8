"""Who serves a topic, and which topics there are."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def raw(codec: Any) -> RawClient:
    return RawClient(PulsarWorld(codec))


def test_partitions(raw: RawClient) -> None:
    name, told = raw.ask("PARTITIONED_METADATA", topic="t", metadata_auto_creation_enabled=False)
    assert (told.response, told.error) == (1, ServerError.TopicNotFound)
    name, told = raw.ask("PARTITIONED_METADATA", topic="t")
    assert (name, told.response, told.partitions) == ("PARTITIONED_METADATA_RESPONSE", 0, 0)
    raw.ask("PRODUCER", topic="t", producer_id=1)
    assert raw.ask("PARTITIONED_METADATA", topic="t", metadata_auto_creation_enabled=False)[1].response == 0
    assert raw.ask("PARTITIONED_METADATA", topic="a/b/t")[1].error == ServerError.TopicNotFound


def test_lookup(raw: RawClient) -> None:
    told = raw.ask("LOOKUP", topic="t")[1]
    assert (told.response, told.brokerServiceUrl, told.authoritative) == (1, "pulsar://broker:6650", True)
    told = raw.ask("LOOKUP", topic="t", advertised_listener_name="elsewhere")[1]
    assert (told.response, told.error) == (2, ServerError.ServiceNotReady)
    told = raw.ask("LOOKUP", topic="a/b")[1]
    assert (told.response, told.error) == (2, ServerError.InvalidTopicName)


def test_topics_of_a_namespace(raw: RawClient) -> None:
    for topic in ("b", "a"):
        raw.ask("PRODUCER", topic=topic, producer_id=ord(topic))
    told = raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="public/default")[1]
    assert list(told.topics) == ["persistent://public/default/a", "persistent://public/default/b"]
    assert not raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="public/default", mode=1)[1].topics
    assert not raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="a/b")[1].topics


def test_topics_by_pattern_and_hash(raw: RawClient) -> None:
    for number, topic in enumerate(("orders-1", "orders-2", "other")):
        raw.ask("PRODUCER", topic=topic, producer_id=number)
    asked = {"namespace": "public/default", "topics_pattern": "persistent://public/default/orders-.*"}
    told = raw.ask("GET_TOPICS_OF_NAMESPACE", **asked)[1]
    assert [name[-8:] for name in told.topics] == ["orders-1", "orders-2"]
    assert (told.filtered, told.changed, len(told.topics_hash)) == (True, True, 8)
    again = raw.ask("GET_TOPICS_OF_NAMESPACE", topics_hash=told.topics_hash, **asked)[1]
    assert (list(again.topics), again.changed, again.topics_hash) == ([], False, told.topics_hash)
    nobody = raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="public/default", topics_pattern="nobody")[1]
    assert (list(nobody.topics), nobody.topics_hash) == ([], "00000000")


def test_the_hash_is_the_recorded_one(raw: RawClient) -> None:
    for names, told in (("1", "ce6a8276"), ("2", "79b3e33f")):
        raw.ask("PRODUCER", topic=f"v-java-pw-{names}", producer_id=int(names))
        asked = {"namespace": "public/default", "topics_pattern": "public/default/v-java-pw-.*"}
        assert raw.ask("GET_TOPICS_OF_NAMESPACE", **asked)[1].topics_hash == told


@pytest.mark.parametrize("pattern", ["(a+)+", "a*b*c*", "x" * 51, "[", "a{1"])
def test_costly_patterns_are_left_to_the_client(raw: RawClient, pattern: str) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1)
    told = raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="public/default", topics_pattern=pattern)[1]
    assert told.filtered is (pattern == "a{1")
    assert len(told.topics) == (pattern != "a{1")


def test_topics_with_partitions(codec: Any) -> None:
    world = PulsarWorld(codec, allowAutoTopicCreationType="partitioned", defaultNumPartitions="3")
    raw = RawClient(world)
    assert raw.ask("PARTITIONED_METADATA", topic="t")[1].partitions == 3
    assert raw.ask("PARTITIONED_METADATA", topic="t")[1].partitions == 3
    assert raw.ask("PARTITIONED_METADATA", topic="t-partition-1")[1].partitions == 0
    assert raw.ask("PRODUCER", topic="t-partition-2", producer_id=1)[0] == "PRODUCER_SUCCESS"
    assert raw.ask("PRODUCER", topic="t-partition-3", producer_id=2)[1].error == ServerError.NotAllowedError
    assert raw.ask("PRODUCER", topic="t", producer_id=3)[1].error == ServerError.NotAllowedError
    assert raw.subscribe(topic="t")[1].error == ServerError.NotAllowedError


def test_topics_that_nobody_makes(codec: Any) -> None:
    raw = RawClient(PulsarWorld(codec, allowAutoTopicCreation="false"))
    assert raw.ask("PARTITIONED_METADATA", topic="t")[1].error == ServerError.TopicNotFound
    assert raw.ask("PRODUCER", topic="t", producer_id=1)[1].error == ServerError.TopicNotFound
    assert raw.subscribe()[1].error == ServerError.TopicNotFound

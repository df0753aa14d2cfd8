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
    assert raw.ask("PARTITIONED_METADATA", topic="t", metadata_auto_creation_enabled=False)[1].response == 0
    assert raw.ask("PARTITIONED_METADATA", topic="a/b/t")[1].error == ServerError.TopicNotFound


def test_lookup(raw: RawClient) -> None:
    told = raw.ask("LOOKUP", topic="t")[1]
    assert (told.response, told.brokerServiceUrl, told.authoritative) == (1, "pulsar://broker:6650", True)
    told = raw.ask("LOOKUP", topic="a/b")[1]
    assert (told.response, told.error) == (2, ServerError.InvalidTopicName)


def test_topics_of_a_namespace(raw: RawClient) -> None:
    for topic in ("b", "a"):
        raw.ask("PARTITIONED_METADATA", topic=topic)
    told = raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="public/default")[1]
    assert list(told.topics) == ["persistent://public/default/a", "persistent://public/default/b"]
    assert not raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="public/default", mode=1)[1].topics
    assert not raw.ask("GET_TOPICS_OF_NAMESPACE", namespace="a/b")[1].topics

"""Tenants, namespaces and their policies over HTTP, and what they change for clients."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def raw(world: PulsarWorld) -> RawClient:
    return RawClient(world)


def test_tenants(world: PulsarWorld) -> None:
    assert world.rest("GET", "tenants") == ["public", "pulsar"]
    assert world.rest("PUT", "tenants/t", {"adminRoles": ["me"]}) is None
    assert world.rest("PUT", "tenants/t") == 409
    assert world.rest("POST", "tenants/t", {"adminRoles": []}) is None
    assert world.rest("GET", "tenants/t") == {"adminRoles": [], "allowedClusters": ["standalone"]}
    assert world.rest("GET", "tenants/nobody") == 404
    world.rest("PUT", "namespaces/t/n")
    assert world.rest("DELETE", "tenants/t") == 409
    assert world.rest("DELETE", "tenants/t", force="true") is None
    assert world.rest("GET", "namespaces/t") == 404


def test_a_namespace_is_there_for_clients(world: PulsarWorld, raw: RawClient) -> None:
    assert raw.ask("PRODUCER", topic="t/n/x", producer_id=1)[1].error == ServerError.TopicNotFound
    assert world.rest("PUT", "namespaces/t/n") == 404
    world.rest("PUT", "tenants/t")
    assert world.rest("PUT", "namespaces/t/n", {"bundles": {"numBundles": 1}}) is None
    assert world.rest("PUT", "namespaces/t/n") == 409
    assert world.rest("GET", "namespaces/t") == ["t/n"]
    assert raw.ask("PRODUCER", topic="t/n/x", producer_id=1)[0] == "PRODUCER_SUCCESS"
    assert world.rest("GET", "namespaces/t/n/topics") == ["persistent://t/n/x"]
    assert world.rest("GET", "namespaces/t/n/topics", mode="NON_PERSISTENT") == []
    assert world.rest("GET", "namespaces/t/n/topics", mode="SOME") == 400
    assert world.rest("DELETE", "namespaces/t/n") == 409
    raw.events.clear()
    assert world.rest("PUT", "namespaces/t/n/unload") is None
    assert [name for name, _ in raw.events] == ["CLOSE_PRODUCER"]
    world.rest("PUT", "persistent/t/n/p/partitions", 2)
    assert world.rest("DELETE", "namespaces/t/n", force="true") is None
    assert (world.door.topics.partitions, world.rest("GET", "namespaces/t/n")) == ({}, 404)


def test_policies(world: PulsarWorld) -> None:
    assert world.rest("GET", "namespaces/public/default/deduplication") is None
    assert world.rest("POST", "namespaces/public/default/deduplication", True) is None
    assert world.rest("GET", "namespaces/public/default/deduplication") is True
    assert world.rest("GET", "namespaces/public/default") == {"deduplicationEnabled": True}
    assert world.rest("DELETE", "namespaces/public/default/deduplication") is None
    assert world.rest("GET", "namespaces/public/default/deduplication") is None
    assert world.rest("POST", "namespaces/public/default/deduplication", "yes") == 400
    assert world.rest("POST", "namespaces/public/default/maxConsumersPerTopic", True) == 400
    assert world.rest("POST", "namespaces/public/nobody/deduplication", True) == 404


def test_who_may_make_topics_and_subscriptions(world: PulsarWorld, raw: RawClient) -> None:
    place = "namespaces/public/default"
    world.rest("POST", f"{place}/autoTopicCreation", {"allowAutoTopicCreation": False})
    assert raw.ask("PARTITIONED_METADATA", topic="t")[1].error == ServerError.TopicNotFound
    decided = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 2}
    world.rest("POST", f"{place}/autoTopicCreation", decided)
    assert raw.ask("PARTITIONED_METADATA", topic="t")[1].partitions == 2
    world.rest("POST", f"{place}/autoSubscriptionCreation", {"allowAutoSubscriptionCreation": False})
    assert raw.subscribe(topic="t-partition-0")[1].error == ServerError.SubscriptionNotFound
    world.rest("PUT", "persistent/public/default/t/subscription/s")
    assert raw.subscribe(topic="t-partition-0")[0] == "SUCCESS"


def test_limits(world: PulsarWorld, raw: RawClient) -> None:
    world.rest("POST", "namespaces/public/default/maxConsumersPerTopic", 1)
    world.rest("POST", "namespaces/public/default/maxProducersPerTopic", 1)
    assert raw.subscribe()[0] == "SUCCESS"
    assert raw.subscribe(2, subscription="other")[1].error == ServerError.ConsumerBusy
    assert raw.ask("PRODUCER", topic="t", producer_id=1)[0] == "PRODUCER_SUCCESS"
    assert raw.ask("PRODUCER", topic="t", producer_id=2)[1].error == ServerError.ProducerBusy

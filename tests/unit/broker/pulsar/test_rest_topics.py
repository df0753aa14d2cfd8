"""Topics over HTTP, and what becomes of the clients on them."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar.http import Request
from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient

T = "persistent/public/default/t"


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def raw(world: PulsarWorld) -> RawClient:
    return RawClient(world)


def test_partitions(world: PulsarWorld, raw: RawClient) -> None:
    assert world.rest("GET", f"{T}/partitions") == 404
    assert world.rest("PUT", f"{T}/partitions", 0) == 406
    assert world.rest("PUT", f"{T}/partitions", 2) is None
    assert world.rest("PUT", f"{T}/partitions", 2) == 409
    assert world.rest("GET", f"{T}/partitions") == {"partitions": 2}
    assert world.rest("PUT", f"{T}-partition-0/partitions", 2) == 412
    assert world.rest("GET", "persistent/public/default/partitioned") == ["persistent://public/default/t"]
    assert world.rest("GET", "persistent/public/default") == [
        f"persistent://public/default/t-partition-{i}" for i in "01"
    ]
    raw.subscribe(topic="t-partition-0")
    assert world.rest("POST", f"{T}/partitions", 1) == 422
    assert world.rest("POST", f"{T}/partitions", 2) is None
    assert world.rest("POST", f"{T}/partitions", 3) is None
    assert raw.ask("PARTITIONED_METADATA", topic="t")[1].partitions == 3
    assert list(world.door.topics.make("t-partition-2").subscriptions) == ["s"]
    assert world.rest("DELETE", f"{T}/partitions") == 412
    raw.events.clear()
    assert world.rest("DELETE", f"{T}/partitions", force="true") is None
    assert [name for name, _ in raw.events] == ["CLOSE_CONSUMER"]
    assert world.rest("POST", f"{T}/partitions", 3) == 404
    assert world.rest("GET", f"{T}/partitions", checkAllowAutoCreation="true") == {"partitions": 0}


def test_plain_topics(world: PulsarWorld) -> None:
    assert world.rest("PUT", T) is None
    assert world.rest("PUT", T) == 409
    assert world.rest("DELETE", T) is None
    assert world.rest("DELETE", T) == 404


def test_unload_and_delete(world: PulsarWorld, raw: RawClient) -> None:
    raw.produce([b"a"])
    raw.subscribe()
    raw.events.clear()
    world.rest("PUT", f"{T}/unload")
    assert [name for name, _ in raw.events] == ["CLOSE_PRODUCER", "CLOSE_CONSUMER"]
    assert raw.subscribe()[0] == "SUCCESS"
    assert len(raw.flow(1)) == 1
    assert world.rest("DELETE", T) == 412
    assert world.rest("DELETE", T, force="true") is None
    assert world.door.topics.get("t") is None


def test_termination(world: PulsarWorld, raw: RawClient) -> None:
    raw.produce([b"a"], [b"b"])
    raw.subscribe()
    told = world.rest("POST", f"{T}/terminate")
    assert (told["entryId"], told["partitionIndex"]) == (1, -1)
    assert raw.ask("PRODUCER", topic="t", producer_id=9)[1].error == ServerError.TopicTerminatedError
    entries = raw.flow(10)
    assert [name for name, *_ in raw.events] == [raw.codec.MESSAGE] * 2
    raw.events.clear()
    raw.write(raw.codec.encode_ack(0, [(entries[0].ledger, 0)]))
    assert raw.events == []
    raw.write(raw.codec.encode_ack(0, [(entries[0].ledger, 1)], cumulative=True))
    assert [name for name, _ in raw.events] == ["REACHED_END_OF_TOPIC"]
    raw.flow(1)
    assert raw.events == []
    other = RawClient(world)
    other.subscribe(subscription="late", initialPosition=0)
    other.flow(1)
    assert [name for name, _ in other.events] == ["REACHED_END_OF_TOPIC"]


def test_termination_of_partitions(world: PulsarWorld) -> None:
    world.rest("PUT", f"{T}/partitions", 2)
    assert world.rest("POST", f"{T}/terminate") == 405
    assert sorted(world.rest("POST", f"{T}/terminate/partitions")) == ["0", "1"]
    assert world.door.topics.make("t-partition-1").terminated


def test_policies(world: PulsarWorld, raw: RawClient) -> None:
    assert world.rest("POST", f"{T}/maxConsumers", 1) == 404
    world.rest("PUT", T)
    assert world.rest("POST", f"{T}/maxConsumers", 1) is None
    assert world.rest("GET", f"{T}/maxConsumers") == 1
    assert world.rest("POST", f"{T}/maxConsumers", "x") == 400
    raw.subscribe()
    assert raw.subscribe(1, subscription="other")[1].error == ServerError.ConsumerBusy
    assert world.rest("DELETE", f"{T}/maxConsumers") is None
    assert raw.subscribe(1, subscription="other")[0] == "SUCCESS"


def test_where_it_ends(world: PulsarWorld, raw: RawClient) -> None:
    world.rest("PUT", T)
    assert world.rest("GET", f"{T}/lastMessageId")["ledgerId"] == -1
    raw.produce([b"a"])
    topic = world.door.topics.make("t")
    assert world.rest("GET", f"{T}/lastMessageId") == {"ledgerId": topic.ledger, "entryId": 0, "partitionIndex": -1}
    raw.subscribe()
    told = world.rest("GET", f"{T}/internalStats")
    assert (told["numberOfEntries"], told["lastConfirmedEntry"]) == (1, f"{topic.ledger}:0")
    assert told["cursors"] == {"s": {"markDeletePosition": f"{topic.ledger}:-1"}}


def test_compaction_and_statistics(world: PulsarWorld, raw: RawClient) -> None:
    raw.produce([b"a"])
    assert world.rest("PUT", f"{T}/compaction") is None
    assert world.rest("GET", f"{T}/compaction")["status"] == "SUCCESS"
    assert world.rest("GET", f"{T}/stats")["msgInCounter"] == 1
    world.rest("PUT", "persistent/public/default/p/partitions", 2)
    assert world.rest("GET", "persistent/public/default/p/partitioned-stats")["metadata"] == {"partitions": 2}
    place = ("lookup", "v2", "topic", *T.split("/"))
    assert world.door.rest.answer(Request("GET", place)).content["brokerUrl"] == "pulsar://broker:6650"

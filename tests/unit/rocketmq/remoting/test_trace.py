"""The message trace: ten records a message, in the broker's form, found by ids and keys."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting import trace as module
from mqclient.rocketmq.remoting.many import plan
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from mqclient.rocketmq.remoting.trace import TOPIC
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    cluster.topic(TOPIC, 1)
    return cluster


def engine_of(client: VirtualClient) -> ProducerEngine:
    with client.driver.enter():
        return ProducerEngine(client.engine, "producers", ProducerOptions(message_trace=True))


def traced(cluster: VirtualCluster) -> list[tuple[list[list[str]], tuple[str, ...]]]:
    """The records of each message of the trace topic, and its keys."""
    views, _ = cluster.broker.broker.topics[TOPIC].queue(0).log.read(0, 99, 1 << 20)
    messages = cluster.codec.remoting.decode_messages(b"".join(views))
    return [([line.split("\x01") for line in one.body.decode().split("\x02")[:-1]], one.keys) for one in messages]


def test_records_of_a_message_and_of_a_batch(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client)
    (receipt,) = client.produce(Message("orders", b"abc", tag="t", keys=["k1", "k2"]))
    client.produce(Message("orders", b"later", delay_level=1))
    assert traced(cluster) == []
    chains = plan(engine, [Message("orders", b"%d" % number) for number in range(9)], None)
    with client.driver.enter():
        slot = engine.submit_many(chains, None)
    client.driver.wait(slot)
    cluster.world.run()
    ((records, keys),) = traced(cluster)
    assert len(records) == 11
    first = records[0]
    assert first[0] == "Pub"
    assert first[2:10] == [
        "DefaultRegion",
        "producers",
        "orders",
        receipt.message_id,
        "t",
        "k1 k2",
        "10.0.0.1:10911",
        "3",
    ]
    assert first[11:] == ["0", receipt.offset_id, "true"]
    assert records[1][11] == "3"
    assert {"k1", "k2", receipt.message_id} <= set(keys)


def test_few_records_go_after_a_while_or_with_the_close(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine = engine_of(client)
    client.produce(Message("orders", b"x"))
    cluster.world.advance(6)
    assert len(traced(cluster)) == 1
    client.produce(Message("orders", b"x"))
    with client.driver.enter():
        slot = engine.close()
    client.driver.wait(slot)
    assert len(traced(cluster)) == 2
    assert client.engine.producers == {}


def test_what_does_not_fit_is_counted_and_large_ones_are_cut(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = cluster.client()
    engine = engine_of(client)
    assert engine.trace is not None
    monkeypatch.setattr(module, "MAX_BODY", 1500)
    client.produce(*[Message("orders", b"x") for _ in range(10)])
    cluster.world.run()
    assert 1 < len(traced(cluster)) <= 10
    monkeypatch.setattr(module, "MAX_BODY", 1)
    client.produce(*[Message("orders", b"x") for _ in range(10)])
    monkeypatch.setattr(module, "WAITING", 0)
    client.produce(Message("orders", b"x"))
    assert engine.trace.dropped == 11


def test_a_child_leaves_the_parents_records_and_goes_on_with_its_own(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine_of(client)
    client.produce(Message("orders", b"the parent's"))
    with client.driver.enter():
        client.engine.on_fork()
    cluster.world.advance(6)
    assert traced(cluster) == []
    (receipt,) = client.produce(Message("orders", b"the child's"))
    cluster.world.advance(6)
    ((records, _),) = traced(cluster)
    assert [record[5] for record in records] == [receipt.message_id]

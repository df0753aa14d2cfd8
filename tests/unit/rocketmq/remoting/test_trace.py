"""The message trace: ten records a message, in the broker's form, found by ids and keys."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting import trace as module
from mqclient.rocketmq.remoting.handling import Retry
from mqclient.rocketmq.remoting.many import plan
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from mqclient.rocketmq.remoting.trace import TOPIC, ConsumeTrace
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


class Moody:
    """A handler that wants one message again, then is content."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, messages: Any) -> None:
        self.calls += 1
        if self.calls == 1:
            raise Retry(messages[:1])
        if self.calls == 2:
            raise ValueError("no")


@pytest.mark.parametrize("orderly", [False, True])
def test_calls_of_a_handler_are_traced_from_begin_to_end(cluster: VirtualCluster, orderly: bool) -> None:
    client = cluster.client()
    receipts = client.produce(*[Message("orders", b"%d" % n, keys=[f"k{n}"]) for n in range(2)])
    first, second = (receipt.message_id for receipt in receipts)
    push = client.push(
        "g",
        "orders",
        Moody(),
        start="first",
        message_trace=True,
        orderly=orderly,
        suspend=1.0,
        max_attempts=5,
        retry_levels=[1],
    )
    cluster.world.advance(30)
    with push.driver.enter():
        ending = push.engine.close(1.0)
    cluster.world.run()
    assert ending.done
    records = [record for found, _ in traced(cluster) for record in found]
    keys = {key for _, found in traced(cluster) for key in found}
    begins = [record for record in records if record[0] == "SubBefore"]
    ends = [record for record in records if record[0] == "SubAfter"]
    assert {first, second, "k0", "k1"} <= keys
    assert [record[2:4] for record in begins[:2]] == [["DefaultRegion", "g"]] * 2
    assert [record[5:] for record in begins[:2]] == [[first, "0", "k0"], [second, "0", "k1"]]
    assert begins[0][4] == begins[1][4] == ends[0][1] == ends[1][1]  # one call
    assert begins[-1][4] != begins[0][4]
    assert all(len(record) == 9 and record[8] == "g" for record in ends)
    outcomes = [(record[2], record[4], record[6]) for record in ends]
    assert outcomes[:2] == [(first, "false", "4"), (second, "true", "0")]
    assert {outcome[1:] for outcome in outcomes} == {("false", "4"), ("true", "0"), ("false", "2")}
    assert outcomes[-1][1:] == ("true", "0")
    assert not [name for name in client.engine.producers if "CONSUME" in name]


def test_messages_that_want_no_trace_have_none(cluster: VirtualCluster) -> None:
    client = cluster.client()
    inner = engine_of(client)
    trace = ConsumeTrace(client.engine, "g", inner)

    class One:
        message_id, attempts, keys, offset = "id", 0, ("k",), 0

        def __init__(self, on: str) -> None:
            self.on = on

        def property(self, name: str) -> str | None:
            return {"TRACE_ON": self.on, "MSG_REGION": "eu"}[name]

    with client.driver.enter():
        request = trace.begins([One("false")])
        trace.ended(request, [One("false")], 0.5, None)
        assert not trace._records
        trace.ended(trace.begins([One("true")]), [One("true")], 0.5, None)
        assert [record.text.split("\x01")[0] for record in trace._records] == ["SubBefore", "SubAfter"]
        assert "\x01eu\x01g\x01" in trace._records[0].text
        assert "\x01500\x01true\x01" in trace._records[1].text


def test_a_forked_child_does_not_tell_the_parents_calls(cluster: VirtualCluster) -> None:
    client = cluster.client()
    cluster.fill("orders", 1)
    client.push("g", "orders", start="first", message_trace=True)
    cluster.world.advance(1)
    with client.driver.enter():
        client.engine.on_fork()
    cluster.world.advance(10)
    assert traced(cluster) == []

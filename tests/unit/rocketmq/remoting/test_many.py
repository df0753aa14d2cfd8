"""`send_many`: one topic and key a request; what may not be batched goes alone; a window of requests on their way."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting import many as module
from mqclient.rocketmq.remoting.many import WINDOW, check_messages, plan, results
from mqclient.rocketmq.remoting.outgoing import MAX_BATCH_BYTES
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 2)
    return cluster


@pytest.fixture(name="client")
def client_fixture(cluster: VirtualCluster) -> VirtualClient:
    return cluster.client()


@pytest.fixture(name="engine")
def engine_fixture(client: VirtualClient) -> ProducerEngine:
    with client.driver.enter():
        return ProducerEngine(client.engine, "p")


def shape(engine: ProducerEngine, messages: list[Message], key: Any = None) -> list[list[list[int]]]:
    return [[list(part.indexes) for part in chain] for chain in plan(engine, messages, key)]


def send(client: VirtualClient, engine: ProducerEngine, messages: list[Message], key: Any = None) -> list[Any]:
    chains = plan(engine, messages, key)
    with client.driver.enter():
        slot = engine.submit_many(chains, None)
    return results(client.driver.wait(slot))


def test_what_travels_together(engine: ProducerEngine) -> None:
    messages = [
        Message("orders", b"0"),
        Message("other", b"1"),
        Message("orders", b"2", delay_level=1),
        Message("orders", b"3"),
        Message("orders", b"4", keys=["k"]),
        Message("orders", b"x" * 5000),
        Message("orders", b"6"),
        Message("orders", b"7"),
    ]
    assert shape(engine, messages) == [[[0]], [[2]], [[3, 4]], [[5]], [[6, 7]], [[1]]]
    codes = [part.prepared.code for chain in plan(engine, messages, None) for part in chain]
    assert codes.count(Request.SEND_BATCH_MESSAGE) == 2
    keyed = shape(engine, messages, lambda message: "k" if message.body in (b"3", b"0") else None)
    assert keyed == [[[0, 3]], [[1]], [[2]], [[4]], [[5]], [[6, 7]]]
    assert shape(engine, []) == []


def test_a_retry_topics_messages_go_one_by_one(
    cluster: VirtualCluster, client: VirtualClient, engine: ProducerEngine
) -> None:
    cluster.client().push("billing", "orders")
    messages = [Message("%RETRY%billing", b"%d" % number) for number in range(3)]
    assert shape(engine, messages) == [[[0]], [[1]], [[2]]]
    found = send(client, engine, messages)
    assert [one.ok for one in found] == [True] * 3, found  # "batch request does not support retry group"
    assert cluster.control.count("SEND_BATCH_MESSAGE") == 0


def test_a_few_of_one_topic_are_one_request_without_a_closer_look(
    cluster: VirtualCluster, client: VirtualClient, engine: ProducerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closer(*_: Any) -> Any:
        raise AssertionError("nobody needed to look")

    messages = [Message("orders", b"%d" % number) for number in range(module.SMALL)]
    with monkeypatch.context() as patched:
        patched.setattr(module, "_groups", closer)
        found = send(client, engine, messages)
    assert [receipt.offset for receipt in found] == list(range(module.SMALL))
    assert len({receipt.message_id for receipt in found}) == module.SMALL
    assert cluster.control.count("SEND_BATCH_MESSAGE") == 1
    assert engine.account() == (module.SMALL, 0, 0, 0, 0)


def test_what_becomes_of_a_lone_request_is_the_outcome_of_each(
    cluster: VirtualCluster, client: VirtualClient, engine: ProducerEngine
) -> None:
    two = [Message("orders", b"x"), Message("orders", b"y")]
    cluster.control.answer("SEND_BATCH_MESSAGE", 13, "not like this")
    refused = send(client, engine, two)
    assert [str(error).count("not like this") for error in refused] == [1, 1]
    cluster.control.delay("SEND_BATCH_MESSAGE", seconds=1)
    with client.driver.enter():
        slot, flushed = engine.submit_many(plan(engine, two, None), None), engine.flush()
    cluster.world.advance(0.5)
    assert not slot.done
    assert not flushed.done
    assert engine.account().pending == 2
    client.driver.wait(flushed)
    found = results(slot.result())
    assert [receipt.offset for receipt in found if not isinstance(receipt, Exception)] == [0, 1]
    chains = plan(engine, two, None)
    with client.driver.enter():
        late = engine.submit_many(chains, client.driver.now.mono - 1)
        late.fail(RuntimeError("a second outcome is a late one"))
    assert {type(error).__name__ for error in results(client.driver.wait(late))} == {"DeadlineError"}


def test_batches_are_cut_at_their_size_and_number(engine: ProducerEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [Message("orders", b"x" * 3000) for _ in range(200)]
    parts = [part for chain in plan(engine, messages, None) for part in chain]
    assert len(parts) == 3
    assert all(len(part.prepared.body) <= MAX_BATCH_BYTES for part in parts)
    monkeypatch.setattr(module, "MAX_BATCH", 50)
    assert [len(chain[0].indexes) for chain in plan(engine, messages, None)] == [50] * 4


def test_without_compression_large_ones_are_batched_up_to_the_brokers_limit(client: VirtualClient) -> None:
    with client.driver.enter():
        engine = ProducerEngine(client.engine, "p", ProducerOptions(compression=None))
    assert shape(engine, [Message("orders", b"x" * 5000)] * 4) == [[[0, 1, 2, 3]]]


def test_receipts_come_in_order_with_their_places(client: VirtualClient, engine: ProducerEngine) -> None:
    messages = [Message(f"t{number % 2}", b"%d" % number, tag="t") for number in range(10)]
    found = send(client, engine, messages)
    assert [receipt.topic for receipt in found] == ["t0", "t1"] * 5
    assert len({receipt.message_id for receipt in found}) == len({(one.queue, one.offset) for one in found}) == 10
    assert [one.ok for one in send(client, engine, [Message("t0", b"x")])] == [True]
    assert send(client, engine, []) == []


def test_a_keys_requests_go_one_after_the_other(
    cluster: VirtualCluster, client: VirtualClient, engine: ProducerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 5)
    cluster.control.delay("SEND_BATCH_MESSAGE", seconds=1, times=1)
    found = send(client, engine, [Message("orders", b"%d" % number) for number in range(20)], lambda message: "k")
    assert [receipt.offset for receipt in found] == list(range(20))
    assert cluster.control.count("SEND_BATCH_MESSAGE") == 4


def test_no_more_than_a_window_is_on_its_way(
    cluster: VirtualCluster, client: VirtualClient, engine: ProducerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BATCH", 2)
    send(client, engine, [Message("orders", b"the route is known")])
    cluster.control.delay("SEND_BATCH_MESSAGE", seconds=0.5, times=100)
    chains = plan(engine, [Message("orders", b"x")] * 100, None)
    with client.driver.enter():
        slot = engine.submit_many(chains, None)
    cluster.world.run()
    assert cluster.control.count("SEND_BATCH_MESSAGE") == WINDOW
    client.driver.wait(slot)
    assert cluster.control.count("SEND_BATCH_MESSAGE") == 50


def test_thousands_that_fail_at_once_need_no_deep_stack(client: VirtualClient, engine: ProducerEngine) -> None:
    chains = plan(engine, [Message("orders", b"x", delay_level=1)] * 3000, None)
    with client.driver.enter():
        slot = engine.submit_many(chains, client.driver.now.mono - 1)
    found = results(client.driver.wait(slot))
    assert {type(error).__name__ for error in found} == {"DeadlineError"}
    assert engine.account().failed == 3000


def test_what_is_wrong_is_said_before_anything_is_sent(engine: ProducerEngine) -> None:
    wrong: Any = [Message("orders", b"x"), "text"]
    with pytest.raises(TypeError, match="not str"):
        plan(engine, wrong, None)
    with pytest.raises(ConfigError, match="illegal characters"):
        plan(engine, [Message("a b", b"x")], None)
    with pytest.raises(ConfigError, match="empty body"):
        plan(engine, [Message("orders", b"x"), Message("orders", b"")], None)
    with pytest.raises(ConfigError, match="'KEYS' is the broker's own"):
        plan(engine, [Message("orders", b"x"), Message("orders", b"x", properties={"KEYS": "k"})], None)
    with pytest.raises(ConfigError, match="separator"):
        plan(engine, [Message("orders", b"x"), Message("orders", b"x", tag="\x01")], None)
    one: Any = Message("orders", b"x")
    with pytest.raises(ConfigError, match="use send"):
        check_messages(one)
    assert check_messages(message for message in [one]) == [one]

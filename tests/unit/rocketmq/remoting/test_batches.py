"""Submitted messages travel together, by topic and queue; what may not goes alone, and no key's message overtakes."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import DeadlineError, MQError
from mqclient.rocketmq.model import Message, MessageQueue
from mqclient.rocketmq.remoting.batches import LaneKey
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
    client = cluster.client()
    client.produce(Message("orders", b"the route is known"), group="first")
    return client


def engine_of(client: VirtualClient, **options: Any) -> ProducerEngine:
    with client.driver.enter():
        return ProducerEngine(client.engine, "p", ProducerOptions(**options))


def submit(engine: ProducerEngine, *messages: Message, key: str | None = None) -> list[Any]:
    prepared = [engine.prepare(message, key) for message in messages]
    with engine.client.driver.enter():
        return [engine.submit(one) for one in prepared]


def many(count: int, topic: str = "orders") -> list[Message]:
    return [Message(topic, b"%03d" % number, tag="t", properties={"n": str(number)}) for number in range(count)]


def requests(cluster: VirtualCluster) -> tuple[int, int]:
    """Single ones and batches."""
    return cluster.control.count("SEND_MESSAGE_V2"), cluster.control.count("SEND_BATCH_MESSAGE")


def bodies(cluster: VirtualCluster, queue: MessageQueue) -> list[bytes]:
    views, _ = cluster.broker.broker.topics[queue.topic].queue(queue.queue_id).log.read(0, 100_000, 1 << 30)
    return [message.body for message in cluster.codec.remoting.decode_messages(b"".join(views))]


def test_one_entry_is_one_request_and_receipts_tell_each_place(cluster: VirtualCluster, client: VirtualClient) -> None:
    engine = engine_of(client)
    futures = submit(engine, *many(50))
    receipts = [future.result(5) for future in futures]
    assert requests(cluster) == (1, 1)
    assert [receipt.offset for receipt in receipts] == list(range(receipts[0].offset, receipts[0].offset + 50))
    assert len({receipt.message_id for receipt in receipts}) == len({receipt.offset_id for receipt in receipts}) == 50
    assert bodies(cluster, receipts[0].queue)[-50:] == [b"%03d" % number for number in range(50)]


def test_batches_gather_while_one_is_on_its_way_and_go_round_the_queues(
    cluster: VirtualCluster, client: VirtualClient
) -> None:
    engine = engine_of(client, batch_max_messages=10)
    futures = [future for message in many(35) for future in submit(engine, message)]
    receipts = [future.result(5) for future in futures]
    # The first alone, for nobody was on the way; the others by tens, and the last four when an answer came.
    assert requests(cluster) == (2, 4)
    assert {receipt.queue.queue_id for receipt in receipts} == {0, 1}


def test_a_key_keeps_its_order_one_request_at_a_time(cluster: VirtualCluster, client: VirtualClient) -> None:
    engine = engine_of(client, batch_max_messages=10)
    cluster.control.delay("SEND_BATCH_MESSAGE", seconds=1, times=1)
    cluster.control.answer("SEND_BATCH_MESSAGE", 2, "busy", times=1)
    futures = [future for message in many(40) for future in submit(engine, message, key="customer-7")]
    queue = futures[0].result(10).queue
    assert [future.result(10).queue for future in futures] == [queue] * 40
    assert bodies(cluster, queue)[-40:] == [b"%03d" % number for number in range(40)]


def test_a_thread_that_waits_goes_alone_unless_its_key_has_company_before_it(
    cluster: VirtualCluster, client: VirtualClient
) -> None:
    engine = engine_of(client)
    futures = [future for message in many(3) for future in submit(engine, message, key="k")]
    prepared = engine.prepare(Message("orders", b"last"), "k")
    with client.driver.enter():
        slot, index = engine.send(prepared, None)
    receipt = client.driver.wait(slot)[index]
    assert (index, requests(cluster)) == (2, (2, 1))
    assert bodies(cluster, receipt.queue)[-1] == b"last"
    assert all(future.done() for future in futures)


def test_before_the_route_is_known_a_key_has_a_lane_of_its_own(cluster: VirtualCluster) -> None:
    engine = engine_of(cluster.client())
    futures = [future for message in many(5) for future in submit(engine, message, key="k")]
    assert [key.key for key in engine._batching._behind] == ["k"]
    queue = futures[4].result(5).queue
    (late,) = submit(engine, Message("orders", b"005"), key="k")
    assert [key.queue for key in engine._batching._behind] in ([queue], [])
    assert late.result(5).queue == queue
    assert bodies(cluster, queue) == [b"%03d" % number for number in range(6)]
    assert all(key.key is None for key in engine._batching._accumulator._lanes)


def test_what_may_not_travel_together_goes_alone_in_its_turn(cluster: VirtualCluster, client: VirtualClient) -> None:
    engine = engine_of(client, compress_above=1000)
    messages = [
        Message("orders", b"000"),
        Message("orders", b"001", delay_level=1),
        Message("orders", b"002" * 1000),
        Message("orders", b"003"),
        Message("orders", bytes(range(256)) * 4),
    ]
    futures = submit(engine, *messages)
    assert all(future.result(5).ok for future in futures)
    assert requests(cluster) == (1 + 5, 0)
    alone = engine_of(client.cluster.client(), batching=False)
    assert all(future.result(5).ok for future in submit(alone, *many(3)))
    assert requests(cluster) == (9, 0)


def test_a_broker_that_fails_is_told_to_each_message_of_the_batch(
    cluster: VirtualCluster, client: VirtualClient
) -> None:
    engine = engine_of(client)
    cluster.control.answer("SEND_BATCH_MESSAGE", 13, "no")
    futures = submit(engine, *many(3))
    assert {type(future.exception(5)).__name__ for future in futures} == {"BrokerError"}
    assert engine.account().failed == 3
    assert engine.budget.bytes == engine.budget.items == 0


def test_a_future_tells_its_outcome_and_calls_back(cluster: VirtualCluster, client: VirtualClient) -> None:
    engine = engine_of(client)
    prepared = engine.prepare(Message("orders", b"x", tag="t", keys=["k"]))
    with client.driver.enter():
        future: Any = engine.submit(prepared)
    called: list[Any] = []
    future.add_done_callback(called.append)
    assert not future.done()
    assert future.result(timeout=1).message_id == prepared.message_id
    cluster.world.run()
    assert called == [future]
    future.add_done_callback(called.append)
    cluster.world.run()
    assert called == [future, future]


def test_a_future_that_failed_or_is_late(cluster: VirtualCluster, client: VirtualClient) -> None:
    engine = engine_of(client)
    cluster.control.drop("SEND_MESSAGE_V2", times=9)
    (late,) = submit(engine, Message("orders", b"x"))
    with pytest.raises(DeadlineError):
        late.result(timeout=0.5)
    assert isinstance(late.exception(timeout=9), DeadlineError)
    assert late.done()
    client.engine.blocking = False
    (other,) = submit(engine, Message("orders", b"x"))
    with pytest.raises(MQError, match="cannot block"):
        other.result(timeout=1)


def test_what_is_abandoned_ends_with_the_reason(cluster: VirtualCluster, client: VirtualClient) -> None:
    engine = engine_of(client, batch_max_messages=1)
    sent, behind = (submit(engine, message, key="k")[0] for message in many(2))
    with client.driver.enter():
        engine._batching.abandon(DeadlineError("too late"))
    assert isinstance(behind.exception(0), DeadlineError)
    assert sent.result(5).ok
    assert not LaneKey("orders", None).ordered

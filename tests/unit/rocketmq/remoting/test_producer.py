"""Sending: another broker is tried while time is left; a key keeps its queue; batches are cut where the limits are."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError, MQError
from mqclient.rocketmq.codes import BrokerError
from mqclient.rocketmq.model import Message, MessageQueue, PartialSendError, Receipt
from mqclient.rocketmq.remoting.producer import ProducerEngine, checked
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec, brokers=2)
    cluster.topic("orders", 2)
    return cluster


def stored(cluster: VirtualCluster, topic: str) -> int:
    return sum(
        queue.log.next
        for service in cluster.door.services
        if topic in service.broker.topics
        for queue in service.broker.topics[topic].queues.values()
    )


def test_messages_go_round_all_queues(cluster: VirtualCluster) -> None:
    receipts = cluster.client().produce(*[Message("orders", b"x") for _ in range(8)])
    assert len({receipt.queue for receipt in receipts}) == 4
    assert sorted(receipt.offset for receipt in receipts) == [0, 0, 0, 0, 1, 1, 1, 1]


def test_a_busy_broker_is_followed_by_the_other(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.produce(Message("orders", b"x"), Message("orders", b"x"))
    cluster.control.answer("SEND_MESSAGE_V2", 2, "[TIMEOUT_CLEAN_QUEUE]")
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok
    assert cluster.control.count("SEND_MESSAGE_V2") == 4


def test_a_silent_broker_leaves_time_for_the_other(cluster: VirtualCluster) -> None:
    client = cluster.client()
    cluster.control.drop("SEND_MESSAGE_V2")
    before = cluster.world.mono
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok
    assert 1.0 < cluster.world.mono - before < 2.0


def test_a_lost_connection_is_followed_by_the_other_broker(cluster: VirtualCluster) -> None:
    client = cluster.client()
    cluster.control.cut("SEND_MESSAGE_V2")
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok


def test_an_answer_that_no_other_broker_would_change_is_final(cluster: VirtualCluster) -> None:
    cluster.control.answer("SEND_MESSAGE_V2", 13, "message illegal")
    (error,) = cluster.client().produce(Message("orders", b"x"))
    assert isinstance(error, BrokerError)
    assert (error.code, error.retriable) == (13, False)
    assert stored(cluster, "orders") == 0


def test_when_all_fail_the_last_error_is_told_at_the_deadline(cluster: VirtualCluster) -> None:
    cluster.control.drop("SEND_MESSAGE_V2", times=10)
    before = cluster.world.mono
    (error,) = cluster.client().produce(Message("orders", b"x"))
    assert isinstance(error, DeadlineError)
    assert error.outcome_unknown
    assert cluster.world.mono - before == pytest.approx(3.0)


def test_stored_with_less_safety_is_told_apart(cluster: VirtualCluster) -> None:
    cluster.control.answer("SEND_MESSAGE_V2", 11, "")
    (receipt,) = cluster.client().produce(Message("orders", b"x"))
    assert (receipt.ok, receipt.status) == (True, "SLAVE_NOT_AVAILABLE")


def test_no_name_server_is_an_error_that_names_it(cluster: VirtualCluster) -> None:
    cluster.world.refuse(("names", 9876))
    (error,) = cluster.client().produce(Message("orders", b"x"))
    assert isinstance(error, LinkError)
    assert "names:9876" in str(error)


def test_batches_hold_one_topic_one_key_and_no_delayed_message(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        engine = ProducerEngine(client.engine, "p")
    messages = [
        Message("orders", b"0"),
        Message("other", b"1"),
        Message("orders", b"2", delay_level=1),
        Message("orders", b"3"),
        Message("orders", b"x" * 700_000),
        Message("orders", b"x" * 700_000),
        Message("orders", b"6"),
    ]
    prepared = engine.prepare_many(messages, lambda message: "k" if message.body == b"3" else None)
    assert engine._batches(prepared) == [[0, 4], [1], [2], [3], [5, 6]]
    with client.driver.enter():
        slot = engine.submit_many(prepared, None)
    results = client.driver.wait(slot)
    assert [result.ok for result in results] == [True] * 7
    assert len({result.message_id for result in results}) == 7  # type: ignore[union-attr]
    assert results[6].offset == results[5].offset + 1  # type: ignore[union-attr]


def test_many_at_once_to_a_new_topic_ask_for_its_route_once(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        engine = ProducerEngine(client.engine, "p")
    prepared = [engine.prepare(Message("fresh", b"%d" % number)) for number in range(50)]
    with client.driver.enter():
        slots = [engine.submit(one, None) for one in prepared]
    for slot in slots:
        assert client.driver.wait(slot)[0].ok
    assert cluster.control.count("GET_ROUTEINFO_BY_TOPIC") == 2  # the topic's, then the template's


def test_after_the_close_nothing_is_sent(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.produce(Message("orders", b"x"))
    with client.driver.enter():
        slot = client.engine.shutdown()
    client.driver.wait(slot)
    cluster.world.run()
    assert all(not service.members.producers for service in cluster.door.services)
    with pytest.raises(ClosedError), client.driver.enter():
        ProducerEngine(client.engine, "again").submit(None, None)  # type: ignore[arg-type]


def test_a_future_tells_its_outcome_and_calls_back(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        engine = ProducerEngine(client.engine, "p")
    prepared = engine.prepare(Message("orders", b"x", tag="t", keys=["k"]))
    with client.driver.enter():
        future = engine.submit_future(prepared)
    called: list[Any] = []
    future.add_done_callback(called.append)
    assert not future.done()
    assert future.result(timeout=1).message_id == prepared.message_id
    cluster.world.run()
    assert called == [future]
    future.add_done_callback(called.append)
    cluster.world.run()
    assert called == [future, future]


def test_a_future_that_failed_or_is_late(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        engine = ProducerEngine(client.engine, "p")
    cluster.control.drop("SEND_MESSAGE_V2", times=9)
    with client.driver.enter():
        late = engine.submit_future(engine.prepare(Message("orders", b"x")))
    with pytest.raises(DeadlineError):
        late.result(timeout=0.5)
    assert isinstance(late.exception(timeout=9), DeadlineError)
    assert late.done()
    client.engine.blocking = False
    with client.driver.enter():
        other = engine.submit_future(engine.prepare(Message("orders", b"x")))
    with pytest.raises(MQError, match="cannot block"):
        other.result(timeout=1)


def test_oneway_messages_are_written_and_not_waited_for(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        engine = ProducerEngine(client.engine, "p")
    for topic in ("orders", "fresh"):
        prepared = engine.prepare(Message(topic, b"x"), "key")
        with client.driver.enter():
            slot = engine.submit_oneway(prepared)
        client.driver.wait(slot)
        cluster.world.run()
        assert stored(cluster, topic) == 1


def test_a_group_has_one_producer_a_client(cluster: VirtualCluster) -> None:
    client = cluster.client()
    client.produce(Message("orders", b"x"))
    with pytest.raises(ConfigError, match="has a producer"), client.driver.enter():
        ProducerEngine(client.engine, "producers")


def test_results_of_many_as_one_error() -> None:
    good: list[Receipt | MQError] = [Receipt(MessageQueue("t", "b", 0), 0, "", "")]
    assert checked(list(good), True) == good
    bad: list[Receipt | MQError] = [*good, DeadlineError("late")]
    assert checked(list(bad), False) == bad
    with pytest.raises(PartialSendError, match="1 of 2"):
        checked(list(bad), True)

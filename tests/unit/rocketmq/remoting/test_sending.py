"""One request's tries: other brokers by advice, weaker outcomes, pauses for busy ones, caps."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import DeadlineError
from mqclient.rocketmq.codes import BrokerError
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


def make(codec: Any, brokers: int, **options: Any) -> tuple[VirtualCluster, Any]:
    cluster = VirtualCluster(codec, brokers=brokers)
    cluster.topic("orders", 2)
    client = cluster.client()
    with client.driver.enter():
        ProducerEngine(client.engine, "producers", ProducerOptions(**options))
    return cluster, client


def test_one_busy_broker_is_asked_again_after_a_pause(codec: Any) -> None:
    cluster, client = make(codec, 1)
    cluster.control.answer("SEND_MESSAGE_V2", 2, "[TIMEOUT_CLEAN_QUEUE]", times=2)
    before = cluster.world.mono
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok
    assert cluster.world.mono - before == pytest.approx(0.06)


def test_whatever_goes_wrong_on_the_way_is_told_to_who_sends_and_ends_nothing_else(
    codec: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, client = make(codec, 1)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    with monkeypatch.context() as patch:
        patch.setattr(ProducerEngine, "choose", broken)
        (error,) = client.produce(Message("orders", b"x"))
    assert isinstance(error, ZeroDivisionError)
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok


def test_tries_have_an_end(codec: Any) -> None:
    cluster, client = make(codec, 2, attempts=5)
    cluster.control.answer("SEND_MESSAGE_V2", 1, "no", times=9)
    (error,) = client.produce(Message("orders", b"x"))
    assert isinstance(error, BrokerError)
    assert cluster.control.count("SEND_MESSAGE_V2") == 5


@pytest.mark.parametrize("code", [1, 29], ids=["4.x", "5.x"])
def test_where_a_queue_is_gone_the_next_try_is_by_the_new_route(codec: Any, code: int) -> None:
    cluster, client = make(codec, 1, attempts=3)
    (receipt,) = client.produce(Message("orders", b"before"))
    asked = cluster.control.count("GET_ROUTEINFO_BY_TOPIC")
    cluster.control.answer("SEND_MESSAGE_V2", code, "request queueId[1] is illegal, TopicConfig [...", times=1)
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok
    assert cluster.control.count("GET_ROUTEINFO_BY_TOPIC") == asked + 1
    cluster.control.answer("SEND_MESSAGE_V2", code, "request queueId[1] is illegal, TopicConfig [...", times=9)
    before = cluster.control.count("SEND_MESSAGE_V2")
    (error,) = client.produce(Message("orders", b"x"))
    assert error.code == code
    assert cluster.control.count("SEND_MESSAGE_V2") == before + 3


def test_one_try_takes_no_more_than_its_cap(codec: Any) -> None:
    cluster, client = make(codec, 2, attempt_timeout=0.2)
    cluster.control.drop("SEND_MESSAGE_V2", times=2)
    before = cluster.world.mono
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.ok
    assert cluster.world.mono - before == pytest.approx(0.4)


@pytest.mark.parametrize(("code", "status"), [(10, "FLUSH_DISK_TIMEOUT"), (12, "FLUSH_SLAVE_TIMEOUT")])
def test_stored_with_less_safety_is_an_answer(codec: Any, code: int, status: str) -> None:
    cluster, client = make(codec, 2)
    cluster.control.answer("SEND_MESSAGE_V2", code, "")
    (receipt,) = client.produce(Message("orders", b"x"))
    assert (receipt.status, receipt.ok) == (status, True)
    assert client.engine.producers["producers"].account().weaker == 1


def test_or_is_tried_elsewhere_if_that_is_wanted(codec: Any) -> None:
    cluster, client = make(codec, 2, retry_unless_safe=True)
    cluster.control.answer("SEND_MESSAGE_V2", 11, "")
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.status == "SEND_OK"
    cluster.control.answer("SEND_MESSAGE_V2", 11, "")
    cluster.control.answer("SEND_MESSAGE_V2", 13, "worse")
    (receipt,) = client.produce(Message("orders", b"x"))
    assert receipt.status == "SLAVE_NOT_AVAILABLE"


def test_a_broker_that_failed_is_left_alone_for_a_while(codec: Any) -> None:
    cluster, client = make(codec, 2, avoid_slow_brokers=True)
    cluster.control.answer("SEND_MESSAGE_V2", 1, "no")
    receipts = client.produce(*[Message("orders", b"x") for _ in range(6)])
    assert len({receipt.queue.broker_name for receipt in receipts}) == 1
    cluster.world.advance(11)
    receipts = client.produce(*[Message("orders", b"x") for _ in range(6)])
    assert len({receipt.queue.broker_name for receipt in receipts}) == 2


def test_no_time_left_is_said_and_nothing_is_sent(codec: Any) -> None:
    cluster, client = make(codec, 1)
    engine = client.engine.producers["producers"]
    client.produce(Message("orders", b"x"))
    with client.driver.enter():
        slot, _ = engine.send(engine.prepare(Message("orders", b"x")), client.driver.now.mono)
    with pytest.raises(DeadlineError, match="no time left") as caught:
        client.driver.wait(slot)
    assert cluster.control.count("SEND_MESSAGE_V2") == 1
    assert caught.value.outcome_unknown is False
    assert (engine.account().failed, engine.account().unknown) == (1, 0)


def test_a_silent_name_server_takes_no_more_than_the_messages_time(codec: Any) -> None:
    cluster, client = make(codec, 1)
    cluster.control.drop("GET_ROUTEINFO_BY_TOPIC", times=9)
    engine = client.engine.producers["producers"]
    before = cluster.world.mono
    with client.driver.enter():
        slot, _ = engine.send(engine.prepare(Message("orders", b"x")), client.driver.now.mono + 1.0)
    with pytest.raises(DeadlineError, match=r"no route of orders in time: name server names:9876") as caught:
        client.driver.wait(slot)
    assert cluster.world.mono - before == pytest.approx(1.0)
    assert caught.value.outcome_unknown is False
    cluster.world.advance(5)  # the name server's own time ends later, and changes nothing
    assert engine.account().failed == 1


def test_a_refusal_after_a_silent_try_leaves_the_outcome_unknown(codec: Any) -> None:
    cluster, client = make(codec, 2, attempt_timeout=0.2)
    client.produce(Message("orders", b"x"))
    cluster.control.drop("SEND_MESSAGE_V2")
    cluster.control.answer("SEND_MESSAGE_V2", 13, "no")  # faults of one kind of request are used up one by one
    (error,) = client.produce(Message("orders", b"x"))
    assert (error.code, error.outcome_unknown) == (13, True)
    assert client.engine.producers["producers"].account().unknown == 1


def test_what_never_left_has_failed_for_certain(codec: Any) -> None:
    cluster, client = make(codec, 1)
    cluster.world.refuse(cluster.broker.broker.host)
    (error,) = client.produce(Message("orders", b"x"))
    assert (error.outcome_unknown, error.retriable) == (False, True)
    assert client.engine.producers["producers"].account().failed == 1

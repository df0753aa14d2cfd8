"""Which queues a broker gives to a member: pulled by the clients' own rules, popped all by all or by neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw, body_of


@pytest.fixture(name="broker", scope="module")
def broker_fixture(codec: Any) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["rocketmq"], impl=codec, brokers=2) as broker:
        for service in broker._doors[0].services:  # type: ignore[attr-defined]
            broker.control.call(service.broker.make_topic, "spread", 4)
        yield broker


def queues(raw: Raw, client_id: str, group: str = "team", **more: Any) -> Any:
    asked = {"topic": "spread", "consumerGroup": group, "clientId": client_id, "strategyName": "AVG"}
    answer = raw.ask(Request.QUERY_ASSIGNMENT, write_body(asked | {"messageModel": "CLUSTERING"} | more))
    entries = body_of(answer).get("messageQueueAssignments")
    if entries is None:
        return None
    return [
        (entry["mode"], entry["messageQueue"]["brokerName"][-1], entry["messageQueue"]["queueId"]) for entry in entries
    ]


def mode(raw: Raw, group: str, share: int, topic: str = "spread") -> Any:
    body = {"topic": topic, "consumerGroup": group, "mode": "POP", "popShareQueueNum": share}
    return raw.ask(Request.SET_MESSAGE_REQUEST_MODE, write_body(body))


def join(connect: Connect, group: str, count: int) -> list[Raw]:
    members = [connect() for _ in range(count)]
    for number, member in enumerate(members):
        member.heartbeat(f"m{number}", group, {"spread": 1})
    return members


def test_pulled_as_clients_would_share(connect: Connect) -> None:
    raw = join(connect, "team", 3)[0]
    shares = [queues(raw, f"m{number}") for number in range(3)]
    assert shares[0] == [("PULL", "a", 0), ("PULL", "a", 1), ("PULL", "a", 2)]
    assert [queue for share in shares for queue in share] == [
        ("PULL", name, queue) for name in "ab" for queue in range(4)
    ]
    circle = queues(raw, "m1", strategyName="AVG_BY_CIRCLE")
    assert circle == [("PULL", "a", 1), ("PULL", "b", 0), ("PULL", "b", 3)]


def test_equal_ids_have_equal_shares(connect: Connect) -> None:
    for _ in range(2):
        raw = connect()
        raw.heartbeat("same", "twins", {"spread": 1})
    assert queues(raw, "same", "twins") == [("PULL", "a", queue) for queue in range(4)]


def test_who_has_none_and_who_keeps_what_it_has(connect: Connect) -> None:
    (raw,) = join(connect, "alone", 1)
    assert queues(raw, "stranger", "alone") == []
    assert queues(raw, "m0", "nobody") is None
    assert queues(raw, "m0", "alone", topic="nosuchtopic") is None
    assert queues(raw, "m0", "alone", strategyName="CONSISTENT_HASH") is None
    assert len(queues(raw, "stranger", "alone", messageModel="BROADCASTING")) == 8


def test_popped_by_all(connect: Connect) -> None:
    raw = join(connect, "poppers", 2)[0]
    assert mode(raw, "poppers", 0).code == 0
    assert queues(raw, "m1", "poppers") == [("POP", "a", -1), ("POP", "b", -1)]


def test_popped_with_neighbours(connect: Connect) -> None:
    raw = join(connect, "neighbours", 4)[0]
    mode(raw, "neighbours", 1)
    assert [queue[1:] for queue in queues(raw, "m3", "neighbours")] == [("b", 2), ("b", 3), ("a", 0), ("a", 1)]
    raw = join(connect, "crowd", 10)[0]
    mode(raw, "crowd", 2)
    assert queues(raw, "m9", "crowd") == [("POP", "a", 1)]


def test_modes_are_kept_and_some_refused(raw: Raw) -> None:
    assert (mode(raw, "g", 1, "%RETRY%g").code, mode(raw, "g", 1, "nosuchtopic").code) == (16, 17)
    assert mode(raw, "shown", 3).code == 0
    shown = body_of(raw.ask(Request.GET_ALL_MESSAGE_REQUEST_MODE))["messageRequestModeMap"]["spread"]["shown"]
    assert shown == {"consumerGroup": "shown", "mode": "POP", "popShareQueueNum": 3, "topic": "spread"}


def test_a_retry_topic_is_pulled_and_balancing_can_be_off(connect: Connect) -> None:
    (raw,) = join(connect, "single", 1)
    assert queues(raw, "m0", "single", topic="%RETRY%single") == [("PULL", "a", 0)]
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"serverLoadBalancerEnable=false")
    assert len(queues(raw, "stranger", "single")) == 8
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"serverLoadBalancerEnable=true")

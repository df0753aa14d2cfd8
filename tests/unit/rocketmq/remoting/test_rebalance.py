"""Rebalance: shares that cover everything, revokes before grants, rounds that are not lost."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 8)
    return cluster


def test_members_come_and_go_and_every_queue_has_one_owner(cluster: VirtualCluster) -> None:
    members = []
    for count in range(1, 5):
        members.append(cluster.client().push("billing", "orders"))
        cluster.world.advance(5)
        owned = sorted(queue for member in members for queue in member.queues("orders"))
        assert owned == list(range(8)), count
    members.pop().close()
    cluster.world.advance(5)
    assert sorted(queue for member in members for queue in member.queues("orders")) == list(range(8))


def test_a_member_that_vanished_is_noticed(cluster: VirtualCluster) -> None:
    stays, goes = (cluster.client().push("billing", "orders") for _ in range(2))
    cluster.world.advance(2)
    for wire in list(goes.driver.wires):
        wire.link = None
        wire.lose()
    cluster.world.advance(5)
    assert stays.queues("orders") == list(range(8))


def test_a_callable_is_a_rule_and_assignments_are_told(cluster: VirtualCluster) -> None:
    told: list[list[MessageQueue]] = []
    push = cluster.client().push("billing", "orders", rule=lambda group, own, queues, members: queues[:3])
    push.member.on_assignment = told.append
    cluster.world.advance(1)
    assert push.queues("orders") == [0, 1, 2]
    cluster.broker.broker.topics["orders"].read_queues = 2
    cluster.world.advance(40)
    assert [queue.queue_id for queue in told[-1]] == [0, 1]


def test_nobody_rebalances_in_vain(cluster: VirtualCluster) -> None:
    push = cluster.client().push("billing", "orders")
    cluster.world.advance(5)
    rounds = push.member.rebalance.rounds
    cluster.world.advance(60)
    assert push.member.rebalance.rounds - rounds == 3  # every twenty seconds


def test_what_fails_is_tried_again_in_a_second(cluster: VirtualCluster, caplog: pytest.LogCaptureFixture) -> None:
    cluster.control.answer("GET_CONSUMER_LIST_BY_GROUP", 2, "busy", times=4)
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        push = cluster.client().push("billing", "orders")
        cluster.world.advance(5)
    assert push.queues("orders") == list(range(8))
    assert sum("cannot rebalance orders" in record.getMessage() for record in caplog.records) == 1


def test_a_broker_that_does_not_know_the_group_is_told_first(cluster: VirtualCluster) -> None:
    cluster.control.answer("GET_CONSUMER_LIST_BY_GROUP", 1, "no consumer for this group", times=2)
    push = cluster.client().push("billing", "orders")
    cluster.world.advance(5)
    assert push.queues("orders") == list(range(8))


def test_a_queue_whose_start_is_not_known_waits_for_the_next_round(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.control.answer("QUERY_CONSUMER_OFFSET", 2, "busy")
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        push = cluster.client().push("billing", "orders")
        assert len(push.queues("orders")) in (7, 8)
        cluster.world.advance(3)
    assert push.queues("orders") == list(range(8))
    assert sum("cannot start" in record.getMessage() for record in caplog.records) == 1


def test_a_bug_in_a_rule_is_told_and_the_next_round_comes(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[int] = []

    def rule(group: str, own: str, queues: list[MessageQueue], members: list[str]) -> list[MessageQueue]:
        calls.append(1)
        if len(calls) == 1:
            raise ZeroDivisionError
        return queues

    push = cluster.client().push("billing", "orders", rule=rule)
    cluster.world.advance(25)
    assert push.queues("orders") == list(range(8))
    assert any("a rebalance of billing failed" in record.getMessage() for record in caplog.records)


def test_a_topic_that_comes_later_is_found(cluster: VirtualCluster, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        push = cluster.client().push("billing", "later")
        assert push.started.done
        assert push.started.error is None
        assert any("later, which is not there yet" in record.getMessage() for record in caplog.records)
        cluster.topic("later", 2)
        cluster.world.advance(5)
    assert push.queues("later") == [0, 1]


def test_a_list_without_us_is_asked_for_again_in_a_second(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen on a real broker: the others reckon with us, so what is ours would be nobody's for twenty seconds."""
    stays, client = cluster.client().push("billing", "orders"), cluster.client()
    cluster.world.advance(2)
    ask, until = client.engine.ask_body_steps, cluster.world.mono + 1.5

    def forgetful(address: Any, code: Any, fields: Any, *rest: Any) -> Any:
        body = yield from ask(address, code, fields, *rest)
        if code == Request.GET_CONSUMER_LIST_BY_GROUP and cluster.world.mono < until:
            body = {"consumerIdList": [stays.member.client.client_id]}
        return body

    monkeypatch.setattr(client.engine, "ask_body_steps", forgetful)
    joins = client.push("billing", "orders")
    cluster.world.advance(1)
    assert (len(stays.queues("orders")), joins.queues("orders")) == (4, [])
    cluster.world.advance(2)
    assert sorted(stays.queues("orders") + joins.queues("orders")) == list(range(8))
    assert len(joins.queues("orders")) == 4

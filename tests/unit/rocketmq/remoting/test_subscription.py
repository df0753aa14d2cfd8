"""Story 1: code 25 frightens nobody, because no pull carries a version that its broker has not acknowledged."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mqclient.broker.remoting.membership import ConsumerGroup
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Response
from mqclient.rocketmq.remoting.joining import start_offset_steps
from mqclient.rocketmq.remoting.rebalance import Rebalance
from mqclient.rocketmq.remoting.subscription import Subscriptions, parse_tags
from tests.unit.rocketmq.remoting.cluster import VirtualCluster

LINE = (
    "consumer:billing execute the pull request, code:25, message:the consumer's subscription not latest, "
    "(might be ok if at rebalancing), topic:orders, broker:broker-a"
)


class Refusals:
    """Counts what a cluster answers to pulls."""

    def __init__(self, cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.codes: list[int] = []
        for service in cluster.door.services:
            answer = service.members.check_version

            def counted(group: str, topic: str, version: int, answer: Any = answer) -> Any:
                try:
                    return answer(group, topic, version)
                except Exception as refused:
                    self.codes.append(refused.reply.code)  # type: ignore[attr-defined]
                    raise

            monkeypatch.setattr(service.members, "check_version", counted)


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec, brokers=2)
    cluster.topic("orders", 2)
    return cluster


def test_a_normal_start_and_a_normal_rebalance_meet_no_code_25(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = Refusals(cluster, monkeypatch)
    a = cluster.client().push("billing", "orders")
    cluster.world.advance(5)
    assert len(a.member.queues) == 4 + len(cluster.door.services)  # with the retry topic's
    b = cluster.client().push("billing", "orders")
    cluster.world.advance(45)
    assert [len(a.next_offsets("orders")), len(b.next_offsets("orders"))] == [2, 2]
    c = cluster.client().push("billing", "orders")
    cluster.world.advance(45)
    a.close()
    cluster.world.advance(45)
    assert refusals.codes == []
    assert [member.member.not_latest for member in (a, b, c)] == [0, 0, 0]
    assert len(b.next_offsets("orders")) + len(c.next_offsets("orders")) == 4


@pytest.mark.parametrize("latency", [0.001, 0.2])
def test_slow_wires_make_no_difference(codec: Any, monkeypatch: pytest.MonkeyPatch, latency: float) -> None:
    cluster = VirtualCluster(codec)
    cluster.world.latency = latency
    cluster.topic("orders", 4)
    refusals = Refusals(cluster, monkeypatch)
    members = []
    for _ in range(4):
        members.append(cluster.client().push("billing", "orders"))
        cluster.world.advance(25)
    assert sorted(len(member.next_offsets("orders")) for member in members) == [1, 1, 1, 1]
    assert refusals.codes == []


def test_without_the_cure_it_comes_and_is_one_quiet_line(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refusals = Refusals(cluster, monkeypatch)
    # The pull carries the newest version at once, as the Java client's does; the heartbeat comes later.
    monkeypatch.setattr(Subscriptions, "usable", lambda self, address, topic: self.versions()[topic])
    monkeypatch.setattr(Rebalance, "_start_steps", lambda self, queue, _: start_offset_steps(self._member, queue))
    cluster.control.delay("HEART_BEAT", 2.0, times=100, skip=2)
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        consumer = cluster.client().push("billing", "orders")
        cluster.world.advance(30)
    assert Response.SUBSCRIPTION_NOT_LATEST in refusals.codes
    lines = [record for record in caplog.records if "code:25" in record.getMessage()]
    assert [record.getMessage() for record in lines if "broker-a" in record.getMessage()] == [LINE]
    assert all(record.exc_info is None for record in lines)
    assert not any("RETRY" in record.getMessage() for record in lines)
    assert consumer.member.not_latest >= 1
    assert len(consumer.next_offsets("orders")) == 4


def test_a_broker_that_forgot_us_learns_before_the_next_pull(cluster: VirtualCluster) -> None:
    got: list[bytes] = []
    client = cluster.client()
    client.push("billing", "orders", lambda messages: got.extend(m.body for m in messages), start="first")
    cluster.world.advance(1)
    cluster.broker.members.consumers.clear()  # as after a restart
    cluster.fill("orders", 1)
    cluster.world.advance(3)
    assert sorted(got) == [b"0-0", b"1-0"]


def test_a_broker_that_kept_the_older_of_two_beats_learns_before_the_next_pull(cluster: VirtualCluster) -> None:
    got: list[bytes] = []
    consumer = cluster.client().push(
        "billing", "orders", lambda messages: got.extend(m.body for m in messages), start="first"
    )
    cluster.world.advance(1)
    # Two members' beats at one moment: both found an older version, the older of the two was put last.
    cluster.broker.members.consumers["billing"].subscriptions["orders"]["subVersion"] = 1
    cluster.fill("orders", 2)
    cluster.world.advance(20)
    assert sorted(got) == [b"0-0", b"0-1", b"1-0", b"1-1"]
    assert 1 <= consumer.member.not_latest <= 4  # once a queue, not every second until the next beat


@pytest.mark.parametrize("new", [False, True], ids=["raised", "new group"])
def test_beats_of_two_members_at_one_moment_bring_no_code_25(
    cluster: VirtualCluster, monkeypatch: pytest.MonkeyPatch, new: bool
) -> None:
    # Sequence: A's beat and B's find no or an older version; B's is answered; A's, older, is put last; B pulls.
    refusals = Refusals(cluster, monkeypatch)
    others = [] if new else [cluster.client().push("billing", "orders") for _ in range(2)]
    cluster.world.advance(45)
    undone: list[tuple[int, int]] = []
    subscribe = ConsumerGroup.subscribe

    def racing(group: ConsumerGroup, subscriptions: Any) -> bool:
        """Who raises the version is answered, and then loses to the elder."""
        before = group.subscriptions.get("orders", {}).get("subVersion", 1)
        changed = subscribe(group, subscriptions)
        kept = group.subscriptions.get("orders")
        if kept is not None and kept["subVersion"] > before and (id(group), kept["subVersion"]) not in undone:
            undone.append((id(group), kept["subVersion"]))
            kept["subVersion"] = before
        return changed

    monkeypatch.setattr(ConsumerGroup, "subscribe", racing)
    if new:
        others.append(cluster.client().push("billing", "orders"))
    else:
        others.pop().close()
    cluster.world.advance(45)
    assert len(undone) >= len(cluster.door.services)
    assert refusals.codes == []
    assert len(others[0].next_offsets("orders")) == 4


def test_versions_only_rise_and_count_only_when_acknowledged() -> None:
    subscriptions = Subscriptions(len)
    subscriptions.subscribe("orders", "a || b", 100)
    assert subscriptions.usable("broker", "orders") == -1
    carried = subscriptions.versions()
    assert subscriptions.raise_version("orders", 90) == 101  # the clock went back, the version does not
    subscriptions.acknowledged("broker", carried)
    assert subscriptions.usable("broker", "orders") == -1  # once: another member's beat may have undone it
    subscriptions.acknowledged("broker", carried)
    assert subscriptions.usable("broker", "orders") == 100
    subscriptions.acknowledged("broker", subscriptions.versions())
    assert subscriptions.usable("broker", "orders") == 100  # the older of the two that it heard
    subscriptions.acknowledged("broker", subscriptions.versions())
    assert subscriptions.usable("broker", "orders") == 101
    subscriptions.unsubscribe("orders")
    subscriptions.acknowledged("broker", subscriptions.versions())
    assert subscriptions.usable("broker", "orders") == -1
    subscriptions.subscribe("orders", "*", 200)
    for _ in range(2):
        subscriptions.acknowledged("broker", subscriptions.versions())
    assert subscriptions.usable("broker", "orders") == 200
    assert subscriptions.usable("other", "orders") == -1
    subscriptions.forget("broker")
    assert subscriptions.usable("broker", "orders") == -1


@pytest.mark.parametrize(("expression", "tags"), [("*", []), ("", []), ("a", ["a"]), (" a||b || a ", ["a", "b"])])
def test_expressions(expression: str, tags: list[str]) -> None:
    assert parse_tags(expression) == tags


def test_an_expression_without_any_tag_is_refused() -> None:
    with pytest.raises(ConfigError, match="names no tag"):
        parse_tags(" || ")

"""Heartbeats: one at a time towards a broker, and only what an answered one carried counts as known."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.rocketmq.model import Message
from tests.unit.rocketmq.remoting.cluster import Push, VirtualClient, VirtualCluster

ADDRESS = "10.0.0.1:10911"


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders")
    return cluster


@pytest.fixture(name="client")
def client_fixture(cluster: VirtualCluster) -> VirtualClient:
    return cluster.client()


@pytest.fixture(name="push")
def push_fixture(cluster: VirtualCluster, client: VirtualClient) -> Push:
    push = client.push("billing", "orders", start="first")
    cluster.world.advance(1)
    return push


def test_producers_and_consumers_are_told_together(cluster: VirtualCluster, client: VirtualClient, push: Push) -> None:
    client.produce(Message("orders", b"x"))
    with client.driver.enter():
        client.engine.heartbeats.beat_all()
    cluster.world.run()
    assert set(cluster.broker.members.producers) == {"producers"}
    group = cluster.broker.members.consumers["billing"]
    assert set(group.subscriptions) == {"orders", "%RETRY%billing"}
    assert [member.client_id for member in group.members.values()] == [client.engine.client_id]


def test_who_asks_during_a_beat_gets_the_next_one(cluster: VirtualCluster, client: VirtualClient, push: Push) -> None:
    before = cluster.control.count("HEART_BEAT")
    with client.driver.enter():
        first = client.engine.heartbeats.beat(ADDRESS)
        version = push.member.subscriptions.raise_version("orders", 1 << 50)
        second, third = client.engine.heartbeats.beat(ADDRESS), client.engine.heartbeats.beat(ADDRESS)
    assert second is third
    cluster.world.run()
    assert [slot.result() for slot in (first, second)] == [True, True]
    assert cluster.control.count("HEART_BEAT") == before + 2
    assert push.member.subscriptions.usable(ADDRESS, "orders") < version  # heard once
    with client.driver.enter():
        client.engine.heartbeats.beat(ADDRESS)
    cluster.world.run()
    assert push.member.subscriptions.usable(ADDRESS, "orders") == version


def test_a_version_raised_while_a_beat_is_under_way_is_not_acknowledged_by_it(
    cluster: VirtualCluster, client: VirtualClient, push: Push
) -> None:
    before = push.member.subscriptions.usable(ADDRESS, "orders")
    with client.driver.enter():
        client.engine.heartbeats.beat(ADDRESS)
        push.member.subscriptions.raise_version("orders", 1 << 50)
    cluster.world.run()
    assert push.member.subscriptions.usable(ADDRESS, "orders") == before


def test_a_refused_beat_acknowledges_nothing(cluster: VirtualCluster, client: VirtualClient, push: Push) -> None:
    cluster.control.answer("HEART_BEAT", 1, "no")
    with client.driver.enter():
        push.member.subscriptions.raise_version("orders", 1 << 50)
        slot = client.engine.heartbeats.beat(ADDRESS)
        following = client.engine.heartbeats.beat(ADDRESS)
    cluster.world.run()
    assert slot.result() is False
    assert following.result() is True


def test_a_lost_connection_takes_the_acknowledgement_with_it(
    cluster: VirtualCluster, client: VirtualClient, push: Push
) -> None:
    cluster.control.cut("HEART_BEAT")
    with client.driver.enter():
        slot = client.engine.heartbeats.beat(ADDRESS)
    cluster.world.run()
    assert slot.result() is False
    assert push.member.subscriptions.usable(ADDRESS, "orders") == -1
    cluster.world.advance(5)  # pulls go on, after a beat
    assert push.member.subscriptions.usable(ADDRESS, "orders") > 0
    assert push.member.not_latest == 0


def test_a_closed_client_beats_no_more(client: VirtualClient, push: Push) -> None:
    with client.driver.enter():
        client.engine.closed = True
        assert client.engine.heartbeats.beat(ADDRESS).result() is False


def test_a_black_hole_is_left_for_a_new_connection(cluster: VirtualCluster, client: VirtualClient, push: Push) -> None:
    got: list[bytes] = []
    push.engine._work.handler = lambda messages: got.extend(message.body for message in messages)
    (wire,) = [wire for wire in client.driver.wires if wire.link is not None and wire.link.address.port == 10911]
    wire.send = lambda data: None  # type: ignore[method-assign]  # what the broker says never arrives
    cluster.fill("orders", 1)
    cluster.world.advance(34)  # the next beat, and its three seconds
    assert client.engine.links[ADDRESS].epoch == 2
    cluster.world.advance(5)
    assert sorted(got) == [b"0-0", b"1-0", b"2-0", b"3-0"]
    assert push.member.not_latest == 0

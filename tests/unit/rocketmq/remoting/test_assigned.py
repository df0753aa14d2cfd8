"""Queues assigned by hand: exact ranges, nothing told to brokers, no jump to another offset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.errors import ClosedError, ConfigError
from mqclient.rocketmq.codes import BrokerError, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.assigned import Ends, RangesRead
from mqclient.rocketmq.remoting.member_options import MemberOptions
from mqclient.rocketmq.remoting.pull_consumer import PullEngine
from mqclient.rocketmq.remoting.subscription import Sql
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster

QUEUE = MessageQueue("orders", "broker-a", 0)
OTHER = MessageQueue("orders", "broker-a", 1)


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 2)
    cluster.fill("orders", 6)
    return cluster


def opened(
    client: VirtualClient, assign: Mapping[MessageQueue, Ends], expression: str = "*"
) -> tuple[PullEngine, Slot[None]]:
    with client.driver.enter():
        engine = PullEngine(client.engine, "g", {}, MemberOptions(pull_batch=4), assign=assign, expression=expression)
        started = engine.start()
    client.cluster.world.advance(1)
    return engine, started


def bodies(client: VirtualClient, engine: PullEngine) -> list[bytes]:
    """Everything that is here."""
    found = []
    with client.driver.enter():
        while (batch := engine.next_batch(100)) is not None:
            found += [message.body for message in batch]
    return found


def test_a_range_is_read_from_its_start_to_before_its_end(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine, _ = opened(client, {QUEUE: (1, 3), OTHER: (2, 2)})
    assert bodies(client, engine) == [b"0-1", b"0-2"]
    cluster.fill("orders", 2)
    client.cluster.world.advance(30)
    assert bodies(client, engine) == []


def test_without_an_end_it_goes_on(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine, _ = opened(client, {QUEUE: 5})
    assert bodies(client, engine) == [b"0-5"]
    with client.driver.enter():
        waits = engine.wait()
    cluster.fill("orders", 1)
    client.cluster.world.advance(1)
    assert waits.done
    assert len(bodies(client, engine)) == 1


def test_brokers_hear_nothing_of_the_group(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine, _ = opened(client, {QUEUE: 0})
    bodies(client, engine)
    client.cluster.world.advance(120)
    with client.driver.enter():
        assert engine.close().done
    assert (dict(cluster.broker.members.consumers), cluster.broker.offsets.stored) == ({}, {})


def test_an_offset_that_is_not_there_is_an_error_and_no_jump(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine, _ = opened(client, {QUEUE: 4711})
    with client.driver.enter(), pytest.raises(BrokerError, match="no offset 4711; the broker proposes 6") as caught:
        engine.next_batch(1)
    assert caught.value.code == Response.PULL_OFFSET_MOVED


def test_who_waits_learns_of_a_wrong_offset(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine, _ = opened(client, {QUEUE: (0, 100)})
    bodies(client, engine)
    with client.driver.enter():
        waits = engine.wait()
        engine.member.correct(engine.member.queues[QUEUE], 0)
    client.cluster.world.run()
    assert waits.done
    with client.driver.enter(), pytest.raises(BrokerError, match="has no offset 6"):
        engine.refill()


def test_a_queue_that_is_not_there(cluster: VirtualCluster) -> None:
    _, started = opened(cluster.client(), {QUEUE: 0, MessageQueue("orders", "broker-a", 7): 0})
    assert isinstance(started.error, ConfigError)
    assert "has no queue 7 of broker 'broker-a'" in str(started.error)


@pytest.mark.parametrize("assign", [{}, {QUEUE: -1}, {QUEUE: (3, 2)}])
def test_what_is_no_range(cluster: VirtualCluster, assign: Mapping[MessageQueue, Ends]) -> None:
    with pytest.raises(ConfigError, match="assign"):
        opened(cluster.client(), assign)


def test_at_the_end_of_all_ranges_nobody_waits_in_vain(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine, _ = opened(client, {QUEUE: (0, 3), OTHER: (1, 2)})
    assert not engine.ended()
    assert sorted(bodies(client, engine)) == [b"0-0", b"0-1", b"0-2", b"1-1"]
    assert engine.ended()
    with client.driver.enter(), pytest.raises(RangesRead, match="read to its end"):
        engine.wait()
    with client.driver.enter(), pytest.raises(RangesRead):
        engine.refill()


def test_a_filter_that_leaves_nothing_of_the_end_ends_the_reading(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 9, tag="paid")
    cluster.fill("orders", 9, tag="void")
    client = cluster.client()
    engine, _ = opened(client, {QUEUE: (0, 24)}, "paid")
    assert len(bodies(client, engine)) == 9
    assert engine.ended()
    client = cluster.client()
    engine, started = opened(client, {QUEUE: (18, 30)}, "paid")
    assert started.done
    assert not engine.ended()
    with client.driver.enter():
        waits = engine.wait()
    cluster.fill("orders", 6, tag="void")
    client.cluster.world.advance(60)
    assert waits.done
    assert engine.ended()


def test_an_expression_that_brokers_refuse_is_told_when_it_opens(cluster: VirtualCluster) -> None:
    _, started = opened(cluster.client(), {QUEUE: (0, 3)}, Sql("n > 3"))
    assert isinstance(started.error, BrokerError)
    assert "enablePropertyFilter=true" in str(started.error)


def test_what_no_later_try_can_cure_is_told(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine, _ = opened(client, {QUEUE: 6})
    with client.driver.enter():
        waits = engine.wait()
        queue = engine.member.queues[QUEUE]
        assert not engine.member.gives_up(queue, BrokerError(Response.SYSTEM_BUSY, "later"))
        assert engine.member.gives_up(queue, BrokerError(Response.SUBSCRIPTION_PARSE_FAILED, "never"))
    client.cluster.world.run()
    assert waits.done
    with client.driver.enter(), pytest.raises(BrokerError, match="never"):
        engine.next_batch(1)


def test_an_expression_belongs_to_its_topic_unless_queues_are_assigned(cluster: VirtualCluster) -> None:
    with pytest.raises(ConfigError, match="goes with assign="):
        PullEngine(cluster.client().engine, "g", {"orders": "*"}, MemberOptions(), expression="paid")


def test_the_client_closes_it(cluster: VirtualCluster) -> None:
    client = cluster.client()
    engine, _ = opened(client, {QUEUE: 6})
    with client.driver.enter():
        waits = engine.wait()
        client.engine.shutdown()
    client.cluster.world.run()
    assert isinstance(waits.error, ClosedError)

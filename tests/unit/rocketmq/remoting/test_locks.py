"""Queue locks: granted, renewed before they end, given up so that nobody waits, noticed when lost."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.locks import QueueLocks
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster

QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(2)]


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 2)
    return cluster


class Holder:
    """A client with locks of its own."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.client: VirtualClient = cluster.client()
        self.lost: list[MessageQueue] = []
        with self.client.driver.enter():
            self.client.engine.routes.fetch("orders")
        cluster.world.run()
        with self.client.driver.enter():
            self.locks = QueueLocks(self.client.engine, "g", self.lost.append)

    def lock(self, *queues: MessageQueue) -> set[MessageQueue]:
        with self.client.driver.enter():
            slot = run_steps(self.locks.lock_steps(queues))
        return self.client.driver.wait(slot)

    def unlock(self, *queues: MessageQueue) -> None:
        with self.client.driver.enter():
            slot = run_steps(self.locks.unlock_steps(queues))
        self.client.driver.wait(slot)

    def valid(self) -> list[bool]:
        with self.client.driver.enter():
            return [self.locks.valid(queue) for queue in QUEUES]


def test_one_has_it_until_it_gives_it_up(cluster: VirtualCluster) -> None:
    one, two = Holder(cluster), Holder(cluster)
    assert one.lock(*QUEUES) == set(QUEUES)
    assert two.lock(*QUEUES) == set()
    one.unlock(QUEUES[0])
    assert two.lock(*QUEUES) == {QUEUES[0]}
    assert (one.valid(), two.valid()) == ([False, True], [True, False])
    with one.client.driver.enter():
        assert [one.locks.since_ms(queue) for queue in QUEUES] == [0, cluster.world.wall_ms]


def test_renewed_it_stays_for_ever(cluster: VirtualCluster) -> None:
    one, two = Holder(cluster), Holder(cluster)
    one.lock(*QUEUES)
    cluster.world.advance(300)
    assert two.lock(*QUEUES) == set()
    assert one.valid() == [True, True]
    with one.client.driver.enter():
        slot = run_steps(one.locks.close_steps())
    one.client.driver.wait(slot)
    assert two.lock(*QUEUES) == set(QUEUES)
    cluster.world.advance(60)
    assert one.valid() == [False, False]


def test_a_lock_that_cannot_be_renewed_ends_here_before_it_ends_there(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    one = Holder(cluster)
    one.lock(*QUEUES)
    cluster.control.answer("LOCK_BATCH_MQ", 1, "no", times=99)
    cluster.world.advance(25)
    assert one.valid() == [True, True]
    cluster.world.advance(10)
    assert one.valid() == [False, False]
    assert one.lost == []  # nobody else can have it yet
    cluster.world.advance(30)
    assert sorted(one.lost) == QUEUES
    assert sum("could not renew the lock" in record.getMessage() for record in caplog.records) == 2


def test_a_lock_that_somebody_else_got_is_lost(cluster: VirtualCluster, caplog: pytest.LogCaptureFixture) -> None:
    one = Holder(cluster)
    one.lock(*QUEUES)
    cluster.broker.locks._owners["g"][QUEUES[1]] = ("other", cluster.world.mono + 20)
    cluster.world.advance(21)
    assert one.lost == [QUEUES[1]]
    assert one.valid() == [True, False]
    assert any("lost the lock" in record.getMessage() for record in caplog.records)


def test_who_cannot_be_told_lets_it_expire(cluster: VirtualCluster) -> None:
    one, two = Holder(cluster), Holder(cluster)
    one.lock(*QUEUES)
    cluster.control.answer("UNLOCK_BATCH_MQ", 1, "no")
    one.unlock(*QUEUES)
    assert two.lock(*QUEUES) == set()
    cluster.world.advance(61)
    assert two.lock(*QUEUES) == set(QUEUES)


def test_an_unlocking_waits_for_the_renewal_under_way(cluster: VirtualCluster) -> None:
    """Else a broker that works on both at once might do the renewal last, and keep the queue for a minute."""
    one = Holder(cluster)
    one.lock(*QUEUES)
    cluster.control.delay("LOCK_BATCH_MQ", seconds=2)
    cluster.world.advance(20.5)
    with one.client.driver.enter():
        slot = run_steps(one.locks.unlock_steps(QUEUES))
    cluster.world.advance(1)
    assert (slot.done, cluster.control.count("UNLOCK_BATCH_MQ")) == (False, 0)
    cluster.world.advance(1)
    assert (slot.done, cluster.control.count("UNLOCK_BATCH_MQ")) == (True, 1)
    assert Holder(cluster).lock(*QUEUES) == set(QUEUES)

"""Administration: topics on every broker, offsets shown, groups reset."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import ConfigError, DeadlineError, RemoteError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.admin import AdminEngine, when_ms
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


class Admin:
    def __init__(self, cluster: VirtualCluster) -> None:
        self.client = cluster.client()
        self.engine = AdminEngine(self.client.engine)

    def run(self, steps: Any) -> Any:
        with self.client.driver.enter():
            slot = run_steps(steps)
        return self.client.driver.wait(slot)


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    return VirtualCluster(codec, brokers=2)


@pytest.fixture(name="admin")
def admin_fixture(cluster: VirtualCluster) -> Admin:
    return Admin(cluster)


def test_topics_are_made_on_every_broker(cluster: VirtualCluster, admin: Admin) -> None:
    admin.run(admin.engine.create_topic_steps("orders", 3, 6))
    assert [service.broker.topics["orders"].write_queues for service in cluster.door.services] == [3, 3]
    assert "orders" in admin.run(admin.engine.topics_steps())


def test_it_waits_until_a_name_server_shows_the_topic(cluster: VirtualCluster, admin: Admin) -> None:
    cluster.control.answer("GET_ROUTEINFO_BY_TOPIC", 17, "not yet", times=3)
    admin.run(admin.engine.create_topic_steps("late", 1, 6))
    assert cluster.control.count("GET_ROUTEINFO_BY_TOPIC") == 4
    cluster.control.answer("GET_ROUTEINFO_BY_TOPIC", 17, "never", times=1000)
    with pytest.raises(DeadlineError, match="no name server shows"):
        admin.run(admin.engine.create_topic_steps("never", 1, 6))
    cluster.control.clear()
    cluster.control.answer("GET_ROUTEINFO_BY_TOPIC", 1, "broken")
    with pytest.raises(RemoteError, match="broken"):
        admin.run(admin.engine.create_topic_steps("broken", 1, 6))


def test_offsets_of_a_group(cluster: VirtualCluster, admin: Admin) -> None:
    cluster.topic("orders", 1)
    cluster.fill("orders", 4)
    cluster.broker.offsets.stored["g", "orders", 0] = 3
    state = admin.run(admin.engine.offsets_steps("orders", "g"))
    assert state == {
        MessageQueue("orders", "broker-a", 0): {"min": 0, "max": 4, "committed": 3},
        MessageQueue("orders", "broker-b", 0): {"min": 0, "max": 0, "committed": None},
    }
    assert admin.run(admin.engine.offsets_steps("orders", None))[MessageQueue("orders", "broker-a", 0)] == {
        "min": 0,
        "max": 4,
    }


def test_a_reset_asks_every_broker(cluster: VirtualCluster, admin: Admin) -> None:
    cluster.topic("orders", 2)
    cluster.fill("orders", 4)
    for service in cluster.door.services:
        service.broker.group("g")
    options: dict[str, Any] = {"model": "clustering", "force": True, "dry_run": False}
    report = admin.run(admin.engine.reset_offset_steps("g", "orders", "latest", **options))
    assert sorted(report.offsets.values()) == [0, 0, 4, 4]
    with pytest.raises(ConfigError, match="model='anycast'"):
        admin.run(admin.engine.reset_offset_steps("g", "orders", "latest", **options | {"model": "anycast"}))
    assert cluster.broker.offsets.resets == {("g", "orders", 0): 4, ("g", "orders", 1): 4}


def test_a_cluster_without_brokers(cluster: VirtualCluster, admin: Admin) -> None:
    cluster.door.cluster.brokers.clear()
    with pytest.raises(ConfigError, match="knows no broker"):
        admin.run(admin.engine.create_topic_steps("orders", 1, 6))
    with pytest.raises(ConfigError, match="queues=0"):
        admin.run(admin.engine.create_topic_steps("orders", 0, 6))


def test_times() -> None:
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert [when_ms(when) for when in ("earliest", "latest", 5, 5.7, moment)] == [0, -1, 5, 5, 1767225600000]
    with pytest.raises(ConfigError, match="when='yesterday'"):
        when_ms("yesterday")


def test_offsets_at_a_time_and_a_group_s_place_by_hand(cluster: VirtualCluster, admin: Admin) -> None:
    cluster.topic("orders", 1)
    cluster.fill("orders", 3)
    noon = cluster.world.wall_ms + 1
    cluster.world.advance(5)
    cluster.fill("orders", 2)
    queue = MessageQueue("orders", "broker-a", 0)
    assert (
        admin.run(admin.engine.offsets_at_steps("orders", datetime.fromtimestamp(noon / 1000, timezone.utc)))[queue]
        == 3
    )
    admin.run(admin.engine.groups.create_steps("g", {}))
    admin.run(admin.engine.commit_steps("g", {queue: 3}))
    assert cluster.broker.offsets.stored["g", "orders", 0] == 3
    with pytest.raises(ConfigError):
        admin.run(admin.engine.commit_steps("no group", {queue: 3}))


def test_a_dry_run_moves_nothing(cluster: VirtualCluster, admin: Admin) -> None:
    cluster.topic("orders", 1)
    cluster.fill("orders", 3)
    cluster.broker.offsets.stored["g", "orders", 0] = 2
    report = admin.run(admin.engine.reset_offset_steps("g", "orders", "earliest", "clustering", True, dry_run=True))
    queue = MessageQueue("orders", "broker-a", 0)
    assert (report.before[queue], report.offsets[queue]) == (2, 0)
    assert cluster.broker.offsets.stored["g", "orders", 0] == 2

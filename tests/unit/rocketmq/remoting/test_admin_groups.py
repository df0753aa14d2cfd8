"""Groups, as operators ask for them."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ConfigError, RemoteError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import admin_groups
from mqclient.rocketmq.remoting.admin_groups import GroupAdmin, Progress
from mqclient.rocketmq.remoting.admin_messages import MessageAdmin
from tests.unit.rocketmq.remoting.cluster import Push, VirtualClient, VirtualCluster

QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    cluster.fill("orders", 4)
    return cluster


@pytest.fixture(name="client")
def client_fixture(cluster: VirtualCluster) -> VirtualClient:
    return cluster.client()


@pytest.fixture(name="push")
def push_fixture(cluster: VirtualCluster) -> Push:
    push = cluster.client().push("g", "orders", start="first")
    cluster.world.advance(6)
    return push


def run(client: VirtualClient, steps: Steps[Any]) -> Any:
    with client.driver.enter():
        slot = run_steps(steps)
    return client.driver.wait(slot)


def test_groups_come_page_by_page(
    cluster: VirtualCluster, client: VirtualClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admin_groups, "PAGE", 2)
    admin = GroupAdmin(client.engine)
    for name in ("a", "b", "c", "d", "e"):
        run(client, admin.create_steps(name, {"retryMaxTimes": 3}))
    assert set(run(client, admin.groups_steps())) >= {"a", "b", "c", "d", "e"}
    assert cluster.broker.broker.groups["a"].retry_max == 3
    run(client, admin.delete_steps("a", True))
    assert "a" not in run(client, admin.groups_steps())
    with pytest.raises(ConfigError, match="group"):
        run(client, admin.create_steps("no such!", {}))


def test_members_and_what_they_say(cluster: VirtualCluster, client: VirtualClient, push: Push) -> None:
    admin, own = GroupAdmin(client.engine), push.member.client.client_id
    (member,) = run(client, admin.connections_steps("g", False))
    assert (member.client_id, member.language) == (own, "PYTHON")
    assert run(client, admin.running_info_steps("g", own))["mqTable"][QUEUE]["commitOffset"] == 4
    assert run(client, admin.status_steps("g", "orders")) == {own: {QUEUE: 4}}
    with pytest.raises(RemoteError):
        run(client, admin.running_info_steps("g", "nobody"))
    with pytest.raises(RemoteError):
        run(client, admin.connections_steps("nobody", True))


def test_progress_is_told_and_cloned(cluster: VirtualCluster, client: VirtualClient, push: Push) -> None:
    admin = GroupAdmin(client.engine)
    cluster.broker.offsets.stored["g", "orders", 0] = 3
    told = run(client, admin.progress_steps("g", "orders"))
    assert (told[QUEUE].end, told[QUEUE].consumed, told[QUEUE].lag) == (4, 3, 1)
    assert QUEUE in run(client, admin.progress_steps("g", None))
    assert Progress(1, 5, 5, 0).lag == 0
    run(client, admin.create_steps("twin", {}))
    run(client, admin.clone_steps("g", "twin", "orders"))
    assert cluster.broker.offsets.stored["twin", "orders", 0] == 3


def test_a_member_consumes_at_our_wish(cluster: VirtualCluster, client: VirtualClient, push: Push) -> None:
    admin, own = GroupAdmin(client.engine), push.member.client.client_id
    (message, *_) = run(client, MessageAdmin(client.engine).between_steps("orders", "first", "last", 9))
    assert run(client, admin.consume_directly_steps("g", own, message))["consumeResult"] == "CR_SUCCESS"
    with pytest.raises(RemoteError, match="nobody: "):
        run(client, admin.consume_directly_steps("g", "nobody", message))
    (foreign,) = cluster.codec.remoting.decode_messages(cluster.codec.remoting.encode_message(b"x", "orders"))
    with pytest.raises(ConfigError, match="read from a broker"):
        run(client, admin.consume_directly_steps("g", own, foreign))

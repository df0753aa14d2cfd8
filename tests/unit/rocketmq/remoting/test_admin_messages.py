"""Messages found by id, key and time; dead letters sent once more."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ConfigError, RemoteError
from mqclient.rocketmq.model import Message, MessageQueue
from mqclient.rocketmq.remoting.admin_messages import FOREVER_MS, MessageAdmin, edge_ms
from mqclient.rocketmq.remoting.handling import Retry
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 2)
    return cluster


@pytest.fixture(name="client")
def client_fixture(cluster: VirtualCluster) -> VirtualClient:
    return cluster.client()


def run(client: VirtualClient, steps: Steps[Any]) -> Any:
    with client.driver.enter():
        slot = run_steps(steps)
    return client.driver.wait(slot)


def test_by_id_and_key(cluster: VirtualCluster, client: VirtualClient) -> None:
    admin = MessageAdmin(client.engine)
    receipts = client.produce(*[Message("orders", b"%d" % number, keys=["k", f"k{number}"]) for number in range(3)])
    for number, receipt in enumerate(receipts):
        for message_id in (receipt.offset_id, receipt.message_id):
            found = run(client, admin.view_steps("orders", message_id))
            assert (found.body, found.queue) == (b"%d" % number, receipt.queue)
    assert [one.body for one in run(client, admin.query_steps("orders", "k", "first", "last", 9))] == [b"0", b"1", b"2"]
    assert len(run(client, admin.query_steps("orders", "k", "first", "last", 2))) == 2
    assert run(client, admin.query_steps("orders", "no", "first", "last", 9)) == []
    for nothing in ("F" * 32, "no id", receipts[0].offset_id[:-1] + "F"):
        with pytest.raises(ConfigError, match="has no message"):
            run(client, admin.view_steps("orders", nothing))
    cluster.control.answer("QUERY_MESSAGE", 16, "no permission")
    with pytest.raises(RemoteError, match="no permission"):
        run(client, admin.query_steps("orders", "k", "first", "last", 9))


def test_by_time(cluster: VirtualCluster, client: VirtualClient) -> None:
    admin = MessageAdmin(client.engine)
    cluster.fill("orders", 40)
    cluster.world.advance(10)
    middle = cluster.world.wall_ms
    cluster.fill("orders", 2)
    assert len(run(client, admin.between_steps("orders", "first", "last", 1000))) == 84
    assert len(run(client, admin.between_steps("orders", "first", middle, 1000))) == 80
    late = run(client, admin.between_steps("orders", middle, "last", 1000))
    assert [(one.queue, one.offset) for one in late] == [
        (MessageQueue("orders", "broker-a", number), offset) for number in (0, 1) for offset in (40, 41)
    ]
    assert len(run(client, admin.between_steps("orders", "first", "last", 50))) == 50
    cluster.control.answer("PULL_MESSAGE", 16, "no", times=9)
    assert run(client, admin.between_steps("orders", "first", "last", 50)) == []
    assert [edge_ms("first"), edge_ms("last"), edge_ms(5)] == [0, FOREVER_MS, 5]


def test_dead_letters_once_more(cluster: VirtualCluster, client: VirtualClient) -> None:
    admin, broken = MessageAdmin(client.engine), [True]
    seen: list[tuple[bytes, str, tuple[str, ...], int]] = []

    def handle(messages: Any) -> None:
        if broken[0]:
            raise Retry(level=-1)
        seen.extend((one.body, one.topic, one.keys, one.attempts) for one in messages)

    push = client.push("g", "orders", handle, start="first")
    client.produce(Message("orders", b"x", keys=["k"], tag="t"))
    cluster.world.advance(25)
    broken[0] = False
    (outcome,) = run(client, admin.resend_steps("g", "first", "last", 9, "group"))
    assert outcome.ok
    cluster.world.advance(25)
    assert seen == [(b"x", "orders", ("k",), 0)]
    (outcome,) = run(client, admin.resend_steps("g", "first", "last", 9, "topic"))
    cluster.world.advance(25)
    assert len(seen) == 2
    cluster.control.answer("SEND_MESSAGE_V2", 16, "no permission", times=9)
    (outcome,) = run(client, admin.resend_steps("g", "first", "last", 9, "topic"))
    assert (outcome.ok, outcome.error.code) == (False, 16)
    push.close()


def test_what_does_not_say_where_it_came_from(cluster: VirtualCluster, client: VirtualClient) -> None:
    admin = MessageAdmin(client.engine)
    cluster.broker.broker.make_topic("%DLQ%g", 1)
    cluster.fill("%DLQ%g", 1)
    (outcome,) = run(client, admin.resend_steps("g", "first", "last", 9, "topic"))
    assert isinstance(outcome.error, ConfigError)
    with pytest.raises(ConfigError, match="'group' or 'topic'"):
        run(client, admin.resend_steps("g", "first", "last", 9, "moon"))

"""Relayed resets: obeyed once, signed where there are credentials, refused where that is wished."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import write_body
from mqclient.rocketmq.remoting.relayed import (
    FRESH_MS,
    MOVED_FIELD,
    REMEMBERED,
    RESET_FIELD,
    Absorber,
    relay_fields,
    signed,
)
from mqclient.rocketmq.signing import acl
from tests.unit.rocketmq.remoting.cluster import Push, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 2)
    cluster.fill("orders", 3)
    return cluster


@pytest.fixture(name="push")
def push_fixture(cluster: VirtualCluster) -> Push:
    push = cluster.client().push("billing", "orders", start="first")
    cluster.world.advance(1)
    return push


def ask(cluster: VirtualCluster, code: int, body: bytes = b"", **fields: str) -> Any:
    """What the only member answers."""
    heard: list[Any] = []
    (member,) = cluster.broker.members.consumers["billing"].members.values()
    member.peer.ask(code, fields, body, 5.0, heard.append)
    cluster.world.run()
    return heard[0] if heard else None


def relay(cluster: VirtualCluster, reset_id: str, offset: int) -> Any:
    """What the member answers to a relayed reset of one queue."""
    body = write_body({"offsetTable": {MessageQueue("orders", "broker-a", 0): offset}})
    fields: dict[str, Any] = {"consumerGroup": "billing", "topic": "orders", RESET_FIELD: reset_id}
    return ask(cluster, Request.GET_CONSUMER_RUNNING_INFO, body, **fields)


def test_a_relayed_reset_is_obeyed_once(cluster: VirtualCluster, push: Push) -> None:
    assert [relay(cluster, "a", 1).field(MOVED_FIELD) for _ in range(2)] == ["1", "0"]
    assert push.engine.handled == 6 + 2
    for number in range(REMEMBERED):
        assert relay(cluster, f"b{number}", 3).field(MOVED_FIELD) == "1"
    assert len(push.member.client.asked._relayed._done) == REMEMBERED


def test_a_relayed_reset_can_be_forbidden(cluster: VirtualCluster) -> None:
    cluster.client(allow_relayed_reset=False).push("billing", "orders", start="first")
    cluster.world.advance(1)
    refused = relay(cluster, "a", 1)
    assert (refused.code, refused.remark) == (16, "relayed resets are not allowed here")


def test_with_credentials_only_our_signature_is_obeyed(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    push = cluster.client(auth=acl("key", "secret")).push("billing", "orders", start="first")
    cluster.world.advance(1)
    body = write_body({"offsetTable": {MessageQueue("orders", "broker-a", 0): 1}})
    now, own = cluster.world.wall_ms, push.member.client.client_id
    plain = relay_fields("billing", own, "orders", "id")
    tries = {
        "unsigned": (plain, body),
        "another secret": (signed(plain, body, "other", now), body),
        "another body": (signed(plain, b"{}", "secret", now), body),
        "another member": (signed(relay_fields("billing", "you", "orders", "id"), body, "secret", now), body),
        "long ago": (signed(plain, body, "secret", now - FRESH_MS - 1), body),
        "well": (signed(plain, body, "secret", now), body),
    }
    answers = {
        name: ask(cluster, Request.GET_CONSUMER_RUNNING_INFO, body, **fields) for name, (fields, body) in tries.items()
    }
    assert {name: answer.code for name, answer in answers.items()} == dict.fromkeys(tries, 16) | {"well": 0}
    assert answers["well"].field(MOVED_FIELD) == "1"
    assert "not signed with our secret key" in answers["unsigned"].remark
    assert "another member" in answers["another member"].remark
    assert "too old" in answers["long ago"].remark
    assert sum("refused the relayed reset" in record.getMessage() for record in caplog.records) == 5
    cluster.world.advance(1)
    assert push.engine.handled == 6 + 2


def test_what_is_told_twice_is_absorbed_once(cluster: VirtualCluster) -> None:
    client = cluster.client()
    queue = MessageQueue("orders", "broker-a", 0)
    absorber = Absorber(client.engine)
    with client.driver.enter():
        assert not absorber.absorbs(queue, 1)
        absorber.expect({queue: 1})
        assert [absorber.absorbs(queue, 1), absorber.absorbs(queue, 1)] == [True, False]
        absorber.expect({queue: 1})
        assert not absorber.absorbs(queue, 2)
        absorber.expect({queue: 1})
    cluster.world.advance(61)
    with client.driver.enter():
        assert not absorber.absorbs(queue, 1)

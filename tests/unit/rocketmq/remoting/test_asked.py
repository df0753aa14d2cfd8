"""What brokers ask of us: answered, or refused in the protocol's own words; never a reason to fail."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import read_body
from tests.support.remoting import message
from tests.unit.rocketmq.remoting.cluster import Push, VirtualClient, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 2)
    cluster.fill("orders", 3)
    return cluster


@pytest.fixture(name="client")
def client_fixture(cluster: VirtualCluster) -> VirtualClient:
    return cluster.client()


@pytest.fixture(name="push")
def push_fixture(cluster: VirtualCluster, client: VirtualClient) -> Push:
    push = client.push("billing", "orders", start="first")
    cluster.world.advance(1)
    return push


def ask(cluster: VirtualCluster, code: int, body: bytes = b"", **fields: str) -> Any:
    """What the only member answers."""
    heard: list[Any] = []
    (member,) = cluster.broker.members.consumers["billing"].members.values()
    member.peer.ask(code, fields, body, 5.0, heard.append)
    cluster.world.run()
    return heard[0] if heard else None


def test_running_info_and_status(cluster: VirtualCluster, push: Push) -> None:
    info = ask(cluster, Request.GET_CONSUMER_RUNNING_INFO, consumerGroup="billing", clientId="x")
    body = read_body(info.body)
    assert "jstack" not in body
    asked: dict[str, Any] = {"consumerGroup": "billing", "clientId": "x", "jstackEnable": "true"}
    told = read_body(ask(cluster, Request.GET_CONSUMER_RUNNING_INFO, **asked).body)
    assert "test_running_info_and_status" in told["jstack"]
    queue = MessageQueue("orders", "broker-a", 0)
    assert body["mqTable"][queue]["commitOffset"] == 3
    assert body["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
    assert {entry["topic"] for entry in body["subscriptionSet"]} == {"orders", "%RETRY%billing"}
    status = ask(cluster, Request.GET_CONSUMER_STATUS_FROM_CLIENT, group="billing", topic="orders")
    assert read_body(status.body)["messageQueueTable"] == {
        queue: 3,
        MessageQueue("orders", "broker-a", 1): 3,
    }


def test_a_group_that_is_not_here(cluster: VirtualCluster, push: Push) -> None:
    for code, name in ((Request.GET_CONSUMER_RUNNING_INFO, "consumerGroup"), (221, "group")):
        fields: dict[str, Any] = {name: "other", "topic": "orders"}
        answer = ask(cluster, code, **fields)
        assert (answer.code, answer.remark) == (1, "The Consumer Group <other> not exist in this consumer")


def test_what_nobody_knows_and_bodies_that_cannot_be_read(
    cluster: VirtualCluster, push: Push, caplog: pytest.LogCaptureFixture
) -> None:
    assert ask(cluster, 9999).code == 3
    broken = ask(cluster, Request.RESET_CONSUMER_CLIENT_OFFSET, b"{{{", group="billing", topic="orders")
    assert broken.code == 1
    assert any("RESET_CONSUMER_CLIENT_OFFSET and it failed" in record.getMessage() for record in caplog.records)
    assert ask(cluster, Request.RESET_CONSUMER_CLIENT_OFFSET, b"", group="other") is None


def test_a_notice_rebalances_the_group_and_no_other(cluster: VirtualCluster, push: Push) -> None:
    before = push.member.rebalance.rounds
    (member,) = cluster.broker.members.consumers["billing"].members.values()
    member.peer.push(Request.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "other"})
    cluster.world.run()
    assert push.member.rebalance.rounds == before
    member.peer.push(Request.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": "billing"})
    cluster.world.run()
    assert push.member.rebalance.rounds == before + 1


def test_a_message_is_consumed_directly(cluster: VirtualCluster, client: VirtualClient) -> None:
    seen: list[Any] = []

    def handle(messages: Any) -> None:
        seen.extend((one.body, one.queue) for one in messages)
        if len(seen) > 1:
            raise ValueError("no more")

    client.push("billing", "orders", handle, start=cluster.world.wall_ms + 1)
    cluster.world.advance(1)
    record = message(cluster.codec.remoting, b"by hand", "orders", queue_id=1)
    fields: dict[str, Any] = {"consumerGroup": "billing", "brokerName": "broker-a"}
    results = []
    for _ in range(2):
        heard: list[Any] = []
        (member,) = cluster.broker.members.consumers["billing"].members.values()
        member.peer.ask(Request.CONSUME_MESSAGE_DIRECTLY, fields, record, 5.0, heard.append)
        cluster.world.advance(0.1)
        results.append(read_body(heard[0].body))
    assert seen[0] == (b"by hand", MessageQueue("orders", "broker-a", 1))
    assert [result["consumeResult"] for result in results] == ["CR_SUCCESS", "CR_THROW_EXCEPTION"]
    assert "no more" in results[1]["remark"]
    nothing = ask(cluster, Request.CONSUME_MESSAGE_DIRECTLY, b"", **fields)
    assert (nothing.code, nothing.remark) == (1, "a message to be consumed is missing")
    other = ask(cluster, Request.CONSUME_MESSAGE_DIRECTLY, record, consumerGroup="other")
    assert other.code == 1

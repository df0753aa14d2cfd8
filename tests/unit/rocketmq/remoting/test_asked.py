"""What brokers ask of us: answered, or refused in the protocol's own words; never a reason to fail."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue, TransactionState
from mqclient.rocketmq.remoting.bodies import read_body, write_body
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from mqclient.rocketmq.remoting.relayed import MOVED_FIELD, RESET_FIELD
from mqclient.rocketmq.remoting.transactions import TransactionEngine
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


def test_a_reset_is_obeyed_by_the_group_that_it_names(cluster: VirtualCluster, push: Push) -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    assert push.engine.handled == 6
    body = write_body({"offsetTable": {queue: 1}})
    ask(cluster, Request.RESET_CONSUMER_CLIENT_OFFSET, body, group="other", topic="orders")
    cluster.world.advance(1)
    assert push.engine.handled == 6
    ask(cluster, Request.RESET_CONSUMER_CLIENT_OFFSET, body, group="billing", topic="orders")
    cluster.world.advance(1)
    assert push.engine.handled == 6 + 2
    assert push.next_offsets("orders")[queue] == 3


def test_a_reset_that_another_client_relays_is_answered_with_what_moved(cluster: VirtualCluster, push: Push) -> None:
    body = write_body({"offsetTable": {MessageQueue("orders", "broker-a", number): 0 for number in range(2)}})
    fields: dict[str, Any] = {"consumerGroup": "billing", "topic": "orders", RESET_FIELD: "id"}
    answer = ask(cluster, Request.GET_CONSUMER_RUNNING_INFO, body, **fields)
    assert (answer.code, answer.field(MOVED_FIELD), answer.body) == (0, "2", b"")
    cluster.world.advance(1)
    assert push.engine.handled == 6 + 6


def test_the_producer_of_a_transaction_is_asked_and_no_other(
    cluster: VirtualCluster, client: VirtualClient, push: Push, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[Any] = []

    def decide(one: Any) -> TransactionState:
        asked.append(one)
        return TransactionState.COMMIT

    with client.driver.enter():
        TransactionEngine.of(client.engine, "pay", ProducerOptions(), decide, 1)
        ProducerEngine(client.engine, "plain")
    (member,) = cluster.broker.members.consumers["billing"].members.values()

    def check(body: bytes) -> list[str]:
        """The broker asks; what is logged."""
        caplog.clear()
        fields = {"tranStateTableOffset": "0", "commitLogOffset": "0", "bname": "broker-a"}
        member.peer.push(Request.CHECK_TRANSACTION_STATE, fields, body)
        cluster.world.advance(1)
        return [record.getMessage() for record in caplog.records if "transaction" in record.getMessage()]

    codec = cluster.codec.remoting
    with caplog.at_level(logging.INFO, "mqclient.remoting"):
        for group in ("plain", "nobody"):
            (told,) = check(message(codec, b"x", "orders", mapping={"PGROUP": group}))
            assert f"a transaction of '{group}': there is no such transactional producer" in told
        assert len(check(b"")) == 1
        assert asked == []
        assert check(message(codec, b"mine", "orders", mapping={"PGROUP": "pay", "UNIQ_KEY": "K"})) == []
    assert [(one.body, one.message_id) for one in asked] == [(b"mine", "K")]


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

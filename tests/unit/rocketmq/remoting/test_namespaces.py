"""Names of a namespace: wrapped in what leaves, stripped from what comes, whatever it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import Message, MessageQueue
from mqclient.rocketmq.remoting.bodies import read_body, write_body
from mqclient.rocketmq.remoting.namespaces import Names, encoded, names_of, of_endpoint, wrapped_keys
from tests.unit.rocketmq.remoting.cluster import VirtualCluster

SHOP = Names("shop")


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("orders", "shop%orders"),
        ("%RETRY%billing", "%RETRY%shop%billing"),
        ("%DLQ%billing", "%DLQ%shop%billing"),
        ("other%orders", "shop%other%orders"),
    ],
)
def test_names_there_and_back(short: str, whole: str) -> None:
    assert SHOP.wrap(short) == whole
    assert SHOP.wrap(whole) == whole
    assert SHOP.strip(whole) == short


@pytest.mark.parametrize(
    "name", ["", "%RETRY%", "TBW102", "RMQ_SYS_TRACE_TOPIC", "rmq_sys_x", "CID_RMQ_SYS_TRANS", "C_REPLY_TOPIC"]
)
def test_names_of_the_system_stay(name: str) -> None:
    assert SHOP.wrap(name) == name


@pytest.mark.parametrize(
    ("address", "namespace"),
    [
        ("http://MQ_INST_123_abc.mq.example.com:80", "MQ_INST_123_abc"),
        ("MQ_INST_1_b.example.com:8080", "MQ_INST_1_b"),
        ("127.0.0.1:9876;10.0.0.1:9876", None),
        (["http://MQ_INST_1_b.example.com"], "MQ_INST_1_b"),
        ([], None),
    ],
)
def test_an_address_may_name_it(address: Any, namespace: str | None) -> None:
    assert of_endpoint(address) == namespace
    found = names_of(None, address)
    assert (found and found.namespace) == namespace
    told = names_of("shop", address)
    assert told is not None
    assert told.namespace == "shop"


@pytest.mark.parametrize("wrong", ["", "a%b", "a b", 7])
def test_what_is_no_name_is_refused(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="namespace="):
        Names(wrong)


def test_fields_and_bodies_of_requests() -> None:
    fields = {"topic": "orders", "consumerGroup": "g", "bname": "orders", "originTopic": "%RETRY%g"}
    body = write_body({"clientId": "topic", "mqSet": [{"topic": "orders"}], "consumerGroup": "g"})
    sent = SHOP.request(Request.LOCK_BATCH_MQ, fields, body)
    assert fields == {
        "topic": "shop%orders",
        "consumerGroup": "shop%g",
        "bname": "orders",
        "originTopic": "%RETRY%shop%g",
    }
    assert read_body(sent) == {"clientId": "topic", "mqSet": [{"topic": "shop%orders"}], "consumerGroup": "shop%g"}
    assert encoded(None, body) == body
    assert encoded(SHOP, body) == sent
    assert wrapped_keys(None, {"orders": 1}) == {"orders": 1}
    assert wrapped_keys(SHOP, {"orders": 1}) == {"shop%orders": 1}


@pytest.mark.parametrize("mark", ["_", "+"])
def test_the_retry_topic_of_who_pops(mark: str) -> None:
    fields = {"topic": f"%RETRY%g{mark}orders", "consumerGroup": "g"}
    SHOP.request(Request.ACK_MESSAGE, fields, b"")
    assert fields["topic"] == f"%RETRY%shop%g{mark}shop%orders"


def test_a_send_keeps_its_body_and_tells_the_namespace() -> None:
    fields = {"a": "producers", "b": "orders", "i": "TAGS\x01t\x02PGROUP\x01producers\x02"}
    body = b'{"topic":"mine"}'
    assert SHOP.request(Request.SEND_MESSAGE_V2, fields, body) == body
    assert fields == {
        "a": "shop%producers",
        "b": "shop%orders",
        "i": "TAGS\x01t\x02PGROUP\x01shop%producers\x02INSTANCE_ID\x01shop\x02",
    }


def stored(codec: Any, topic: str, ipv6: bool = False, **properties: str) -> bytes:
    host = ("::1", 5) if ipv6 else ("10.0.0.1", 5)
    text = codec.remoting.encode_properties(properties)
    record: bytes = codec.remoting.encode_message(
        b"shop%body", topic, properties=text, queue_id=3, offset=9, born_host=host, store_host=host
    )
    return record


@pytest.mark.parametrize("ipv6", [False, True])
def test_messages_come_with_short_names(codec: Any, ipv6: bool) -> None:
    properties = {"KEYS": "shop%k", "RETRY_TOPIC": "shop%orders", "PGROUP": "shop%p"}
    body = stored(codec, "%RETRY%shop%g", ipv6, **properties) + stored(codec, "shop%" + "x" * 123, ipv6)
    plain = SHOP.arrived(body)
    first, second = codec.remoting.decode_messages(plain, check_crc=True)
    assert first.topic == "%RETRY%g"
    assert dict(first.properties) == {"KEYS": "shop%k", "RETRY_TOPIC": "orders", "PGROUP": "p"}
    assert (first.body, first.queue_id, first.offset) == (b"shop%body", 3, 9)
    assert second.topic == "x" * 123
    assert codec.remoting.decode_messages(plain, retry_topic=True)[0].topic == "orders"
    for cut in range(len(body)):  # what is cut off stays so, and the decoder says it
        assert len(SHOP.arrived(body[:cut])) <= cut


def test_a_broken_message_is_left_to_the_decoder(codec: Any) -> None:
    good = stored(codec, "shop%orders")
    for broken in (good[:48] + b"\xff" * 40, b"\x00\x00\x00\x05" + good[4:], good[:-60] + b"\x7f" * 60):
        assert SHOP.arrived(broken + good).endswith(good[-20:])
    assert SHOP.arrived(b"shop%orders") == b"shop%orders"
    assert SHOP.arrived(b"") == b""


def test_frames_come_with_short_names(codec: Any) -> None:
    def came(code: int, fields: dict[str, str], body: bytes) -> tuple[Any, Any]:
        (frame,) = codec.remoting.FrameReader().feed(
            codec.remoting.encode_frame(code, 7, flag=1, fields=fields, body=body, remark="why")
        )
        return frame, SHOP.stripped(codec.remoting, frame)

    queue = MessageQueue("shop%orders", "broker-a", 0)
    table = write_body({"offsetTable": {queue: 5}, "shop%orders@shop%g": 1, "retry": "%RETRY%shop%g"})
    before, after = came(0, {"consumerGroup": "shop%g", "remark": "shop%g"}, table)
    assert (after.code, after.opaque, after.flag, after.remark) == (0, 7, 1, "why")
    assert dict(after.fields) == {"consumerGroup": "g", "remark": "shop%g"}
    assert read_body(after.body) == {
        "offsetTable": {MessageQueue("orders", "broker-a", 0): 5},
        "orders@g": 1,
        "retry": "%RETRY%g",
    }
    before, after = came(0, {"offset": "5"}, b"")
    assert after is before
    reply = b'{"topic":"shop%orders"}'  # the user's
    _, after = came(Request.PUSH_REPLY_MESSAGE_TO_CLIENT, {"topic": "shop%orders"}, reply)
    assert (after.field("topic"), bytes(after.body)) == ("orders", reply)


def test_a_group_lives_in_its_namespace(codec: Any, tmp_path: Path) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("shop%orders", 1)
    cluster.topic("orders", 1)
    client = cluster.client(namespace="shop", offset_dir=str(tmp_path))
    (receipt,) = client.produce(Message("orders", b"x", keys=["k"]))
    assert receipt.queue == MessageQueue("orders", "broker-a", 0)
    seen: list[Any] = []

    def fail_once(messages: Any) -> None:
        for message in messages:
            seen.append((message.topic, message.queue.topic, message.attempts, message.property("INSTANCE_ID")))
            if not message.attempts:
                raise ValueError("not yet")

    push = client.push("g", "orders", fail_once, start="first")
    cluster.world.advance(30)
    assert seen == [("orders", "orders", 0, "shop"), ("orders", "%RETRY%g", 1, "shop")]
    assert sorted(cluster.broker.broker.topics) == sorted({*cluster.broker.broker.topics, "%RETRY%shop%g"})
    assert {key[:2] for key in cluster.broker.offsets.stored} == {
        ("shop%g", "shop%orders"),
        ("shop%g", "%RETRY%shop%g"),
    }
    assert set(cluster.broker.members.consumers) == {"shop%g"}
    status = push.member.running_info()["statusTable"]
    assert set(status) == {"shop%orders", "%RETRY%shop%g"}
    with client.driver.enter():
        poked = run_steps(push.member.rebalance._members_steps(client.engine.routes.get("orders")))
    assert client.driver.wait(poked) == [client.engine.client_id]
    broadcasting = client.push("all", "orders", model="broadcasting")
    broadcasting.close()
    assert [path.name for path in tmp_path.glob("*/*")] == ["shop%all"]

"""Timed messages are taken back by their handles; what is no handle, or not ours, is refused in upstream's words."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.broker.remoting.recall import RecallHandle
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.raw import Raw

SETTINGS = {"recallMessageEnable": True}
REGION = {"MSG_REGION": "DefaultRegion"}


def recall(raw: Raw, handle: str, topic: str = "later") -> Any:
    return raw.ask(Request.RECALL_MESSAGE, producerGroup="p", topic=topic, recallHandle=handle)


def test_a_recalled_message_never_comes_and_its_neighbour_does(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("later", 2)
    sent = [raw.send("later", name.encode(), 1, UNIQ_KEY=name, TIMER_DELAY_SEC="60") for name in ("K1", "K12", "K2")]
    assert [answer.field("queueId") for answer in sent] == ["1", "1", "1"]
    handle = sent[0].field("recallHandle")
    assert str(RecallHandle.read(handle)) == handle
    for _ in range(2):
        answer = recall(raw, handle)
        assert (answer.code, answer.remark) == (0, "not set any response code")
        assert answer.fields == REGION | {"msgId": "K1"}
    broker.control.move_clock(61)
    delivered = raw.codec.decode_messages(raw.pull("g", "later", 0, 1).body)
    assert sorted(message.body for message in delivered) == [b"K12", b"K2"]


def encoded(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("handle", "remark"),
    [
        ("@@", "recall handle is invalid"),
        (encoded("v1 later"), "recall handle is invalid"),
        (encoded("v2 later broker-a {soon} K"), "recall handle is invalid"),
        (encoded("v1 later broker-a soon K"), "recall handle is invalid"),
        ("/w==", "recall handle is invalid"),
        ("v1 other broker-a {soon} K", "recall failed, topic not match"),
        ("v1 later broker-x {soon} K", "recall failed, broker service not available"),
        ("v1 later broker-a 1000 K", "recall failed, timestamp invalid"),
        ("v1 later broker-a {far} K", "recall failed, timestamp invalid"),
    ],
)
def test_refused(raw: Raw, broker: EmbeddedBroker, handle: str, remark: str) -> None:
    raw.create_topic("later", 2)
    now = broker.house.clock.wall_ms()
    if handle.startswith("v1"):
        handle = encoded(handle.format(soon=now + 9000, far=now + 10**10))
    answer = recall(raw, handle)
    assert (answer.code, answer.remark, answer.fields) == (604, remark, REGION)


def test_a_handle_in_the_other_base64_is_refused_as_java_does(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("later", 2)
    handle = encoded(f"v1 later broker-a {broker.house.clock.wall_ms() + 9000} ????")
    assert "_" in handle
    assert (recall(raw, handle.replace("_", "/")).remark, recall(raw, handle).code) == ("recall handle is invalid", 0)


def test_without_a_topic_or_leave(raw: Raw) -> None:
    answer = recall(raw, "@@", "nosuchtopic")
    assert (answer.code, answer.remark) == (17, "recall failed, the topic[nosuchtopic] not exist")
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"recallMessageEnable=false")
    answer = recall(raw, "@@")
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"recallMessageEnable=true")
    assert answer.code == 16

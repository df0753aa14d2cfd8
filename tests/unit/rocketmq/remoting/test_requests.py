"""Requests carry the fields that the protocol names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.bodies import read_body

QUEUE = MessageQueue("orders", "broker-a", 3)


def test_offsets() -> None:
    queue = {"topic": "orders", "queueId": "3", "bname": "broker-a"}
    assert requests.queue_fields(QUEUE) == queue
    assert requests.search_offset(QUEUE, 5) == queue | {"timestamp": "5"}
    assert requests.query_offset("g", QUEUE) == queue | {"consumerGroup": "g"}
    assert requests.update_offset("g", QUEUE, 9) == queue | {"consumerGroup": "g", "commitOffset": "9"}


def test_membership_and_administration() -> None:
    assert requests.unregister("me", producer="p") == {"clientID": "me", "bname": "", "producerGroup": "p"}
    assert requests.unregister("me", consumer="c", broker="b") == {"clientID": "me", "bname": "b", "consumerGroup": "c"}
    assert requests.create_topic("t", 4)["writeQueueNums"] == "4"
    assert requests.reset_offset("g", "t", 7, False) == {
        "topic": "t",
        "group": "g",
        "timestamp": "7",
        "isForce": "false",
        "queueId": "-1",
    }
    body = read_body(requests.lock_body("g", "me", [QUEUE]))
    assert (body["clientId"], body["mqSet"]) == ("me", [{"brokerName": "broker-a", "queueId": 3, "topic": "orders"}])


def test_send_back() -> None:
    message = SimpleNamespace(physical_offset=77, message_id="id", topic="orders")
    fields = requests.send_back("g", message, 0, 16, "broker-a")
    assert (fields["offset"], fields["originMsgId"], fields["maxReconsumeTimes"]) == ("77", "id", "16")


def test_pulls_suspend_and_commit_what_there_is(codec: Any) -> None:
    flags = []
    for commit in (-1, 0, 8):
        frame = requests.pull(
            codec.remoting, 1, "g", QUEUE, 9, count=32, version=5, suspend_ms=15000, commit_offset=commit
        )
        (read,) = codec.remoting.FrameReader().feed(frame)
        flags.append((read.field("sysFlag"), read.field("commitOffset")))
        assert (read.code, read.field("subVersion"), read.field("queueOffset")) == (11, "5", "9")
    assert flags == [("2", "0"), ("2", "0"), ("3", "8")]


def test_what_needs_no_membership(codec: Any) -> None:
    (frame,) = codec.remoting.FrameReader().feed(requests.peek(codec.remoting, 7, "g", QUEUE, 5, 3))
    assert (frame.code, frame.opaque, frame.field("maxMsgNums"), frame.field("queueOffset")) == (11, 7, "3", "5")
    assert (frame.field("sysFlag"), frame.field("subscription")) == ("4", "*")
    body = read_body(requests.check_client_body("me", "g", {"topic": "t"}))
    assert body == {"clientId": "me", "group": "g", "subscriptionData": {"topic": "t"}}
    assert requests.query_offset("g", QUEUE, strict=True)["setZeroIfNotFound"] == "false"

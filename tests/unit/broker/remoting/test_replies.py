"""An answer reaches the client that asked, and who answered is told whether it did."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw

TOPIC = "DefaultCluster_REPLY_TOPIC"
NAMES = {
    324: ("producerGroup", "topic", "defaultTopic", "defaultTopicQueueNums", "queueId", "sysFlag", "bornTimestamp"),
    325: "abcdefg",
}


def asker(raw: Raw, client_id: str) -> Raw:
    beat = {"clientID": client_id, "producerDataSet": [{"groupName": "askers"}], "consumerDataSet": []}
    assert raw.ask(Request.HEART_BEAT, write_body(beat)).code == 0
    return raw


def reply(raw: Raw, to: str | None, code: int = 325, topic: str = TOPIC) -> int:
    properties = {"MSG_TYPE": "reply", "CORRELATION_ID": "c-1", "TTL": "3000"}
    text = raw.codec.encode_properties(properties | ({"REPLY_TO_CLIENT": to} if to else {})).decode()
    values = ("answerers", topic, "TBW102", 4, 0, 0, int(time.time() * 1000))
    fields: dict[str, Any] = dict(zip(NAMES[code], values, strict=True))
    fields |= {"h": 7, "i": text} if code == 325 else {"flag": 7, "properties": text}
    return raw.tell(code, b"the answer", **fields)


def kept(raw: Raw) -> int:
    return int(raw.ask(Request.GET_MAX_OFFSET, topic=TOPIC, queueId=0).field("offset"))


@pytest.mark.parametrize("code", [324, 325])
def test_it_arrives_with_all_that_belongs_to_it(connect: Connect, code: int) -> None:
    one, other = asker(connect(), "asker@1"), connect()
    before = kept(other)
    opaque = reply(other, "asker@1", code)
    pushed = one.pushed(Request.PUSH_REPLY_MESSAGE_TO_CLIENT)
    assert (pushed.is_oneway, pushed.body) == (False, b"the answer")
    expected = {"producerGroup": "answerers", "topic": TOPIC, "queueId": "0", "flag": "7", "unitMode": "false"}
    assert pushed.fields.items() >= expected.items()
    properties = one.codec.decode_properties(pushed.field("properties").encode())
    assert properties["CORRELATION_ID"] == "c-1"
    assert properties["PUSH_REPLY_TIME"] == pushed.field("storeTimestamp")
    one.respond(pushed)
    answer = other.answer(opaque)
    assert (answer.code, answer.field("queueOffset"), answer.field("TRACE_ON")) == (0, str(before), "true")
    (message,) = other.codec.decode_messages(other.pull("g", TOPIC, before).body)
    assert (message.body, message.flag, message.property("MSG_REGION")) == (b"the answer", 7, "DefaultRegion")


def test_who_asked_does_not_take_it_is_silent_or_gone(connect: Connect, broker: EmbeddedBroker) -> None:
    one, other = asker(connect(), "picky@1"), connect()
    opaque = reply(other, "picky@1")
    one.respond(one.pushed(Request.PUSH_REPLY_MESSAGE_TO_CLIENT), 1)
    answer = other.answer(opaque)
    assert (answer.code, answer.remark) == (1, "push reply message to picky@1fail.")
    opaque = reply(other, "picky@1")
    one.pushed(Request.PUSH_REPLY_MESSAGE_TO_CLIENT)
    broker.control.move_clock(11)
    assert other.answer(opaque).code == 1
    gone = other.answer(reply(other, "nobody@1"))
    assert (gone.code, gone.remark) == (1, "push reply message fail, channel of <nobody@1> not found.")
    unnamed = other.answer(reply(other, None))
    assert (unnamed.code, unnamed.remark) == (1, "reply message properties[REPLY_TO_CLIENT] is null")
    assert unnamed.field("msgId"), "it is kept all the same"


def test_it_need_not_be_kept_and_wrong_topics_are_refused(raw: Raw) -> None:
    before = kept(raw)
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"storeReplyMessageEnable=false")
    answer = raw.answer(reply(raw, None))
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"storeReplyMessageEnable=true")
    assert (answer.code, answer.fields) == (1, {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"})
    assert kept(raw) == before
    wrong = raw.answer(reply(raw, "asker@1", topic="bad topic!"))
    assert (wrong.code, wrong.field("MSG_REGION")) == (29, "DefaultRegion")

"""Sending to the embedded broker: every form, and every reason to refuse (brokers/rocketmq-observed.md, part 4)."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.broker.remoting.recall import RecallHandle
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.raw import Raw, body_of

BASE: dict[str, Any] = {"a": "p", "b": "t", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0}


def test_the_long_names_mean_the_same(raw: Raw) -> None:
    fields: dict[str, Any] = {
        "producerGroup": "p",
        "topic": "long",
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 3,
        "queueId": 1,
        "sysFlag": 0,
        "bornTimestamp": 7,
        "flag": 9,
        "reconsumeTimes": 2,
    }
    sent = raw.ask(Request.SEND_MESSAGE, b"x", **fields)
    assert (sent.code, sent.field("queueId")) == (0, "1")
    (message,) = raw.codec.decode_messages(raw.pull("g", "long", 0, queue=1).body)
    assert (message.flag, message.born_at, message.attempts) == (9, 7, 2)


def test_a_new_topic_has_as_many_queues_as_the_producer_wants(raw: Raw, names: Raw) -> None:
    raw.send("fresh", b"x")
    route = body_of(names.ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="fresh"))
    assert route["queueDatas"][0]["writeQueueNums"] == 4
    assert route["queueDatas"][0]["perm"] == 6


def test_a_batch_is_stored_message_by_message(raw: Raw) -> None:
    builder = raw.codec.BatchBuilder()
    for number in range(3):
        builder.add(b"%d" % number, raw.codec.encode_properties({"TAGS": f"t{number}"}), number)
    sent = raw.ask(Request.SEND_BATCH_MESSAGE, builder.seal(), **BASE | {"b": "batch", "m": "true", "i": ""})
    assert (sent.code, sent.field("queueOffset")) == (0, "0")
    assert len(sent.field("msgId").split(",")) == 3
    messages = raw.codec.decode_messages(raw.pull("g", "batch", 0).body)
    assert [(m.body, m.tag, m.flag, m.offset) for m in messages] == [
        (b"0", "t0", 0, 0),
        (b"1", "t1", 1, 1),
        (b"2", "t2", 2, 2),
    ]


def test_a_negative_queue_is_the_brokers_choice(raw: Raw) -> None:
    raw.create_topic("any", 4)
    queues = {raw.send("any", b"x", queue=-1).field("queueId") for _ in range(50)}
    assert queues == {"0", "1", "2", "3"}


@pytest.mark.parametrize(
    ("change", "body", "code"),
    [
        ({"e": 99}, b"x", 29),
        ({"b": "bad topic!"}, b"x", 29),
        ({"b": " "}, b"x", 29),
        ({"b": "n" * 128}, b"x", 29),
        ({"b": "SCHEDULE_TOPIC_XXXX"}, b"x", 16),
        ({"b": "%RETRY%unknown"}, b"x", 26),
        ({"b": "nowhere", "c": "no-model"}, b"x", 17),
        ({}, b"", 1),
        ({}, b"x" * (4 * 1024 * 1024 + 1), 13),
        ({"i": "k\1" + "v" * 32767 + "\2"}, b"x", 13),
        ({"m": "true"}, b"", 1),
        ({"b": "%RETRY%unknown", "m": "true"}, b"x", 13),
        ({"m": "true"}, b"no batch at all", 1),
        ({"m": "true"}, b"\0\0", 1),
    ],
)
def test_refused(raw: Raw, change: dict[str, object], body: bytes, code: int) -> None:
    answer = raw.ask(Request.SEND_MESSAGE_V2, body, **BASE | change)
    assert answer.code == code, answer.remark


def test_who_is_answered_with_a_refusal_is_told_the_region(raw: Raw) -> None:
    region = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    for code in (Request.SEND_MESSAGE_V2, Request.SEND_REPLY_MESSAGE_V2):
        answer = raw.ask(code, b"x", **BASE | {"e": 99})
        assert (answer.code, answer.fields) == (29, region)


def test_a_reply_is_checked_and_stored_as_a_message_is(raw: Raw) -> None:
    topic = "DefaultCluster_REPLY_TOPIC"
    text = raw.codec.encode_properties({"MSG_TYPE": "reply", "CORRELATION_ID": "c-1"}).decode()
    raw.ask(Request.SEND_REPLY_MESSAGE_V2, b"the answer", **BASE | {"b": topic, "h": 7, "i": text})
    (message,) = raw.codec.decode_messages(raw.pull("g", topic, 0).body)
    assert (message.body, message.flag, message.property("CORRELATION_ID")) == (b"the answer", 7, "c-1")


def test_a_batch_of_which_some_have_to_wait_is_stored_one_by_one(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("partly", 1)
    builder = raw.codec.BatchBuilder()
    for number, properties in enumerate(({"TAGS": "a"}, {"DELAY": "1"}, {"TAGS": "c"})):
        builder.add(b"%d" % number, raw.codec.encode_properties(properties), number)
    unique = raw.codec.encode_properties({"UNIQ_KEY": "K0,K1,K2"}).decode()
    sent = raw.ask(Request.SEND_BATCH_MESSAGE, builder.seal(), **BASE | {"b": "partly", "m": "true", "i": unique})
    assert (sent.code, sent.field("queueOffset"), sent.field("transactionId")) == (0, "0", "K0,K1,K2")
    places = [raw.codec.parse_offset_id(one)[2] for one in sent.field("msgId").split(",")]
    assert places == sorted(set(places))
    now = raw.codec.decode_messages(raw.pull("g", "partly", 0).body)
    assert [(m.body, m.tag, m.flag, m.offset) for m in now] == [(b"0", "a", 0, 0), (b"2", "c", 2, 1)]
    broker.control.move_clock(2)
    (late,) = raw.codec.decode_messages(raw.pull("g", "partly", 2).body)
    assert (late.body, late.flag, late.offset) == (b"1", 1, 2)


def test_a_half_message_is_answered_as_one_of_its_topic_and_read_by_nobody(raw: Raw) -> None:
    raw.create_topic("half", 3)
    sent = raw.send("half", b"x", 2, TRAN_MSG="true", PGROUP="p", UNIQ_KEY="K")
    assert (sent.code, sent.field("queueId"), sent.field("transactionId")) == (0, "2", "K")
    assert raw.ask(Request.GET_MAX_OFFSET, topic="half", queueId=2).field("offset") == "0"
    again = raw.send("half", b"y", 2, TRAN_MSG="false")
    assert again.field("queueOffset") == "0"
    assert raw.ask(Request.GET_MAX_OFFSET, topic="half", queueId=2).field("offset") == "1"


def test_a_timed_message_is_answered_with_the_handle_of_its_recall(raw: Raw) -> None:
    raw.create_topic("timed", 2)
    sent = raw.send("timed", b"x", 1, TIMER_DELIVER_MS="4102444800000", UNIQ_KEY="K")
    assert sent.code == 13  # beyond what a broker keeps
    sent = raw.send("timed", b"x", 1, TIMER_DELAY_SEC="60", UNIQ_KEY="K")
    handle = RecallHandle.read(sent.field("recallHandle"))
    assert (handle.topic, handle.broker, handle.unique) == ("timed", "broker-a", "K")
    assert sent.field("queueId") == "1"
    assert raw.send("timed", b"x", 1, UNIQ_KEY="K").field("recallHandle") is None


def test_the_topic_of_a_groups_retries_is_made_with_one_queue(raw: Raw, names: Raw) -> None:
    for name, code in (("%RETRY%late", 26), ("ordinary", 17)):
        assert raw.ask(Request.SEND_MESSAGE_V2, b"x", **BASE | {"b": name, "c": "no-model"}).code == code
    route = body_of(names.ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="%RETRY%late"))
    assert route["queueDatas"][0]["writeQueueNums"] == 1
    assert names.ask(Request.GET_ROUTEINFO_BY_TOPIC, topic="ordinary").code == 17


@pytest.mark.parametrize(
    ("text", "unique"),
    [("UNIQ_KEYK", "K"), ("AbUNIQ_KEYK", "K"), ("AbUNIQ_KEYKCd", "K"), ("MY_UNIQ_KEYK", None)],
)
def test_a_message_keeps_its_own_id_or_gets_one(raw: Raw, text: str, unique: str | None) -> None:
    topic = "ids"
    raw.create_topic(topic, 1)
    sent = raw.ask(Request.SEND_MESSAGE_V2, b"x", **BASE | {"b": topic, "i": text})
    offset = int(sent.field("queueOffset"))
    (message,) = raw.codec.decode_messages(raw.pull("g", topic, offset).body)
    assert message.property("UNIQ_KEY") == sent.field("transactionId")
    assert (sent.field("transactionId") == unique) == (unique is not None)
    assert message.property("A", "b") == "b"


def test_a_topics_own_permission_is_the_clients_affair(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("sealed")
    broker._doors[0].services[0].broker.topics["sealed"].perm = 4  # type: ignore[attr-defined]
    assert raw.send("sealed", b"x").code == 0  # as a real 5.5.0 does


def test_refusals_speak_as_upstream_does(raw: Raw) -> None:
    raw.create_topic("spoken", 2)
    shown = "TopicConfig [topicName=spoken, readQueueNums=2, writeQueueNums=2, perm=RW-, topicFilterType=SINGLE_TAG, "
    shown += "topicSysFlag=0, order=false, attributes={}] Producer: 127.0.0.1:"
    assert raw.send("spoken", b"x", 99).remark.startswith(f"request queueId[99] is illegal, {shown}")
    assert raw.send("t" * 128, b"x").remark.endswith("is longer than topic max length: 127")
    big = raw.send("spoken", bytes((4 << 20) + 1)).remark
    assert big.endswith("msg body length limit 4194304B, msg properties length limit 32KB.")


def test_a_oneway_send_is_stored_and_not_answered(raw: Raw) -> None:
    raw.create_topic("oneway", 1)
    raw.tell(Request.SEND_MESSAGE_V2, b"x", oneway=True, **BASE | {"b": "oneway"})
    assert raw.ask(Request.GET_MAX_OFFSET, topic="oneway", queueId=0).field("offset") == "1"


def test_a_missing_field_and_one_that_is_no_number(raw: Raw) -> None:
    fields: dict[str, Any] = {name: value for name, value in BASE.items() if name != "b"}
    assert raw.ask(Request.SEND_MESSAGE_V2, b"x", **fields).code == 1
    answer = raw.ask(Request.SEND_MESSAGE_V2, b"x", **BASE | {"e": "seven"})
    assert (answer.code, answer.remark) == (1, 'For input string: "seven"')

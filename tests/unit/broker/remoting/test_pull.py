"""Pulling from the embedded broker, as a real 5.5.0 answered (brokers/rocketmq-observed.md, parts 1 and 4)."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request, Response
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw, pull_fields

NO_BIT: dict[str, Any] = {"sysFlag": 0, "subscription": ""}


def test_a_message_sent_is_pulled(raw: Raw) -> None:
    raw.create_topic("found")
    sent = raw.send("found", b"hello", TAGS="a", KEYS="k1 k2")
    assert sent.code == 0
    assert sent.field("queueOffset") == "0"
    answer = raw.pull("g", "found", 0)
    assert (answer.code, answer.field("nextBeginOffset"), answer.remark) == (0, "1", "FOUND")
    (message,) = raw.codec.decode_messages(answer.body, check_crc=True)
    assert (message.body, message.topic, message.offset, message.tag) == (b"hello", "found", 0, "a")
    assert message.property("CLUSTER") == "DefaultCluster"
    assert message.offset_id == sent.field("msgId")
    assert message.property("UNIQ_KEY") == sent.field("transactionId")


def test_both_header_forms_are_understood(raw: Raw) -> None:
    fields = pull_fields("g", "SELF_TEST_TOPIC", 0)
    answers = [raw.ask(Request.PULL_MESSAGE, serialize=form, **fields) for form in (0, 1)]
    assert [answer.code for answer in answers] == [Response.PULL_NOT_FOUND] * 2


@pytest.mark.parametrize(
    ("offset", "code", "remark", "following"),
    [
        (3, 19, "OFFSET_OVERFLOW_ONE", "3"),
        (9, 21, "OFFSET_OVERFLOW_BADLY", "3"),
        (-1, 21, "OFFSET_TOO_SMALL", "0"),
    ],
)
def test_beyond_the_ends(raw: Raw, offset: int, code: int, remark: str, following: str) -> None:
    raw.create_topic("ends", 1)
    while raw.ask(Request.GET_MAX_OFFSET, topic="ends", queueId=0).field("offset") != "3":
        raw.send("ends", b"x")
    answer = raw.pull("g", "ends", offset)
    assert (answer.code, answer.remark, answer.field("nextBeginOffset")) == (code, remark, following)


def test_an_empty_queue(raw: Raw) -> None:
    raw.create_topic("empty")
    assert (raw.pull("g", "empty", 0).code, raw.pull("g", "empty", 7).code) == (19, 21)


def test_a_tag_that_matches_nothing_and_one_that_does(raw: Raw) -> None:
    raw.create_topic("tags", 1)
    for tag in ("a", "b", "a", "c"):
        raw.send("tags", tag.encode(), TAGS=tag)
    none = raw.pull("g", "tags", 0, subscription="z")
    assert (none.code, none.remark, none.field("nextBeginOffset")) == (20, "NO_MATCHED_MESSAGE", "4")
    some = raw.pull("g", "tags", 0, subscription="a || c")
    assert [message.offset for message in raw.codec.decode_messages(some.body)] == [0, 2, 3]


def test_queues_and_topics_that_are_not_there(raw: Raw) -> None:
    raw.create_topic("small", 4)
    answer = raw.pull("g", "small", 0, queue=99)
    assert answer.code == 29
    assert answer.remark.startswith("queueId[99] is illegal, topic:[small] topicConfig.readQueueNums:[4] consumer:[/")
    unknown = raw.pull("g", "NoSuchTopic", 0)
    assert unknown.code == 17
    assert unknown.remark.startswith("topic[NoSuchTopic] not exist, apply first please! \n")


def test_code_25_means_newer_than_registered_and_nothing_else(raw: Raw) -> None:
    raw.create_topic("versions", 1)
    raw.send("versions", b"x")
    never = raw.pull("g25", "versions", 0, **NO_BIT, subVersion=5)
    assert (never.code, never.remark.split("\n")[0]) == (24, "the consumer's group info not exist")
    raw.heartbeat("me@1", "g25", {"versions": 100})
    codes = {
        version: raw.pull("g25", "versions", 0, **NO_BIT, subVersion=version).code for version in (100, 101, 99, 0)
    }
    assert codes == {100: 0, 101: 25, 99: 0, 0: 0}
    refused = raw.pull("g25", "versions", 0, **NO_BIT, subVersion=101)
    assert (refused.remark, refused.fields) == ("the consumer's subscription not latest", {})
    assert raw.pull("g25", "versions", 0, subVersion=101).code == 0  # it brought the subscription along
    raw.heartbeat("me@1", "g25", {"versions": 101})
    assert raw.pull("g25", "versions", 0, **NO_BIT, subVersion=101).code == 0
    raw.heartbeat("me@1", "g25", {"versions": 96})  # older: ignored
    assert raw.pull("g25", "versions", 0, **NO_BIT, subVersion=101).code == 0
    raw.heartbeat("me@1", "g25", {"SELF_TEST_TOPIC": 1})
    gone = raw.pull("g25", "versions", 0, **NO_BIT, subVersion=101)
    assert (gone.code, gone.remark.split("\n")[0]) == (24, "the consumer's subscription not exist")


def test_a_lite_pull_is_a_pull_unless_they_are_switched_off(raw: Raw) -> None:
    raw.create_topic("lite", 1)
    raw.send("lite", b"x", TAGS="a")
    fields = pull_fields("nobody", "lite", 0, sysFlag=22, subVersion=0)
    answer = raw.ask(Request.LITE_PULL_MESSAGE, **fields)
    assert (answer.code, [message.body for message in raw.codec.decode_messages(answer.body)]) == (0, [b"x"])
    held = raw.tell(Request.LITE_PULL_MESSAGE, **fields | {"queueOffset": 1, "suspendTimeoutMillis": 15000})
    raw.send("lite", b"y")
    assert raw.answer(held).field("nextBeginOffset") == "2"
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"litePullMessageEnable=false")
    answer = raw.ask(Request.LITE_PULL_MESSAGE, **fields)
    assert (answer.code, answer.field("forbiddenType")) == (16, "1")
    assert answer.remark == "the broker[127.0.0.1] for lite pull consumer is forbidden"
    assert raw.ask(Request.PULL_MESSAGE, **fields).code == 0
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"litePullMessageEnable=true")


def test_without_long_polling_a_pull_is_held_for_a_second(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("short", 1)
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"longPollingEnable=false")
    fields = pull_fields("g", "short", 0, sysFlag=6, suspendTimeoutMillis=15000)
    opaque = raw.tell(Request.PULL_MESSAGE, **fields)
    with pytest.raises(TimeoutError):
        raw.answer(opaque, 0.1)
    broker.control.move_clock(1)
    assert raw.answer(opaque).code == 19
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"longPollingEnable=true")


def test_a_held_pull_wakes_when_a_message_comes(raw: Raw, codec: Any, broker: EmbeddedBroker) -> None:
    raw.create_topic("held", 1)
    opaque = raw.tell(Request.PULL_MESSAGE, **pull_fields("g", "held", 0, sysFlag=6, suspendTimeoutMillis=15000))
    with Raw(codec.remoting, broker.addresses()["broker-a"]) as other:
        other.send("held", b"wake up")
    answer = raw.answer(opaque)
    assert (answer.code, answer.field("nextBeginOffset")) == (0, "1")


def test_a_held_pull_sleeps_on_for_tags_that_it_does_not_want(raw: Raw, codec: Any, broker: EmbeddedBroker) -> None:
    raw.create_topic("picky", 1)
    fields = pull_fields("g", "picky", 0, sysFlag=6, subscription="b", suspendTimeoutMillis=15000)
    opaque = raw.tell(Request.PULL_MESSAGE, **fields)
    with Raw(codec.remoting, broker.addresses()["broker-a"]) as other:
        other.send("picky", b"not for you", TAGS="a")
        with pytest.raises(TimeoutError):
            raw.answer(opaque, 0.1)
        other.send("picky", b"for you", TAGS="b")
    answer = raw.answer(opaque)
    assert [message.body for message in raw.codec.decode_messages(answer.body)] == [b"for you"]


def test_a_held_pull_ends_with_its_suspension(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("patience", 1)
    started = time.monotonic()
    opaque = raw.tell(Request.PULL_MESSAGE, **pull_fields("g", "patience", 0, sysFlag=6, suspendTimeoutMillis=60000))
    with pytest.raises(TimeoutError):
        raw.answer(opaque, 0.1)
    broker.control.move_clock(61)
    assert raw.answer(opaque).code == 19
    assert time.monotonic() - started < 5


def test_an_unknown_code_gets_the_protocols_own_answer(raw: Raw) -> None:
    answer = raw.ask(9999)
    assert (answer.code, answer.remark) == (3, " request type 9999 not supported")


def test_an_answer_holds_no_more_than_was_asked(raw: Raw) -> None:
    raw.create_topic("limits", 1)
    for number in range(10):
        raw.send("limits", b"%d" % number)
    answer = raw.pull("g", "limits", 2, maxMsgNums=3)
    assert [message.offset for message in raw.codec.decode_messages(answer.body)] == [2, 3, 4]
    assert (answer.field("minOffset"), answer.field("maxOffset")) == ("0", "10")


def test_what_may_not_be_read_says_why(raw: Raw, broker: EmbeddedBroker) -> None:
    state = broker._doors[0].services[0].broker  # type: ignore[attr-defined]
    raw.create_topic("secret", 1)
    raw.heartbeat("me@1", "listeners", {"secret": 1}, model="BROADCASTING")
    state.topics["secret"].perm = 2
    assert raw.pull("g", "secret", 0).field("forbiddenType") == "3"
    state.topics["secret"].perm = 6
    state.group("listeners").broadcast_enable = False
    answer = raw.pull("listeners", "secret", 0, **NO_BIT)
    assert (answer.code, answer.field("forbiddenType")) == (16, "4")
    state.group("g").consume_enable = False
    assert raw.pull("g", "secret", 0).field("forbiddenType") == "2"
    state.group("g").consume_enable = True
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"brokerPermission=2")
    assert raw.pull("g", "secret", 0).field("forbiddenType") == "1"
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"brokerPermission=6")


def test_filters_it_does_not_know_and_expressions_without_a_tag(raw: Raw) -> None:
    raw.create_topic("filters", 1)
    sql = raw.pull("g", "filters", 0, subscription="a > 1", expressionType="SQL92")
    assert (sql.code, sql.remark) == (1, "The broker does not support consumer to filter message by SQL92")
    assert raw.pull("g", "filters", 0, subscription=" || ").code == 23


def test_a_registered_tag_filter_is_used(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("registered", 1)
    raw.heartbeat("me@1", "picky", {"registered": 1})
    group = broker._doors[0].services[0].members.consumers["picky"]  # type: ignore[attr-defined]
    group.subscriptions["registered"] |= {"subString": "b", "codeSet": [ord("b")]}
    for tag in ("a", "b"):
        raw.send("registered", tag.encode(), TAGS=tag)
    answer = raw.pull("picky", "registered", 0, **NO_BIT, subVersion=1)
    assert [message.body for message in raw.codec.decode_messages(answer.body)] == [b"b"]


def test_a_pull_commits_what_it_brings_along_even_when_nothing_is_found(raw: Raw) -> None:
    raw.create_topic("commits", 1)
    raw.send("commits", b"x")
    raw.pull("committers", "commits", 1, sysFlag=5, commitOffset=1)
    stored = raw.ask(Request.QUERY_CONSUMER_OFFSET, consumerGroup="committers", topic="commits", queueId=0)
    assert stored.field("offset") == "1"


def test_a_held_pull_whose_connection_is_gone_is_forgotten(raw: Raw, connect: Connect, broker: EmbeddedBroker) -> None:
    raw.create_topic("ghost", 1)
    other = connect()
    other.tell(Request.PULL_MESSAGE, **pull_fields("g", "ghost", 0, sysFlag=6, suspendTimeoutMillis=60000))
    other.ask(Request.GET_MAX_OFFSET, topic="ghost", queueId=0)
    other.close()
    raw.send("ghost", b"boo")
    assert raw.pull("g", "ghost", 0).code == 0


def test_a_held_pull_is_looked_at_again_when_it_wakes(raw: Raw, connect: Connect, broker: EmbeddedBroker) -> None:
    raw.create_topic("gone", 1)
    raw.heartbeat("me@1", "leavers", {"gone": 1})
    other = connect()
    fields = pull_fields("leavers", "gone", 0, **NO_BIT | {"sysFlag": 2}, subVersion=1, suspendTimeoutMillis=60000)
    opaque = other.tell(Request.PULL_MESSAGE, **fields)
    other.ask(Request.GET_MAX_OFFSET, topic="gone", queueId=0)
    raw.ask(Request.UNREGISTER_CLIENT, clientID="me@1", consumerGroup="leavers")
    raw.send("gone", b"x")
    assert other.answer(opaque).code == 24

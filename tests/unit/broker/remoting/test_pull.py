"""Pulling from the embedded broker, as a real 5.5.0 answered (brokers/rocketmq-observed.md, parts 1 and 4)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request, Response
from tests.unit.broker.remoting.raw import Raw, pull_fields

NO_BIT: dict[str, Any] = {"sysFlag": 0, "subscription": ""}


@pytest.fixture(name="broker", scope="module")
def broker_fixture(codec: Any) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["rocketmq"], impl=codec) as broker:
        yield broker


@pytest.fixture(name="raw")
def raw_fixture(codec: Any, broker: EmbeddedBroker) -> Iterator[Raw]:
    with Raw(codec.remoting, broker.addresses()["broker-a"]) as raw:
        yield raw


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

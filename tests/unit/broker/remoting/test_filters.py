"""Filters where they count: in pulls, held pulls, heartbeats and the question whether a filter can be served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.raw import Raw, pull_fields

SETTINGS = {"enablePropertyFilter": True}
SQL: dict[str, Any] = {"expressionType": "SQL92"}


@pytest.fixture(name="strict")
def strict_fixture(codec: Any) -> Iterator[Raw]:
    """A connection to a broker as it comes: without property filters."""
    with (
        EmbeddedBroker(doors=["rocketmq"], impl=codec) as broker,
        Raw(codec.remoting, broker.addresses()["broker-a"]) as raw,
    ):
        yield raw


def beat(raw: Raw, group: str, topic: str, expression: str, kind: str = "SQL92", version: int = 1, **more: Any) -> None:
    data = {"topic": topic, "subString": expression, "subVersion": version, "expressionType": kind, **more}
    entry = {"groupName": group, "subscriptionDataSet": [data]}
    assert raw.ask(Request.HEART_BEAT, write_body({"clientID": "f@1", "consumerDataSet": [entry]})).code == 0


def found(raw: Raw, answer: Any) -> list[bytes]:
    return [message.body for message in raw.codec.decode_messages(answer.body)] if answer.code == 0 else []


def fill(raw: Raw, topic: str, count: int) -> None:
    raw.create_topic(topic, 1)
    for number in range(count):
        raw.send(topic, b"%d" % number, price=str(number))


def test_a_pull_brings_its_expression(raw: Raw) -> None:
    fill(raw, "priced", 10)
    answer = raw.pull("g", "priced", 0, subscription="price > 3 AND price <> 6", **SQL)
    assert (found(raw, answer), answer.field("nextBeginOffset")) == ([b"4", b"5", b"7", b"8", b"9"], "10")
    none = raw.pull("g", "priced", 2, subscription="price > 100", **SQL)
    assert (none.code, none.field("nextBeginOffset")) == (20, "10")


def test_a_wrong_expression_in_a_pull_filters_nothing_and_an_empty_one_is_refused(raw: Raw) -> None:
    fill(raw, "wrong", 3)
    assert len(found(raw, raw.pull("g", "wrong", 0, subscription="price >", **SQL))) == 3
    empty = raw.pull("g", "wrong", 0, subscription="", **SQL)
    assert (empty.code, empty.remark) == (23, "parse the consumer's subscription failed")


def test_a_held_pull_waits_for_what_it_selects(raw: Raw) -> None:
    fill(raw, "held", 2)
    fields = pull_fields(
        "g", "held", 2, subscription="price IN ('gold')", sysFlag=6, suspendTimeoutMillis=60_000, **SQL
    )
    opaque = raw.tell(Request.PULL_MESSAGE, **fields)
    raw.send("held", b"cheap", price="tin")
    raw.send("held", b"dear", price="gold")
    assert found(raw, raw.answer(opaque)) == [b"dear"]


def test_a_heartbeat_brings_the_expression(raw: Raw) -> None:
    fill(raw, "beaten", 4)
    beat(raw, "beaters", "beaten", "price < 2")
    plain = {"sysFlag": 0, "subVersion": 1, **SQL}
    assert found(raw, raw.pull("beaters", "beaten", 0, **plain)) == [b"0", b"1"]
    beat(raw, "beaters", "beaten", "price <", version=2)
    wrong = raw.pull("beaters", "beaten", 0, **plain)
    assert (wrong.code, wrong.remark) == (
        27,
        "The broker's consumer filter data is not exist!Your expression may be wrong!",
    )


def test_tags_by_heartbeat(raw: Raw) -> None:
    raw.create_topic("tagged", 1)
    for tag in "ab":
        raw.send("tagged", tag.encode(), TAGS=tag)
    plain = {"sysFlag": 0, "subVersion": 1}
    beat(raw, "taggers", "tagged", "b", "TAG", codeSet=[ord("b")])
    assert found(raw, raw.pull("taggers", "tagged", 0, **plain)) == [b"b"]
    beat(raw, "everybody", "tagged", "*", "TAG", codeSet=[])
    assert found(raw, raw.pull("everybody", "tagged", 0, **plain)) == [b"a", b"b"]
    assert found(raw, raw.pull("g", "tagged", 0, subscription="c || b")) == [b"b"]
    assert raw.pull("g", "tagged", 0, subscription=" || ").code == 23


def ask_config(raw: Raw, **data: Any) -> Any:
    answer = raw.ask(
        Request.CHECK_CLIENT_CONFIG, write_body({"clientId": "f@1", "group": "g", "subscriptionData": data})
    )
    return answer.code, answer.remark


def test_the_question_whether_a_filter_can_be_served(raw: Raw, strict: Raw) -> None:
    assert ask_config(raw, expressionType="SQL92", subString="a > 1") == (0, None)
    assert ask_config(strict, expressionType="TAG", subString="a") == (0, None)
    assert ask_config(raw, expressionType="SQL92", subString="a >")[0] == 23
    no = "The broker does not support consumer to filter message by "
    assert ask_config(strict, expressionType="SQL92", subString="a > 1") == (1, no + "SQL92")
    assert ask_config(raw, expressionType="XPATH", subString="/a") == (1, no + "XPATH")


def test_without_the_option_such_pulls_are_refused(strict: Raw) -> None:
    strict.create_topic("plain", 1)
    assert strict.pull("g", "plain", 0, subscription="a > 1", **SQL).code == 1
    beat(strict, "g", "plain", "a > 1")
    assert strict.pull("g", "plain", 0, sysFlag=0, subVersion=1).code == 1

"""What a broker does not let anybody pop, and in which words it says so."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.popping import Popper
from tests.unit.broker.remoting.raw import Raw

NOTHING = {"invisibleTime": "0", "popTime": "0", "restNum": "0", "reviveQid": "0"}


@pytest.mark.parametrize(
    ("wrong", "code", "remark"),
    [
        ({"maxMsgNums": 33}, 29, "pop message's num is greater than 32"),
        ({"queueId": 9}, 29, "queueId[9] is illegal, topic:[asked] topicConfig.readQueueNums:[1]"),
        ({"bornTime": int(time.time() * 1000) - 700_000}, 210, "pop message is timeout too much"),
        ({"topic": "nosuchtopic"}, 17, "topic[nosuchtopic] not exist, apply first please!"),
        ({"exp": " || "}, 23, "parse the consumer's subscription failed"),
        ({"exp": "a >", "expType": "SQL92"}, 1, "does not support consumer to filter message by SQL92"),
        ({"maxMsgNums": "many"}, 1, 'For input string: "many"'),
    ],
)
def test_refused(raw: Raw, wrong: dict[str, Any], code: int, remark: str) -> None:
    answer = Popper(raw, "asked").pop(**wrong)
    assert (answer.code, answer.fields) == (code, NOTHING)
    assert remark in answer.remark


def test_an_expression_that_cannot_be_read(raw: Raw) -> None:
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"enablePropertyFilter=true")
    answer = Popper(raw, "asked").pop(exp="a >", expType="SQL92")
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"enablePropertyFilter=false")
    assert (answer.code, answer.remark) == (23, "parse the consumer's subscription failed")


def test_a_moved_clock_makes_nobody_late(raw: Raw, broker: EmbeddedBroker) -> None:
    broker.control.move_clock(3600)
    assert Popper(raw, "timely").pop().code == 210
    assert "NO_MESSAGE" in Popper(raw, "timely").pop().remark


def test_permissions(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "sealed")
    state = broker._doors[0].services[0].broker  # type: ignore[attr-defined]
    for config, text in ((b"4", ""), (b"2", "the broker[127.0.0.1] pop message is forbidden")):
        raw.ask(Request.UPDATE_BROKER_CONFIG, b"brokerPermission=" + config)
        assert not text or (popper.pop().code, popper.pop().remark) == (16, text)
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"brokerPermission=6")
    body = write_body({"groupName": popper.group, "consumeEnable": False})
    raw.ask(Request.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body)
    assert (popper.pop().code, popper.pop().remark) == (16, f"subscription group no permission, {popper.group}")
    state.topics["sealed"].perm = 2
    assert (popper.pop().code, popper.pop().remark) == (16, "the topic[sealed] peeking message is forbidden")

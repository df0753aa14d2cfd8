"""Offset resets as a real 5.5.0 and a 4.9.7 did them (brokers/rocketmq-observed.md, parts 2 and 7)."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import offset_table
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw, body_of

RESET = Request.INVOKE_BROKER_TO_RESET_OFFSET
PUSH = Request.RESET_CONSUMER_CLIENT_OFFSET


def reset(raw: Raw, group: str, topic: str, **fields: Any) -> Any:
    defaults: dict[str, Any] = {"group": group, "topic": topic, "timestamp": 0, "isForce": "true", "queueId": -1}
    return raw.ask(RESET, **defaults | fields)


def numbers(frame: Any) -> dict[int, int]:
    return {queue.queue_id: offset for queue, offset in offset_table(body_of(frame)).items()}


@pytest.fixture(name="old")
def old_fixture(raw: Raw) -> Raw:
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"useServerSideResetOffset=false")
    return raw


@pytest.fixture(name="new")
def new_fixture(raw: Raw) -> Raw:
    raw.ask(Request.UPDATE_BROKER_CONFIG, b"useServerSideResetOffset=true")
    return raw


def filled(raw: Raw, topic: str, group: str, model: str = "CLUSTERING") -> None:
    raw.create_topic(topic, 2)
    for queue in (0, 1):
        for _ in range(3):
            raw.send(topic, b"x", queue)
    raw.heartbeat("me@1", group, {topic: 1}, model)


def test_the_server_side_form_is_seen_by_the_next_puller_once(new: Raw) -> None:
    filled(new, "server", "sg")
    key: dict[str, Any] = {"consumerGroup": "sg", "topic": "server", "queueId": 0}
    new.ask(Request.UPDATE_CONSUMER_OFFSET, **key, commitOffset=3)
    answer = reset(new, "sg", "server", timestamp=0)
    assert (answer.code, numbers(answer)) == (0, {0: 0, 1: 0})
    ignored = new.ask(Request.UPDATE_CONSUMER_OFFSET, **key, commitOffset=2)
    assert (ignored.code, ignored.remark) == (0, "Offset has been previously reset")
    assert new.ask(Request.QUERY_CONSUMER_OFFSET, **key).field("offset") == "0"
    first, second = (new.pull("sg", "server", 3) for _ in range(2))
    assert (first.code, first.remark, first.field("nextBeginOffset")) == (21, "OFFSET_RESET", "0")
    assert (second.code, second.remark) == (19, "OFFSET_OVERFLOW_ONE")


def test_one_queue_to_an_explicit_offset(new: Raw) -> None:
    filled(new, "explicit", "eg")
    assert numbers(reset(new, "eg", "explicit", queueId=1, offset=2)) == {1: 2}
    assert numbers(reset(new, "eg", "explicit", queueId=1, timestamp=-1)) == {1: 3}
    assert reset(new, "eg", "explicit", queueId=1, offset=99).code == 1


def test_topics_and_groups_that_are_not_there(new: Raw) -> None:
    assert reset(new, "g", "nowhere").code == 17
    new.create_topic("lonely")
    assert reset(new, "nobody", "lonely").code == 26


def test_the_old_form_needs_stored_offsets_and_tells_every_member(old: Raw, connect: Connect) -> None:
    filled(old, "push", "pg", "BROADCASTING")
    other = connect()
    other.heartbeat("other@1", "pg", {"push": 1}, "BROADCASTING")
    refused = reset(old, "pg", "push")
    assert (refused.code, refused.remark) == (1, "THe consumer group <pg> not exist")
    for queue in (0, 1):
        key: dict[str, Any] = {"consumerGroup": "pg", "topic": "push", "queueId": queue}
        old.ask(Request.UPDATE_CONSUMER_OFFSET, **key, commitOffset=2)
    answer = reset(old, "pg", "push")
    assert (answer.code, answer.remark) == (0, "not set any response code")
    for member in (old, other):
        pushed = member.pushed(PUSH)
        assert pushed.is_oneway
        assert (pushed.field("isForce"), pushed.field("topic"), pushed.field("group")) == ("false", "push", "pg")
        assert offset_table(body_of(pushed)) == {MessageQueue("push", "broker-a", number): 0 for number in (0, 1)}


def test_without_force_no_queue_moves_forward(old: Raw) -> None:
    filled(old, "unforced", "ug")
    for queue in (0, 1):
        key: dict[str, Any] = {"consumerGroup": "ug", "topic": "unforced", "queueId": queue}
        old.ask(Request.UPDATE_CONSUMER_OFFSET, **key, commitOffset=1)
    assert numbers(reset(old, "ug", "unforced", timestamp=-1, isForce="false")) == {0: 1, 1: 1}
    assert numbers(reset(old, "ug", "unforced", timestamp=0, isForce="false")) == {0: 0, 1: 0}


def test_a_group_without_members(old: Raw) -> None:
    filled(old, "empty", "gone")
    for queue in (0, 1):
        key: dict[str, Any] = {"consumerGroup": "gone", "topic": "empty", "queueId": queue}
        old.ask(Request.UPDATE_CONSUMER_OFFSET, **key, commitOffset=1)
    old.ask(Request.UNREGISTER_CLIENT, clientID="me@1", consumerGroup="gone")
    assert reset(old, "gone", "empty").code == 206


def test_the_operators_changes_reset_a_broadcasting_group_without_offsets(codec: Any) -> None:
    settings: dict[str, Any] = {"mqcloud_patch": True, "server_side_reset": False}
    with (
        EmbeddedBroker(doors=["rocketmq"], impl=codec, **settings) as broker,
        Raw(codec.remoting, broker.addresses()["broker-a"]) as raw,
    ):
        filled(raw, "patched", "bg", "BROADCASTING")
        assert numbers(reset(raw, "bg", "patched", timestamp=-1, isForce="false")) == {0: 3, 1: 3}
        assert raw.pushed(PUSH).field("topic") == "patched"

"""Popping: each message to one of those who ask, with all that its handle is made of, or a wait for it."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.popping import Popper
from tests.unit.broker.remoting.raw import Raw

SETTINGS = {"popPollingSize": 2, "enablePropertyFilter": True}


def test_each_message_goes_to_one_of_those_who_ask(raw: Raw) -> None:
    popper = Popper(raw, "shared", 2)
    for queue in range(2):
        popper.send(b"a", b"b", queue=queue)
    one, other = popper.pop(maxMsgNums=3), popper.pop()
    assert sorted(message.body for answer in (one, other) for message in popper.messages(answer)) == [
        b"a",
        b"a",
        b"b",
        b"b",
    ]
    assert len(popper.messages(one)) == 3
    assert (popper.pop().code, popper.pop().remark) == (210, "NO_MESSAGE_IN_QUEUE")
    assert Popper(raw, "shared", 0, "others").bodies(queueId=1) == [b"a", b"b"]


def test_what_handles_are_made_of(raw: Raw) -> None:
    popper = Popper(raw, "handled")
    popper.send(b"a", b"b", b"c")
    assert popper.pop(maxMsgNums=1).field("restNum") == "2"
    answer = popper.pop(invisibleTime=30_000)
    names = ("startOffsetInfo", "msgOffsetInfo", "invisibleTime", "restNum", "orderCountInfo")
    assert [answer.field(name) for name in names] == ["0 0 1", "0 0 1,2", "30000", "0", None]
    assert 0 <= int(answer.field("reviveQid")) < 8


def test_filters_pass_over_what_is_not_wanted(raw: Raw) -> None:
    popper = Popper(raw, "filtered")
    popper.send(b"a", TAGS="a")
    popper.send(b"b", TAGS="b", price="9")
    assert popper.bodies(exp="b") == [b"b"]
    assert Popper(raw, "filtered", 0, "sql").bodies(expType="SQL92", exp="price > 8") == [b"b"]
    assert popper.pop(exp="a").code == 210


def test_a_group_that_begins_at_the_end_still_gets_a_young_queue(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "young")
    popper.send(b"a", b"b", b"c")
    assert popper.bodies(initMode=1) == [b"a", b"b", b"c"]
    log = broker._doors[0].services[0].broker.topics["young"].queues[0].log  # type: ignore[attr-defined]
    broker.control.call(log.trim, 1)
    assert Popper(raw, "young", 0, "late").bodies(initMode=1) == [b"c"]
    assert Popper(raw, "young", 0, "early").bodies(initMode=0) == [b"b", b"c"]


def test_bytes_are_limited_but_one_message_goes_always(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "big")
    popper.send(*[bytes([65 + number]) * 400_000 for number in range(4)])
    assert [len(popper.bodies()) for _ in range(2)] == [2, 2]


def test_peeking_changes_nothing(raw: Raw) -> None:
    popper = Popper(raw, "peeked", 2)
    fields: dict[str, Any] = {"consumerGroup": popper.group, "topic": "peeked", "queueId": -1, "maxMsgNums": 32}
    assert raw.ask(Request.PEEK_MESSAGE, **fields).code == 19
    popper.send(b"a", b"b")
    for _ in range(2):
        answer = raw.ask(Request.PEEK_MESSAGE, **fields)
        assert [message.body for message in popper.messages(answer)] == [b"a", b"b"]
        assert answer.field("restNum") == "2"
    assert popper.bodies() == [b"a", b"b"]


# ---- waiting


def wait(popper: Popper, **more: Any) -> int:
    return popper.raw.tell(Request.POP_MESSAGE, **popper.fields(pollTime=30_000, **more))


def polling(raw: Raw, popper: Popper) -> int:
    fields: dict[str, Any] = {"consumerGroup": popper.group, "topic": popper.topic, "queueId": 0}
    return int(raw.ask(Request.POLLING_INFO, **fields).field("pollingNum"))


def test_a_held_pop_gets_the_next_message_that_it_wants(connect: Connect) -> None:
    raw, other = connect(), connect()
    popper = Popper(raw, "held", 2)
    opaque = wait(popper, exp="b")
    assert polling(other, popper) == 1
    Popper(other, "held", 0).send(b"no", queue=1, TAGS="a")
    Popper(other, "held", 0).send(b"yes", queue=1, TAGS="b")
    assert [message.body for message in popper.messages(raw.answer(opaque))] == [b"yes"]
    assert polling(other, popper) == 0
    assert popper.pop().code == 210


def test_time_is_over_and_too_many_wait(connect: Connect, broker: EmbeddedBroker) -> None:
    raw, other = connect(), connect()
    popper = Popper(raw, "patient")
    opaques = [wait(popper) for _ in range(2)]
    full = popper.pop(pollTime=1000)
    assert full.code == 209
    broker.control.move_clock(31)
    assert [raw.answer(opaque).code for opaque in opaques] == [210, 210]
    assert polling(other, popper) == 0


def test_who_went_away_gets_nothing(connect: Connect) -> None:
    raw, other = connect(), connect()
    popper = Popper(raw, "gone")
    wait(popper)
    assert polling(other, popper) == 1
    raw.close()
    left = Popper(other, "gone", 0)
    while left.bodies() != [b"kept"]:  # the close may come after the message
        left.send(b"kept")


def test_what_comes_again_wakes_who_waits(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "again")
    popper.send(b"a")
    first = popper.pop(invisibleTime=5000)
    opaque = wait(popper)
    raw.create_topic("barrier")
    broker.control.move_clock(6)
    answer = raw.answer(opaque)
    (message,) = popper.messages(answer)
    assert (message.body, message.topic, message.attempts) == (b"a", "again", 1)
    assert answer.field("startOffsetInfo") == "1 0 0"
    words = message.property("POP_CK").split(" ")
    assert words == ["0", answer.field("popTime"), "60000", answer.field("reviveQid"), "1", "broker-a", "0", "0"]
    assert message.property("1ST_POP_TIME") == first.field("popTime")


@pytest.mark.parametrize("order", ["true", "false"])
def test_a_notification_says_that_there_is_something(raw: Raw, broker: EmbeddedBroker, order: str) -> None:
    popper = Popper(raw, f"noticed-{order}")
    fields = {key: value for key, value in popper.fields(order=order).items() if key not in ("invisibleTime", "exp")}

    def has(**more: Any) -> Any:
        return raw.ask(Request.NOTIFICATION, **fields | more).field("hasMsg")

    assert has() == "false"
    opaque = raw.tell(Request.NOTIFICATION, **fields | {"pollTime": 20_000})
    popper.send(b"a")
    assert raw.answer(opaque).field("hasMsg") == "true"
    assert has(pollTime=5000) == "true"
    popper.pop(order=order)
    assert has() == "false"
    opaque = raw.tell(Request.NOTIFICATION, **fields | {"pollTime": 20_000})
    raw.create_topic("barrier")
    broker.control.move_clock(21)
    assert raw.answer(opaque).field("hasMsg") == "false"


# ---- in order


def test_an_ordered_batch_is_given_again_until_all_of_it_is_acknowledged(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "ordered")
    popper.send(b"a", b"b", b"c", b"d")
    ordered: dict[str, Any] = {"order": "true", "maxMsgNums": 2, "invisibleTime": 4000}
    first = popper.pop(**ordered, attemptId="one")
    names = ("reviveQid", "startOffsetInfo", "msgOffsetInfo", "orderCountInfo")
    assert [first.field(name) for name in names] == ["999", "0 0 0", "0 0 0,1", "0 0 0"]
    blocked = popper.pop(**ordered, attemptId="two")
    assert (blocked.code, blocked.field("orderCountInfo")) == (210, "")
    again = popper.pop(**ordered, attemptId="one")  # its answer was lost
    assert (again.code, again.field("orderCountInfo")) == (0, "0 0 0")
    broker.control.move_clock(4.1)
    second = popper.pop(**ordered, attemptId="three")
    assert second.field("orderCountInfo") == "0 qo0%0 1;0 qo0%1 1;0 0 1"
    assert [popper.ack(first, 0).code, popper.committed()] == [0, 0]
    for offset, committed in ((1, 0), (0, 2)):
        assert [popper.ack(second, offset).code, popper.committed()] == [0, committed]
    assert popper.bodies(**ordered) == [b"c", b"d"]


def test_an_ordered_pop_waits_for_its_batch(raw: Raw) -> None:
    popper = Popper(raw, "orderly")
    popper.send(b"a", b"b")
    first = popper.pop(order="true", maxMsgNums=1)
    opaque = wait(popper, order="true")
    popper.ack(first, 0)
    assert [message.body for message in popper.messages(raw.answer(opaque))] == [b"b"]

"""Where popping goes on: after resets, commits, trims and restarts; and what happens to what nobody acknowledged."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.broker.remoting.popped import Handle, Ordered, Popped
from mqclient.broker.remoting.server import Refused
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.popping import Popper
from tests.unit.broker.remoting.raw import Raw


def state(broker: EmbeddedBroker) -> Any:
    return broker._doors[0].services[0]  # type: ignore[attr-defined]


def test_a_handle_is_eight_words() -> None:
    text = "0 1794990706013 60000 3 1 broker-a 2 7"
    assert str(Handle.read(text)) == text
    assert Handle.read(text)[-2:] == (2, 7)
    for bad in ("", "1 2 3", "a b c d e f g h", "1 2 3 4 5 6"):
        with pytest.raises(Refused):
            Handle.read(bad)


def test_committed_is_before_the_lowest_that_is_out() -> None:
    popped = Popped(5)
    popped.take([2, 3, 4], 100)
    assert popped.committed == 2
    del popped.out[2]
    assert (popped.committed, popped.held(3, 100), popped.held(3, 99)) == (3, True, False)
    popped.out.clear()
    assert popped.committed == 5


def test_counts_of_an_ordered_batch_go_with_its_messages() -> None:
    first = Ordered([], 0, "", {}).following([1, 2], 100, 10, "a")
    assert (first.blocks("", 105), first.blocks("a", 105), first.blocks("b", 110)) == (True, False, False)
    second = first.following([2, 3], 120, 10, "b").following([2, 3], 140, 10, "b")
    assert second.counts == {2: 1}
    third = second.following([2, 3], 160, 10, "")
    assert (third.counts, third.next()) == ({2: 2, 3: 1}, 2)
    third.visible.clear()
    assert third.next() == 4


def test_a_reset_and_a_commit_move_it(raw: Raw) -> None:
    popper = Popper(raw, "moved")
    popper.send(b"a", b"b", b"c")
    assert popper.bodies(maxMsgNums=2) == [b"a", b"b"]
    fields: dict[str, Any] = {
        "topic": "moved",
        "group": popper.group,
        "queueId": 0,
        "offset": 1,
        "timestamp": 0,
        "isForce": "true",
    }
    assert raw.ask(Request.INVOKE_BROKER_TO_RESET_OFFSET, **fields).code == 0
    assert popper.bodies(maxMsgNums=1) == [b"b"]
    place: dict[str, Any] = {"consumerGroup": popper.group, "topic": "moved", "queueId": 0}
    raw.ask(Request.UPDATE_CONSUMER_OFFSET, **place, commitOffset=3)
    assert popper.pop().code == 210


def test_what_was_before_a_reset_does_not_come_again(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "reset")
    popper.send(b"a", b"b")
    popper.pop(invisibleTime=5000)
    fields: dict[str, Any] = {
        "topic": "reset",
        "group": popper.group,
        "queueId": 0,
        "offset": 2,
        "timestamp": 0,
        "isForce": "true",
    }
    raw.ask(Request.INVOKE_BROKER_TO_RESET_OFFSET, **fields)
    assert popper.bodies() == []
    broker.control.move_clock(6)
    assert popper.bodies() == []


def test_what_is_gone_when_its_time_is_over_is_passed_over(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "trimmed")
    popper.send(b"a", b"b")
    popper.pop(invisibleTime=5000)
    broker.control.call(state(broker).broker.topics["trimmed"].queues[0].log.trim, 1)
    broker.control.move_clock(6)
    assert popper.bodies() == [b"b"]
    assert popper.committed() == 2


def test_again_and_again_it_is_counted(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "counted")
    popper.send(b"a", KEYS="k", TAGS="t")
    first = popper.pop(invisibleTime=1000)
    for attempt in (1, 2, 3):
        broker.control.move_clock(2)
        (message,) = popper.messages(popper.pop(invisibleTime=1000, exp="other"))
        assert (message.attempts, message.tag, message.property("ORIGIN_GROUP")) == (attempt, "t", popper.group)
        assert message.property("1ST_POP_TIME") == first.field("popTime")
    assert [name for name in state(broker).broker.topics if "counted" in name] == [
        "counted",
        f"%RETRY%{popper.group}_counted",
    ]


def test_a_deleted_topic_takes_its_messages_with_it(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "deleted")
    popper.send(b"a")
    popper.pop(invisibleTime=1000)
    raw.ask(Request.DELETE_TOPIC_IN_BROKER, topic="deleted")
    broker.control.move_clock(2)
    raw.create_topic("deleted", 1)
    assert popper.pop().code == 210


def test_an_ordered_ack_of_something_else(raw: Raw) -> None:
    popper = Popper(raw, "strange")
    popper.send(b"a", b"b", b"c")
    answer = popper.pop(order="true", maxMsgNums=2)
    assert (popper.ack(answer, 2).code, popper.committed()) == (13, 0)
    assert [popper.ack(answer, offset).code for offset in (0, 1)] == [0, 0]
    assert (popper.ack(answer, 0).code, popper.committed()) == (0, 2)
    other = Popper(raw, "strange", 0, "stranger")
    assert (other.ack(answer, 0).code, other.committed()) == (0, 1), "nothing is known of a batch: it is believed"


def test_what_is_acknowledged_or_prolonged_does_not_come_at_its_time(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "told")
    popper.send(b"a", b"b", b"c")
    answer = popper.pop(invisibleTime=5000)
    assert popper.ack(answer, 0).code == popper.change(answer, 1, 20_000).code == 0
    assert popper.committed() == 1
    broker.control.move_clock(6)
    assert popper.bodies() == [b"c"]
    broker.control.move_clock(15)
    assert popper.bodies() == [b"b"]
    assert popper.committed() == 3


def test_looking_moves_nothing(raw: Raw) -> None:
    popper = Popper(raw, "looked")
    popper.send(b"a", b"b")
    fields: dict[str, Any] = {"consumerGroup": popper.group, "topic": "looked", "queueId": 0, "maxMsgNums": 1}
    for _ in range(2):
        assert [message.body for message in popper.messages(raw.ask(Request.PEEK_MESSAGE, **fields))] == [b"a"]
    popper.pop(maxMsgNums=1)
    assert [message.body for message in popper.messages(raw.ask(Request.PEEK_MESSAGE, **fields))] == [b"b"]


def test_one_of_an_ordered_batch_is_held_for_longer(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "slow")
    popper.send(b"a", b"b")
    answer = popper.pop(order="true", invisibleTime=5000)
    popper.change(answer, 0, 60_000)
    broker.control.move_clock(6)
    assert popper.bodies(order="true") == []
    broker.control.move_clock(56)
    assert popper.bodies(order="true") == [b"a", b"b"]

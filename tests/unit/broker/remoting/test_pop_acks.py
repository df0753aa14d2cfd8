"""What is acknowledged never comes again, what is not does, and whoever needs longer says so."""

from __future__ import annotations

from base64 import b64encode
from itertools import count
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.popping import Popper
from tests.unit.broker.remoting.raw import Raw

NUMBERS = count()


def test_acknowledged_by_ones(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "ones")
    popper.send(b"a", b"b", b"c")
    answer = popper.pop()
    assert [popper.ack(answer, offset).code for offset in (0, 2, 2)] == [0, 0, 0]
    assert popper.committed() == 1
    broker.control.move_clock(61)
    assert popper.bodies() == [b"b"]
    assert popper.committed() == 3


def test_acknowledged_by_bits(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "bits")
    popper.send(*[b"%d" % number for number in range(12)])
    popper.pop(maxMsgNums=1)
    answer = popper.pop()

    def entry(bits: int, **more: Any) -> dict[str, Any]:
        text = b64encode(bits.to_bytes(2, "little")).decode()
        fields = {"c": popper.group, "t": "bits", "r": "0", "so": 1, "q": 0, "b": text, "it": 60_000}
        return fields | {"rq": int(answer.field("reviveQid")), "pt": int(answer.field("popTime"))} | more

    acks = [entry(0b100_0000_0011), entry(1, t="nosuchtopic"), entry(1, r="1")]
    assert raw.ask(Request.BATCH_ACK_MESSAGE, write_body({"brokerName": "broker-a", "acks": acks})).code == 0
    broker.control.move_clock(61)
    assert popper.bodies() == [b"0", b"3", b"4", b"5", b"6", b"7", b"8", b"9", b"10"]


def test_more_time_is_a_new_handle(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "longer")
    popper.send(b"a")
    answer = popper.pop(invisibleTime=10_000)
    broker.control.move_clock(5)
    changed = popper.change(answer, 0, 20_000)
    assert (changed.code, changed.remark) == (0, "not set any response code")
    assert (changed.field("invisibleTime"), changed.field("reviveQid")) == ("20000", answer.field("reviveQid"))
    assert int(changed.field("popTime")) >= int(answer.field("popTime")) + 5000
    broker.control.move_clock(6)
    assert popper.bodies() == []
    assert popper.ack(answer, 0).code == 0, "the old handle is worth nothing"
    assert popper.change(answer, 0, 90_000).code == 0
    broker.control.move_clock(15)
    assert popper.bodies() == [b"a"]


def test_what_came_again_has_its_own_handle(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "twice")
    popper.send(b"a")
    popper.pop(invisibleTime=1000)
    broker.control.move_clock(2)
    (message,) = popper.messages(popper.pop(invisibleTime=1000))
    place: dict[str, Any] = {
        "consumerGroup": popper.group,
        "topic": f"%RETRY%{popper.group}_twice",
        "queueId": 0,
        "offset": 0,
    }
    assert raw.ask(Request.ACK_MESSAGE, **place, extraInfo=message.property("POP_CK")).code == 0
    broker.control.move_clock(5)
    assert popper.bodies() == []


def test_more_time_for_one_of_an_ordered_batch(raw: Raw, broker: EmbeddedBroker) -> None:
    popper = Popper(raw, "orders")
    popper.send(b"a", b"b")
    answer = popper.pop(order="true")
    assert popper.ack(answer, 1).code == 0
    changed = popper.change(answer, 0, 1000)
    assert (changed.field("popTime"), changed.field("reviveQid")) == (answer.field("popTime"), "999")
    assert 1000 <= int(changed.field("invisibleTime")) < 4000
    opaque = raw.tell(Request.POP_MESSAGE, **popper.fields(order="true", pollTime=20_000))
    raw.create_topic("barrier")
    broker.control.move_clock(1.1)
    again = raw.answer(opaque)
    assert [message.body for message in popper.messages(again)] == [b"a", b"b"]
    assert popper.change(answer, 0, 1000).code == 0, "an old handle changes nothing"


@pytest.mark.parametrize(
    ("wrong", "code", "remark"),
    [
        ({"topic": "nosuchtopic"}, 17, "topic[nosuchtopic] not exist"),
        ({"queueId": 9}, 13, "queueId[9] is illegal, topic:[wrong] topicConfig.readQueueNums:[1]"),
        ({"offset": 99}, 208, "offset is illegal, key:wrong@0, commit:99, store:0~1"),
        ({"offset": -1}, 208, "offset is illegal, key:wrong@0, commit:-1, store:0~1"),
        ({"extraInfo": "1 2"}, 1, "'1 2' is no handle"),
        ({"extraInfo": "1 2 3 4 0 broker-a zero 0"}, 1, "is no handle"),
    ],
)
def test_what_cannot_be_acknowledged(raw: Raw, wrong: dict[str, Any], code: int, remark: str) -> None:
    popper = Popper(raw, "wrong")
    popper.group = f"wrong-{next(NUMBERS)}"
    if raw.pull("g", "wrong", 0).code != 0:
        popper.send(b"a")
    place = popper.place(popper.pop(), 0, invisibleTime=1000) | wrong
    acked = raw.ask(Request.ACK_MESSAGE, **place)
    assert (acked.code, remark in acked.remark) == (code, True)
    changed = raw.ask(Request.CHANGE_MESSAGE_INVISIBLETIME, **place)
    assert changed.code == code
    if code != 1:
        assert changed.fields == {"invisibleTime": "0", "popTime": "0", "reviveQid": "0"}

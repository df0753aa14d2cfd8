"""What real clients asked a real 5.5.0 is answered with the same code, remark and fields by the embedded broker."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import read_body, write_body
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw

VECTORS = Path(__file__).parents[3] / "vectors" / "rocketmq"
TOO_LATE = re.compile(r"pop-200050")
OF_MEMBERS = re.compile(r"client-status-221|running-info-307-to-client")
NAMES = sorted(
    path.name.removesuffix("-req.frame.bin")
    for path in VECTORS.glob("*-req.frame.bin")
    if not TOO_LATE.match(path.name) and not OF_MEMBERS.match(path.name)
)


def recorded(codec: Any, name: str, side: str) -> Any:
    (frame,) = codec.remoting.FrameReader().feed((VECTORS / f"{name}-{side}.frame.bin").read_bytes())
    return frame


def fill(raw: Raw, topic: str, queues: int, each: int, **properties: str) -> None:
    raw.create_topic(topic, queues)
    for queue in range(queues):
        for _ in range(each):
            raw.send(topic, b"x", queue, **properties)


def subscribed(
    raw: Raw, group: str, topic: str, version: int, client_id: str = "192.0.2.2@c1", **subscription: Any
) -> None:
    """A member whose heartbeat the recorded pull came after."""
    every = {"classFilterMode": False, "codeSet": [], "expressionType": "TAG", "subString": "*", "tagsSet": []}
    data = every | {"topic": topic, "subVersion": version} | subscription
    retry = every | {"topic": f"%RETRY%{group}", "subVersion": version}
    entry = {"groupName": group, "subscriptionDataSet": [data, retry]}
    raw.ask(Request.HEART_BEAT, write_body({"clientID": client_id, "consumerDataSet": [entry]}))


def offsets(raw: Raw, group: str, topic: str, queues: int) -> None:
    for queue in range(queues):
        key: dict[str, Any] = {"consumerGroup": group, "topic": topic, "queueId": queue, "commitOffset": 1}
        assert raw.ask(Request.UPDATE_CONSUMER_OFFSET, **key).code == 0


def prepare(name: str, fields: dict[str, str], raw: Raw) -> None:
    """The state in which the real broker was asked."""
    topic = fields.get("topic") or "VecT"
    group = fields.get("group") or fields.get("consumerGroup") or "VecG"
    if name.startswith("222"):
        raw.ask(Request.UPDATE_BROKER_CONFIG, b"useServerSideResetOffset=false")
        fill(raw, topic, 2, 1)
        subscribed(raw, group, topic, 1)
        if name.endswith("ok"):
            offsets(raw, group, topic, 2)
    elif name.startswith("pull-24"):
        fill(raw, topic, 2, 1)
    elif name.startswith("pull-25"):
        fill(raw, topic, 2, 3)
        subscribed(raw, group, topic, int(fields["subVersion"]) - 1)
    elif name.startswith("pull"):
        each = {"pull-found-bin": 5, "pull-20-bin": 7}.get(name, 3)
        fill(raw, topic, 4, each)
        codes = [7] if name in ("pull-20-bin", "pull-20-json") else []
        sub_string = "TagOther" if codes else "*"
        subscribed(raw, group, topic, int(fields["subVersion"]), codeSet=codes, subString=sub_string)
    elif name.startswith("query-offset-22"):
        subscribed(raw, group, "VecT", 1)
    elif name.startswith("query-offset"):
        fill(raw, topic, 4, 2)
        subscribed(raw, group, topic, 1)
        offsets(raw, group, topic, 4)
    elif name.startswith("assignment"):
        subscribed(raw, "VecPopG", "VecT", 1, client_id="192.0.2.2@c4")
    elif name.startswith("pop-"):
        fill(raw, "VecT", 4, 9)
    elif name.startswith(("consumer", "unregister")):
        subscribed(raw, group, topic, 1)
    elif name.startswith(("route-bin", "route-json", "send")):
        raw.create_topic("VecT", 4)
        raw.create_topic("Vec100", 4)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if not re.match(r"send-back|consumer-status|running-info", name)]
)
def test_a_recorded_request_is_answered_as_it_was(name: str, codec: Any) -> None:
    asked, wanted = recorded(codec, name, "req"), recorded(codec, name, "resp")
    with EmbeddedBroker(doors=["rocketmq"], impl=codec) as broker:
        port = broker.name_server if asked.code == Request.GET_ROUTEINFO_BY_TOPIC else broker.addresses()["broker-a"]
        with Raw(codec.remoting, broker.addresses()["broker-a"]) as member, Raw(codec.remoting, port) as raw:
            prepare(name, asked.fields, member)
            raw._socket.sendall((VECTORS / f"{name}-req.frame.bin").read_bytes())
            answer = raw.answer(asked.opaque)
    assert (answer.code, sorted(answer.fields)) == (wanted.code, sorted(wanted.fields))
    if wanted.code:
        assert (answer.remark or "").split("\n")[0] == (wanted.remark or "").split("\n")[0]
    if wanted.body and asked.code != Request.PULL_MESSAGE:
        assert keys(read_body(answer.body)) == keys(read_body(wanted.body))


def keys(value: Any) -> Any:
    """The shape of a body: what it is made of, without the values."""
    if isinstance(value, dict):
        named = {str(key): keys(item) for key, item in value.items() if isinstance(key, str)}
        return named if len(named) == len(value) else "table"
    return [keys(value[0])] if isinstance(value, list) and value else type(value).__name__


ONEWAY = sorted(
    path.name for path in VECTORS.glob("*-*.frame.bin") if re.match(r"(send|update-offset)-oneway", path.name)
)
ENDS = sorted(path.name for path in VECTORS.glob("end-transaction-*.frame.bin"))
CHECKED = "end-transaction-from-check"


def oneway(codec: Any, name: str) -> Any:
    (frame,) = codec.remoting.FrameReader().feed((VECTORS / name).read_bytes())
    return frame


@pytest.mark.parametrize("name", ONEWAY)
def test_a_recorded_oneway_request_has_its_effect_and_no_answer(name: str, codec: Any, raw: Raw) -> None:
    asked = oneway(codec, name)
    sends = asked.code != Request.UPDATE_CONSUMER_OFFSET
    topic, queue = (asked.field("b"), asked.field("e")) if sends else (asked.field("topic"), asked.field("queueId"))
    raw.create_topic(topic, 4)
    subscribed(raw, asked.field("consumerGroup", "VecG"), topic, 1)
    raw._socket.sendall((VECTORS / name).read_bytes())
    if sends:
        found = raw.pull("reader", topic, 0, int(queue))
        (message,) = codec.remoting.decode_messages(found.body)
        assert (message.body, message.tag) == (asked.body, "TagO")
    else:
        place = {"consumerGroup": asked.field("consumerGroup"), "topic": topic, "queueId": queue}
        assert raw.ask(Request.QUERY_CONSUMER_OFFSET, **place).field("offset") == asked.field("commitOffset")
    assert not [frame for frame in raw._frames if frame.opaque == asked.opaque]


@pytest.mark.parametrize("name", ENDS)
def test_a_recorded_decision_ends_its_half_message(name: str, codec: Any) -> None:
    """The half message lies where the real broker had it, in the commit log and in its queue."""
    asked = oneway(codec, name)
    half = recorded(codec, "send-txhalf-json" if "json" in name else "send-txhalf-bin", "req")
    with (
        EmbeddedBroker(doors=["rocketmq"], impl=codec) as broker,
        Raw(codec.remoting, broker.addresses()["broker-a"]) as raw,
    ):
        raw.create_topic("VecT", 4)
        store = broker._doors[0].services[0].broker  # type: ignore[attr-defined]
        for _ in range(int(asked.field("tranStateTableOffset"))):
            raw.ask(half.code, half.body, **half.fields)
        place = int(asked.field("commitLogOffset"))
        broker.control.call(lambda: setattr(store, "_end", place))
        assert raw.ask(half.code, half.body, **half.fields).code == 0
        raw._socket.sendall((VECTORS / name).read_bytes())
        tops = [raw.ask(Request.GET_MAX_OFFSET, topic="VecT", queueId=queue) for queue in range(4)]
        arrived = sum(int(top.field("offset")) for top in tops)
    assert arrived == ("rollback" not in name)


@pytest.mark.parametrize("name", ["send-back-bin", "send-back-json"])
def test_a_recorded_send_back_is_answered_as_it_was(name: str, codec: Any) -> None:
    """Its message lies where the real broker had it."""
    asked, wanted = recorded(codec, name, "req"), recorded(codec, name, "resp")
    with (
        EmbeddedBroker(doors=["rocketmq"], impl=codec) as broker,
        Raw(codec.remoting, broker.addresses()["broker-a"]) as raw,
    ):
        raw._socket.sendall((VECTORS / f"{name}-req.frame.bin").read_bytes())
        assert raw.answer(asked.opaque).code == 1, "there is nothing at that place"
        store = broker._doors[0].services[0].broker  # type: ignore[attr-defined]
        broker.control.call(lambda: setattr(store, "_end", int(asked.field("offset"))))
        fill(raw, "VecT", 1, 1)
        raw._socket.sendall((VECTORS / f"{name}-req.frame.bin").read_bytes())
        answer = raw.answer(asked.opaque)
        waiting = raw.ask(Request.GET_MAX_OFFSET, topic="SCHEDULE_TOPIC_XXXX", queueId=2)
    assert (answer.code, answer.fields, answer.remark) == (wanted.code, wanted.fields, wanted.remark)
    assert waiting.field("offset") == "1", "it waits for its first retry"


def test_recorded_relays_reach_the_member_that_they_name(codec: Any, connect: Connect) -> None:
    member, admin = connect(), connect()
    member.heartbeat("192.0.2.2@c1", "VecG", {"VecT": 1})
    plays: list[tuple[str, int, Callable[[Any], None]]] = [
        ("running-info-307-admin", 307, lambda asked: member.respond(asked, 0, b"{}")),
        ("consumer-status-223", 221, lambda asked: member.respond(asked, 0, b'{"messageQueueTable":{}}')),
    ]
    for name, code, respond in plays:
        asked = recorded(codec, name, "req")
        admin._socket.sendall((VECTORS / f"{name}-req.frame.bin").read_bytes())
        respond(member.pushed(code))
        assert admin.answer(asked.opaque).code == 0


def test_a_question_about_a_half_message_is_put_as_the_real_broker_put_it(codec: Any) -> None:
    asked = recorded(codec, "send-txhalf-json", "req")
    (wanted,) = codec.remoting.FrameReader().feed((VECTORS / "check-transaction-39-json.frame.bin").read_bytes())
    with (
        EmbeddedBroker(doors=["rocketmq"], impl=codec) as broker,
        Raw(codec.remoting, broker.addresses()["broker-a"]) as raw,
    ):
        raw.create_topic("VecT", 4)
        raw.ask(Request.HEART_BEAT, write_body({"clientID": "p@1", "producerDataSet": [{"groupName": "VecTxPG"}]}))
        fields = asked.fields | {"g": broker.house.clock.wall_ms()}
        assert raw.ask(asked.code, asked.body, **fields).code == 0
        broker.control.move_clock(31)
        got = raw.pushed(Request.CHECK_TRANSACTION_STATE)
    assert (got.flag, sorted(got.fields)) == (wanted.flag, sorted(wanted.fields))
    (ours,), (theirs,) = codec.remoting.decode_messages(got.body), codec.remoting.decode_messages(wanted.body)
    assert (ours.topic, ours.queue_id, ours.sys_flag, ours.body) == (theirs.topic, 0, theirs.sys_flag, theirs.body)
    assert ours.properties | {"WAIT": "false"} == theirs.properties


def test_a_recorded_pop_that_were_sent_today_is_answered_as_it_was(codec: Any, raw: Raw) -> None:
    asked, wanted = recorded(codec, "pop-200050", "req"), recorded(codec, "pop-200050", "resp")
    fill(raw, "VecT", 4, 3)
    now = int(time.time() * 1000)
    answer = raw.ask(asked.code, **asked.fields | {"bornTime": now})
    assert (answer.code, answer.remark, sorted(answer.fields)) == (0, wanted.remark, sorted(wanted.fields))
    assert sorted(answer.field("startOffsetInfo").split(";")) == ["0 0 0", "0 1 0", "0 2 0", "0 3 0"]
    assert raw.ask(asked.code, **asked.fields).code == 210, "the recorded one is too late"

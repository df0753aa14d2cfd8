"""Half messages: hidden until committed, gone when rolled back, asked about when nobody says which."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import write_body
from tests.unit.broker.remoting.conftest import Connect
from tests.unit.broker.remoting.raw import Raw

HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
GROUP = "bankers"
COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0


@pytest.fixture(name="broker")
def broker_fixture(codec: Any, request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    """A broker for each test: one that asks asks for all that is left."""
    settings = getattr(request, "param", {})
    with EmbeddedBroker(doors=["rocketmq"], impl=codec, **settings) as broker:
        yield broker


def half(raw: Raw, topic: str, body: bytes, **properties: str) -> Any:
    """Send a half message; where it lies, as END_TRANSACTION names it."""
    raw.create_topic(topic, 4)
    properties = {"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": f"K{body.decode()}", **properties}
    text = raw.codec.encode_properties(properties).decode()
    now = int(time.time() * 1000)
    fields = {"a": GROUP, "b": topic, "c": "TBW102", "d": 4, "e": 2, "f": 4, "g": now, "h": 9, "i": text}
    answer = raw.ask(Request.SEND_MESSAGE_V2, body, **fields)
    assert (answer.code, answer.field("queueId")) == (0, "2"), answer.remark
    return answer


def ends(answer: Any, codec: Any, how: int, **more: Any) -> dict[str, Any]:
    return {
        "producerGroup": GROUP,
        "tranStateTableOffset": answer.field("queueOffset"),
        "commitLogOffset": codec.parse_offset_id(answer.field("msgId"))[2],
        "commitOrRollback": how,
        "msgId": answer.field("transactionId"),
        **more,
    }


def end(raw: Raw, answer: Any, how: int, **more: Any) -> Any:
    return raw.ask(Request.END_TRANSACTION, **ends(answer, raw.codec, how, **more))


def messages(raw: Raw, topic: str, queue: int = 2) -> list[Any]:
    answer = raw.pull("reader", topic, 0, queue)
    return list(raw.codec.decode_messages(answer.body)) if answer.code == 0 else []


def register(raw: Raw, client_id: str) -> None:
    beat = {"clientID": client_id, "producerDataSet": [{"groupName": GROUP}], "consumerDataSet": []}
    assert raw.ask(Request.HEART_BEAT, write_body(beat)).code == 0


def test_committed_it_is_there_and_says_where_it_was(raw: Raw) -> None:
    sent = half(raw, "accounts", b"pay", TAGS="a")
    assert sent.field("transactionId") == "Kpay"
    assert messages(raw, "accounts") == []
    assert end(raw, sent, COMMIT).code == 0
    (message,) = messages(raw, "accounts")
    assert (message.body, message.tag, message.flag, message.queue_id) == (b"pay", "a", 9, 2)
    assert message.sys_flag & 12 == COMMIT
    assert message.prepared_transaction_offset == raw.codec.parse_offset_id(sent.field("msgId"))[2]
    named = ("REAL_TOPIC", "TRAN_MSG", "__transactionId__", "MSG_REGION", "TRACE_ON")
    assert [message.property(name) for name in named] == [None, "true", "Kpay", "DefaultRegion", "true"]


def test_rolled_back_it_never_comes_and_is_never_asked_about(raw: Raw, broker: EmbeddedBroker) -> None:
    register(raw, "banker@1")
    assert end(raw, half(raw, "accounts", b"steal"), ROLLBACK).code == 0
    broker.control.move_clock(3600)
    assert [message.attempts for message in messages(raw, HALF, 0)] == [0]
    assert messages(raw, "accounts") == []


def test_who_does_not_know_is_asked_in_turn_until_it_does(connect: Connect, broker: EmbeddedBroker) -> None:
    one, two = connect(), connect()
    for number, raw in enumerate((one, two)):
        register(raw, f"banker@{number}")
    sent = half(one, "accounts", b"later")
    one.tell(Request.END_TRANSACTION, oneway=True, **ends(sent, one.codec, UNKNOWN))
    one.create_topic("barrier")
    broker.control.move_clock(31)
    asked = one.pushed(Request.CHECK_TRANSACTION_STATE)
    assert (asked.is_oneway, asked.field("transactionId"), asked.field("bname")) == (True, "Klater", "broker-a")
    (message,) = one.codec.decode_messages(asked.body)
    assert (message.topic, message.queue_id, message.body) == ("accounts", 2, b"later")
    assert message.property("TRANSACTION_CHECK_TIMES") == "1"
    assert message.offset_id == asked.field("offsetMsgId")
    assert asked.field("tranStateTableOffset") == "1", "asked under its new place"
    broker.control.move_clock(31)
    asked = two.pushed(Request.CHECK_TRANSACTION_STATE)
    fields = {name: asked.field(name) for name in ("tranStateTableOffset", "commitLogOffset", "msgId", "transactionId")}
    decided = two.ask(
        Request.END_TRANSACTION, **fields, producerGroup=GROUP, commitOrRollback=COMMIT, fromTransactionCheck="true"
    )
    assert decided.code == 0
    assert [message.body for message in messages(two, "accounts")] == [b"later"]
    before = len(messages(two, HALF, 0))
    broker.control.move_clock(3600)
    assert len(messages(two, HALF, 0)) == before == 3


def test_young_ones_and_those_that_asked_for_time_are_left_alone(raw: Raw, broker: EmbeddedBroker) -> None:
    register(raw, "banker@1")
    broker.control.move_clock(29.9)  # it is asked by the broker's clock: both are 30 s old
    patient = half(raw, "accounts", b"patient", CHECK_IMMUNITY_TIME_IN_SECONDS="100")
    half(raw, "accounts", b"odd", CHECK_IMMUNITY_TIME_IN_SECONDS="soon")
    broker.control.move_clock(30)
    asked = raw.pushed(Request.CHECK_TRANSACTION_STATE)
    assert asked.field("msgId") == "Kodd"
    broker.control.move_clock(60)
    late = end(raw, patient, COMMIT)
    assert (late.code, messages(raw, "accounts")) == (604, [])
    assert end(raw, patient, COMMIT, fromTransactionCheck="true").code == 0


@pytest.mark.parametrize("broker", [{"transactionCheckMax": 2, "transactionCheckInterval": 1000}], indirect=True)
def test_after_so_many_questions_it_is_given_up(raw: Raw, broker: EmbeddedBroker) -> None:
    half(raw, "accounts", b"silent")  # of a group without a producer: it is counted all the same
    for _ in range(3):
        broker.control.move_clock(7)
    (message,) = messages(raw, "TRANS_CHECK_MAX_TIME_TOPIC", 0)
    assert (message.body, message.property("TRANSACTION_CHECK_TIMES")) == (b"silent", "2")
    assert len(messages(raw, HALF, 0)) == 3
    broker.control.move_clock(100)
    assert len(messages(raw, HALF, 0)) == 3


def test_what_is_older_than_the_files_is_given_up_at_once(raw: Raw, broker: EmbeddedBroker) -> None:
    half(raw, "accounts", b"ancient")
    broker.control.move_clock(73 * 3600)
    assert [message.body for message in messages(raw, "TRANS_CHECK_MAX_TIME_TOPIC", 0)] == [b"ancient"]


@pytest.mark.parametrize(
    ("wrong", "remark"),
    [
        ({"producerGroup": "thieves"}, "The producer group wrong"),
        ({"tranStateTableOffset": 77}, "The transaction state table offset wrong"),
        ({"commitLogOffset": 1 << 40}, "Find prepared transaction message failed"),
    ],
)
def test_decisions_about_something_else(raw: Raw, wrong: dict[str, Any], remark: str) -> None:
    answer = end(raw, half(raw, "accounts", b"mine"), COMMIT, **wrong)
    assert (answer.code, answer.remark) == (1, remark)
    assert messages(raw, "accounts") == []


@pytest.mark.parametrize("broker", [{"rejectTransactionMessage": True}], indirect=True)
def test_a_broker_may_reject_them(raw: Raw) -> None:
    raw.create_topic("halves", 1)
    answer = raw.send("halves", b"x", TRAN_MSG="true", PGROUP="p")
    assert (answer.code, answer.field("MSG_REGION")) == (16, "DefaultRegion")
    assert messages(raw, "halves", 0) == []


def test_a_broker_that_starts_with_a_log_knows_what_is_done(raw: Raw, broker: EmbeddedBroker) -> None:
    register(raw, "banker@1")
    end(raw, half(raw, "accounts", b"done"), COMMIT)
    half(raw, "accounts", b"open")
    transactions = broker._doors[0].services[0].transactions  # type: ignore[attr-defined]

    def restart() -> None:
        transactions._pending.clear()
        transactions.start()

    broker.control.call(restart)
    broker.control.move_clock(31)
    assert raw.pushed(Request.CHECK_TRANSACTION_STATE).field("msgId") == "Kopen"
    assert messages(raw, "accounts")[0].body == b"done"


def test_a_retried_message_that_was_a_transaction_once_is_a_message_like_others(raw: Raw) -> None:
    raw.heartbeat("me@1", "again", {"TBW102": 1})
    text = raw.codec.encode_properties({"TRAN_MSG": "true", "PGROUP": GROUP, "DELAY": "3"}).decode()
    fields = {"a": "p", "b": "%RETRY%again", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0, "i": text, "j": 1}
    assert raw.ask(Request.SEND_MESSAGE_V2, b"x", **fields).code == 0
    assert messages(raw, HALF, 0) == []

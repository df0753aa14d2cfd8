"""What is sent back comes again later, ten seconds the first time, and goes to the dead letters at the limit."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.requests import lock_body
from tests.unit.broker.remoting.raw import Raw


def messages(raw: Raw, topic: str) -> list[Any]:
    answer = raw.pull("reader", topic, 0)
    return list(raw.codec.decode_messages(answer.body)) if answer.code == 0 else []


def send_back(raw: Raw, group: str, offset: int, level: int = 0, **fields: Any) -> Any:
    return raw.ask(Request.CONSUMER_SEND_MSG_BACK, offset=offset, group=group, delayLevel=level, **fields)


def test_a_message_comes_again_after_ten_seconds_with_its_story(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("work", 1)
    raw.send("work", b"hard", TAGS="a")
    (message,) = messages(raw, "work")
    assert send_back(raw, "workers", message.physical_offset).code == 0
    assert messages(raw, "%RETRY%workers") == []
    broker.control.move_clock(9.5)
    assert messages(raw, "%RETRY%workers") == []
    broker.control.move_clock(1)
    (again,) = messages(raw, "%RETRY%workers")
    assert (again.body, again.attempts, again.tag, again.property("RETRY_TOPIC")) == (b"hard", 1, "a", "work")
    assert again.property("ORIGIN_MESSAGE_ID") == message.offset_id
    assert send_back(raw, "workers", again.physical_offset).code == 0
    broker.control.move_clock(29)
    assert len(messages(raw, "%RETRY%workers")) == 1  # level 4 is 30 s
    broker.control.move_clock(2)
    assert [message.attempts for message in messages(raw, "%RETRY%workers")] == [1, 2]


def test_at_the_limit_and_on_demand_it_is_dead(raw: Raw) -> None:
    raw.create_topic("deadly", 1)
    for body in (b"limit", b"demand"):
        raw.send("deadly", body)
    limit, demand = messages(raw, "deadly")
    assert send_back(raw, "mortals", limit.physical_offset, maxReconsumeTimes=0).code == 0
    assert send_back(raw, "mortals", demand.physical_offset, -1).code == 0
    assert [message.body for message in messages(raw, "%DLQ%mortals")] == [b"limit", b"demand"]


def test_what_is_not_there_cannot_be_sent_back(raw: Raw) -> None:
    assert send_back(raw, "workers", 1 << 40).code == 1


def test_a_group_without_retry_queues_drops_it(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("dropped", 1)
    raw.send("dropped", b"x")
    (message,) = messages(raw, "dropped")
    broker._doors[0].services[0].broker.group("droppers").retry_queues = 0  # type: ignore[attr-defined]
    assert send_back(raw, "droppers", message.physical_offset).code == 0
    assert messages(raw, "%RETRY%droppers") == []


@pytest.mark.parametrize(("level", "seconds"), [("1", 1), ("5", 60), ("99", 7200)])
def test_delay_levels(raw: Raw, broker: EmbeddedBroker, level: str, seconds: int) -> None:
    topic = f"delayed-{level}"
    raw.create_topic(topic, 1)
    assert raw.send(topic, b"later", DELAY=level).code == 0
    broker.control.move_clock(seconds - 0.5)
    assert messages(raw, topic) == []
    broker.control.move_clock(1)
    (message,) = messages(raw, topic)
    assert (message.body, message.property("REAL_TOPIC")) == (b"later", topic)


def test_no_level_or_a_strange_one_is_no_delay(raw: Raw) -> None:
    raw.create_topic("prompt", 1)
    for level in ("0", "-3", "soon"):
        raw.send("prompt", b"x", DELAY=level)
    assert len(messages(raw, "prompt")) == 3


def test_direct_sends_to_a_retry_topic(raw: Raw) -> None:
    raw.heartbeat("me@1", "direct", {"TBW102": 1})
    fields: dict[str, Any] = {
        "a": "p",
        "b": "%RETRY%direct",
        "c": "TBW102",
        "d": 4,
        "e": 0,
        "f": 0,
        "g": 1,
        "h": 0,
        "i": "",
    }
    assert raw.ask(Request.SEND_MESSAGE_V2, b"alive", **fields, j=1).code == 0
    assert raw.ask(Request.SEND_MESSAGE_V2, b"dead", **fields | {"i": "DELAY\x013\x02"}, j=3, l=2).code == 0
    raw.ask(Request.LOCK_BATCH_MQ, lock_body("direct", "me@1", []))
    assert [message.body for message in messages(raw, "%RETRY%direct")] == [b"alive"]
    assert [message.body for message in messages(raw, "%DLQ%direct")] == [b"dead"]


@pytest.mark.parametrize("name", ["TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"])
def test_timed_messages(raw: Raw, broker: EmbeddedBroker, name: str) -> None:
    topic = name.lower()
    raw.create_topic(topic, 1)
    value = {"TIMER_DELAY_SEC": 90, "TIMER_DELAY_MS": 90_000}.get(name, broker.house.clock.wall_ms() + 90_000)
    times: dict[str, Any] = {name: str(value)}
    sent = raw.send(topic, b"timed", **times)
    assert sent.field("recallHandle")
    broker.control.move_clock(85)
    assert messages(raw, topic) == []
    broker.control.move_clock(6)
    (message,) = messages(raw, topic)
    assert (message.body, message.property("REAL_QID")) == (b"timed", "0")
    assert message.property("TIMER_OUT_MS")


def test_a_time_that_is_past_is_now_and_one_too_far_is_refused(raw: Raw) -> None:
    raw.create_topic("timely", 1)
    assert raw.send("timely", b"late", TIMER_DELIVER_MS="1").code == 0
    assert len(messages(raw, "timely")) == 1
    assert raw.send("timely", b"far", TIMER_DELAY_SEC="259300").code == 13


def test_a_timed_message_is_forgotten_when_it_is_recalled(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("recalled", 1)
    for name in ("K1", "K2"):
        raw.send("recalled", name.encode(), UNIQ_KEY=name, TIMER_DELAY_SEC="30")
    retries = broker._doors[0].services[0].retries  # type: ignore[attr-defined]
    broker.control.call(retries.recall, "recalled", "K1")
    broker.control.call(retries.recall, "other", "K2")
    broker.control.move_clock(31)
    assert [message.body for message in messages(raw, "recalled")] == [b"K2"]


def test_what_waited_when_the_broker_ended_is_taken_over(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("waited", 1)
    raw.send("waited", b"later", DELAY="5")
    retries = broker._doors[0].services[0].retries  # type: ignore[attr-defined]
    broker.control.call(retries.start)
    broker.control.move_clock(61)
    assert [message.body for message in messages(raw, "waited")] == [b"later"]


def test_a_message_of_a_batch_may_have_to_wait(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("batched", 1)
    builder = raw.codec.BatchBuilder()
    builder.add(b"now")
    builder.add(b"later", raw.codec.encode_properties({"DELAY": "5"}))
    fields = {"a": "p", "b": "batched", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0, "i": "", "m": "true"}
    assert raw.ask(Request.SEND_BATCH_MESSAGE, builder.seal(), **fields).code == 0
    assert [message.body for message in messages(raw, "batched")] == [b"now"]
    broker.control.move_clock(61)
    assert [message.body for message in messages(raw, "batched")] == [b"now", b"later"]

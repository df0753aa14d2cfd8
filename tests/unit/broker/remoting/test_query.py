"""Looking up: by place, by unique key, by key; what only looks like a key is none."""

from __future__ import annotations

import time
from typing import Any

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.raw import Raw

EVER = 2**63 - 1


def query(raw: Raw, topic: str, key: str, most: int = 10, unique: bool = False, begin: int = 0, end: int = EVER) -> Any:
    fields: dict[str, Any] = {"_UNIQUE_KEY_QUERY": str(unique).lower()}
    return raw.ask(
        Request.QUERY_MESSAGE, topic=topic, key=key, maxNum=most, beginTimestamp=begin, endTimestamp=end, **fields
    )


def bodies(raw: Raw, *args: Any, **kwargs: Any) -> list[bytes]:
    answer = query(raw, *args, **kwargs)
    return [message.body for message in raw.codec.decode_messages(answer.body)] if answer.code == 0 else []


def test_a_message_is_seen_at_its_place(raw: Raw) -> None:
    raw.create_topic("seen", 1)
    offset_id = raw.send("seen", b"look").field("msgId")
    place = raw.codec.parse_offset_id(offset_id)[2]
    (message,) = raw.codec.decode_messages(raw.ask(Request.VIEW_MESSAGE_BY_ID, offset=place).body)
    assert (message.body, message.offset_id) == (b"look", offset_id)
    answer = raw.ask(Request.VIEW_MESSAGE_BY_ID, offset=place + 1)
    assert (answer.code, answer.remark) == (1, f"can not find message by the offset, {place + 1}")


def test_by_key_in_every_queue_in_the_order_of_the_log(raw: Raw) -> None:
    raw.create_topic("keyed", 4)
    raw.create_topic("other", 4)
    for number in range(8):
        raw.send("keyed", b"%d" % number, number % 4, KEYS=f"each k{number % 2} tail")
        raw.send("other", b"x", number % 4, KEYS="k0")
    answer = query(raw, "keyed", "k0")
    found = list(raw.codec.decode_messages(answer.body))
    assert [message.body for message in found] == [b"0", b"2", b"4", b"6"]
    assert answer.field("indexLastUpdatePhyoffset") == str(found[-1].physical_offset)
    assert int(answer.field("indexLastUpdateTimestamp")) == found[-1].stored_at
    assert bodies(raw, "keyed", "each", 3) == [b"5", b"6", b"7"]


def test_what_only_looks_like_a_key(raw: Raw) -> None:
    raw.create_topic("alike", 1)
    raw.send("alike", b"a body with needle in it", KEYS="haystack")
    raw.send("alike", b"b", KEYS="needles unneedle")
    raw.send("alike", b"c", other="needle")
    for key in ("needle", "", "nowhere"):
        answer = query(raw, "alike", key)
        assert (answer.code, answer.remark) == (22, "can not find message, maybe time range not correct")
    assert query(raw, "nosuchtopic", "needle").code == 22
    assert query(raw, "alike", "haystack", 0).code == 22


def test_by_unique_key_whatever_number_is_asked_for(raw: Raw) -> None:
    raw.create_topic("unique", 2)
    unique = raw.send("unique", b"one").field("transactionId")
    assert bodies(raw, "unique", unique, 0, unique=True) == [b"one"]
    for _ in range(40):
        raw.send("unique", b"again", UNIQ_KEY="K1")
    assert len(bodies(raw, "unique", "K1", 1000, unique=True)) == 32
    assert len(bodies(raw, "unique", "K1", 1000)) == 40
    assert len(bodies(raw, "unique", "K1", 7)) == 7


def test_only_of_the_time_asked_for(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("timed", 1)
    raw.send("timed", b"before", KEYS="t")
    middle = broker.house.clock.wall_ms() + 500
    broker.control.move_clock(1)
    raw.send("timed", b"after", KEYS="t")
    assert bodies(raw, "timed", "t", end=middle) == [b"before"]
    assert bodies(raw, "timed", "t", begin=middle) == [b"after"]


def test_a_large_topic_is_searched_in_no_time(raw: Raw, broker: EmbeddedBroker) -> None:
    raw.create_topic("large", 1)
    raw.send("large", b"here", KEYS="rare")
    for _ in range(200):
        raw.send("large", b"n" * 50_000, KEYS="common")
    started = time.monotonic()
    assert bodies(raw, "large", "rare") == [b"here"]
    assert time.monotonic() - started < 2

"""What users hand over is checked before anything is sent, and the error says the cure."""

from __future__ import annotations

import pickle
import re
from copy import copy
from datetime import timedelta
from inspect import signature
from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.model import (
    Message,
    MessageQueue,
    PartialSendError,
    Receipt,
    check_group,
    check_key,
    check_message,
    check_queue,
    check_topic,
)

QUEUE = MessageQueue("orders", "broker-a", 3)


def test_queues_sort_as_in_java() -> None:
    queues = [
        MessageQueue("b", "x", 1),
        MessageQueue("a", "y", 10),
        MessageQueue("a", "y", 9),
        MessageQueue("a", "x", 99),
    ]
    assert sorted(queues) == [queues[3], queues[2], queues[1], queues[0]]


def test_a_message_shows_no_body() -> None:
    message = Message("orders", b"secret", tag="t", keys="one")
    assert repr(message) == "Message('orders', 6 bytes, tag='t', keys=['one'])"
    assert Message("orders", bytearray(b"x")).keys == []


class Noted(Message):
    """What a user derives has attributes of its own."""

    def __init__(self, topic: str, body: bytes, note: str) -> None:
        super().__init__(topic, body)
        self.note = note


def test_a_message_travels_and_is_copied() -> None:
    made = {"tag": "t", "keys": ["k"], "properties": {"a": "b"}, "deliver_at": 5, "flag": 3}
    message = Message("orders", memoryview(b"x").tobytes(), **made)  # type: ignore[arg-type]
    for again in (pickle.loads(pickle.dumps(message)), copy(message)):
        assert type(again) is Message
        assert (again.topic, again.body, again.delay_level, again.deliver_after) == ("orders", b"x", 0, None)
        assert {name: getattr(again, name) for name in made} == made
    noted = pickle.loads(pickle.dumps(Noted("orders", b"x", "mine")))
    assert (type(noted), noted.note, noted.keys) == (Noted, "mine", [])


def test_a_message_says_how_it_is_made() -> None:
    names = ["topic", "body", "tag", "keys", "properties", "delay_level", "deliver_at", "deliver_after", "flag"]
    assert list(signature(Message).parameters) == names


def test_fields_can_be_changed_and_are_of_each_message_alone() -> None:
    one, other = Message("orders", b"x"), Message("orders", b"x")
    one.keys.append("k")
    one.properties["a"] = "b"
    one.deliver_at = 7
    assert (one.keys, one.properties, one.timing) == (["k"], {"a": "b"}, ("TIMER_DELIVER_MS", "7"))
    assert (other.keys, other.properties, other.timing) == ([], {}, None)
    other.keys, other.properties = one.keys, one.properties
    assert other.keys is one.keys


@pytest.mark.parametrize(("body", "cure"), [("text", "encode it first"), ({"a": 1}, "turn it into bytes")])
def test_bodies_are_bytes(body: Any, cure: str) -> None:
    with pytest.raises(TypeError, match=cure):
        Message("orders", body)


def test_receipts() -> None:
    receipt = Receipt(QUEUE, 5, "id", "offset id")
    assert (receipt.ok, receipt.topic, receipt.status) == (True, "orders", "SEND_OK")
    assert hash(receipt)


@pytest.mark.parametrize("topic", ["", " ", None, "a b", "ä", "x" * 128])
def test_topics(topic: Any) -> None:
    with pytest.raises(ConfigError):
        check_topic(topic)


@pytest.mark.parametrize("group", ["", "a b", "x" * 121, "DEFAULT_CONSUMER", "DEFAULT_PRODUCER"])
def test_groups(group: str) -> None:
    with pytest.raises(ConfigError):
        check_group(group)
    check_group("billing-1_x|y%z")


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (Message("SCHEDULE_TOPIC_XXXX", b"x"), "broker's own"),
        (Message("orders", b""), "empty body"),
        (Message("orders", b"x" * 11), "11 bytes: 10 are allowed"),
        (Message("orders", b"x", properties={"KEYS": "k"}), "property 'KEYS'"),
    ],
)
def test_messages(message: Message, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        check_message(message, max_body=10)


def test_keys_are_text_and_queues_are_of_the_topic() -> None:
    check_key("k")
    check_queue(QUEUE, "orders")
    with pytest.raises(TypeError, match="a key is a str, not int"):
        check_key(7)
    with pytest.raises(TypeError, match="a queue is a MessageQueue, such as a receipt's, not tuple"):
        check_queue(("orders", "broker-a", 3), "orders")
    with pytest.raises(ConfigError, match="a message to 'other' cannot go to a queue of 'orders'"):
        check_queue(QUEUE, "other")


def test_only_messages_are_sent() -> None:
    with pytest.raises(TypeError, match=r"rocketmq\.Message is sent, not bytes"):
        check_message(b"x")
    check_message(Message("orders", b"x", properties={"mine": "v"}))


def test_partial_failure_tells_how_many_and_why() -> None:
    results = [Receipt(QUEUE, 5, "id", ""), ConfigError("too long")]
    error = PartialSendError(results)
    assert str(error) == "1 of 2 messages were not sent; the first because of: too long"
    assert error.results == results


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"delay_level": -1}, "delay_level=-1: one of the broker's levels"),
        ({"delay_level": "3"}, "delay_level='3'"),
        ({"deliver_at": "2020"}, "deliver_at='2020': a datetime, or milliseconds since 1970"),
        ({"deliver_at": -5}, "deliver_at=-5"),
        ({"deliver_after": "1"}, "deliver_after='1': a number of seconds"),
        ({"deliver_after": -1.0}, "deliver_after=-1.0"),
        ({"deliver_after": timedelta(1)}, "a number of seconds"),
        ({"deliver_after": 1, "deliver_at": 1}, "not by two"),
    ],
)
def test_a_delay_that_is_none_is_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        _ = Message("orders", b"x", **given).timing


def test_the_delays_as_properties() -> None:
    assert Message("orders", b"x", delay_level=3).timing == ("DELAY", "3")
    assert Message("orders", b"x", deliver_after=1.5).timing == ("TIMER_DELAY_MS", "1500")
    assert Message("orders", b"x", deliver_after=0).timing == ("TIMER_DELAY_MS", "0")

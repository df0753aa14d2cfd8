"""Options of consumers: the protocol's defaults, and mistakes that name the cure."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar.consumer_options import ConsumerOptions, DeadLetter, Delays
from mqclient.pulsar.options import checked


def test_defaults() -> None:
    consumer = checked(ConsumerOptions, {})
    assert (consumer.type, consumer.receiver_queue, consumer.start, consumer.durable) == (
        "exclusive",
        1000,
        "latest",
        True,
    )
    assert [checked(ConsumerOptions, {"type": kind}).in_order for kind in ("failover", "shared", "key_shared")] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"type": "both"}, "the types are"),
        ({"receiver_queue": -1}, "not negative"),
        ({"total_receiver_queue": 0}, "at least 1"),
        ({"priority": -1}, "priority"),
        ({"start": "middle"}, "starts at"),
        ({"start": object()}, "then seek"),
        ({"start": 0, "durable": False}, "start is 'earliest', 'latest' or a message id, no int; to a time: seek"),
        ({"type": "shared", "read_compacted": True}, "needs an exclusive"),
        ({"recieve_queue": 1}, "did you mean receiver_queue"),
        ({"zzz": 1}, "the options are"),
    ],
)
def test_consumers(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        checked(ConsumerOptions, given)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"pattern_mode": "some"}, "the modes are"),
        ({"pattern_period": 0}, "above 0"),
        ({"chunk_expiry": -1}, "chunk_expiry"),
        ({"queue_memory": -1}, "queue_memory"),
        ({"queue_memory": 1, "by_batch": True}, "messages instead of batches"),
        ({"dead_letter": DeadLetter()}, "need a shared"),
        ({"type": "shared", "retry": True, "by_batch": True}, "goes without"),
        ({"on_active": print}, "needs a failover"),
        ({"listener": print, "durable": False}, "a reader reads"),
    ],
)
def test_more_of_consumers(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        checked(ConsumerOptions, given)


def test_delays_and_letters() -> None:
    growing = ConsumerOptions(nack_delay=Delays(first=1, limit=3))
    assert [growing.nack_delay_after(times) for times in range(3)] == [1, 2, 3]
    assert ConsumerOptions(nack_delay=5.0).nack_delay_after(9) == 5
    assert ConsumerOptions(type="shared", retry=True).letters == DeadLetter()
    assert ConsumerOptions(type="shared").letters is None
    with pytest.raises(ConfigError, match="at least 1"):
        DeadLetter(0)
    with pytest.raises(ConfigError, match="first is between"):
        Delays(first=2, limit=1)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"key_ranges": [(0, 1)]}, "need a key_shared subscription, not exclusive"),
        ({"type": "key_shared", "key_ranges": [(1, 0)]}, "from 0 to 65535"),
        ({"type": "key_shared", "key_ranges": [(5, 9), (0, 5)]}, "in common"),
    ],
)
def test_keys_of_a_key_shared_consumer(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        ConsumerOptions(**options)


def test_who_says_something_about_keys() -> None:
    assert ConsumerOptions(type="key_shared", key_ranges=[(0, 5), (6, 9)]).shares_keys
    assert ConsumerOptions(type="key_shared", out_of_order=True).shares_keys
    assert not ConsumerOptions(type="key_shared").shares_keys

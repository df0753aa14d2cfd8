"""Options: the protocol's defaults, and mistakes that name the cure."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar.options import ConsumerOptions, ProducerOptions, checked


def test_defaults() -> None:
    producer, consumer = checked(ProducerOptions, {}), checked(ConsumerOptions, {})
    assert (producer.batch_max_messages, producer.batch_max_bytes, producer.send_timeout) == (1000, 131072, 30.0)
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
        ({"start": "middle"}, "starts at"),
        ({"start": object()}, "then seek"),
        ({"type": "shared", "read_compacted": True}, "needs an exclusive"),
        ({"recieve_queue": 1}, "did you mean receiver_queue"),
        ({"zzz": 1}, "the options are"),
    ],
)
def test_consumers(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        checked(ConsumerOptions, given)


@pytest.mark.parametrize(
    "given", [{"batch_max_messages": 0}, {"batch_max_bytes": 0}, {"linger": -1}, {"send_timeout": 0}]
)
def test_producers(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        checked(ProducerOptions, given)

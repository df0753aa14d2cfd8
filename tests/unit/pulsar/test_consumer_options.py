"""Options of consumers: the protocol's defaults, and mistakes that name the cure."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar.consumer_options import ConsumerOptions
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
        ({"type": "shared", "read_compacted": True}, "needs an exclusive"),
        ({"recieve_queue": 1}, "did you mean receiver_queue"),
        ({"zzz": 1}, "the options are"),
    ],
)
def test_consumers(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        checked(ConsumerOptions, given)

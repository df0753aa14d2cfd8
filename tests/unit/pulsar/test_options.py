"""Options: the protocol's defaults, and mistakes that name the cure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar.options import ProducerOptions, checked


def test_defaults() -> None:
    producer = checked(ProducerOptions, {})
    assert (producer.batch_max_messages, producer.batch_max_bytes, producer.send_timeout) == (1000, 131072, 30.0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"batch_max_messages": 0}, "at least 1"),
        ({"batch_max_bytes": 0}, "batching=False sends one by one"),
        ({"linger": -1}, "in seconds"),
        ({"send_timeout": -1}, "in seconds"),
        ({"max_pending": -1}, "max_pending"),
        ({"chunk_size": -1}, "chunk_size"),
        ({"batching": "keys"}, "'key' for entries of one key each"),
        ({"chunking": True}, "batching=False"),
        ({"compression": "rar"}, "None, 'lz4', 'zlib', 'zstd', 'snappy'"),
        ({"hashing": "md5"}, "'java', 'murmur3', 'boost'"),
        ({"access": "mine"}, "'exclusive'"),
        ({"routing": "random"}, "'round_robin', 'single'"),
        ({"lingr": 5}, "did you mean linger"),
        ({"zzz": 5}, "the options are name, batching"),
    ],
)
def test_mistakes_of_producers(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        checked(ProducerOptions, given)


def test_a_function_may_choose_partitions() -> None:
    def last(key: str | None, properties: Mapping[str, str] | None, count: int) -> int:
        return count - 1

    assert checked(ProducerOptions, {"routing": last}).routing is last

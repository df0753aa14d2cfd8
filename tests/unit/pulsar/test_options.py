"""Options: the protocol's defaults, and mistakes that name the cure."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import fields
from importlib.util import find_spec
from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar.consumer_options import ConsumerOptions
from mqclient.pulsar.options import ELSEWHERE, ProducerOptions, checked


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


def test_names_of_the_official_client_lead_here() -> None:
    with pytest.raises(ConfigError, match=r"no option receiver_queue_size: here it is receiver_queue$"):
        checked(ConsumerOptions, {"receiver_queue_size": 5})
    with pytest.raises(ConfigError, match="here it is linger, in seconds"):
        checked(ProducerOptions, {"batching_max_publish_delay_ms": 5})


SIGNATURES = """
import inspect, json, pulsar
calls = pulsar.Client.create_producer, pulsar.Client.subscribe
print(json.dumps([list(inspect.signature(call).parameters)[1:] for call in calls]))
"""


@pytest.mark.skipif(find_spec("_pulsar") is None, reason="pulsar-client is not installed")
def test_each_option_of_the_official_client_is_here_or_leads_here() -> None:
    told = subprocess.run([sys.executable, "-c", SIGNATURES], check=True, capture_output=True, text=True).stdout
    for names, kind in zip(json.loads(told), (ProducerOptions, ConsumerOptions), strict=True):
        known = {option.name for option in fields(kind)} | {"topic", "subscription_name", "is_pattern_topic"}
        assert [name for name in names if name not in known and name not in ELSEWHERE] == []
        for name in set(names) & set(ELSEWHERE):
            assert name not in known

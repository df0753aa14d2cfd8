"""Options: the protocol's defaults, and mistakes that name the cure."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar.options import ProducerOptions, checked


def test_defaults() -> None:
    producer = checked(ProducerOptions, {})
    assert (producer.batch_max_messages, producer.batch_max_bytes, producer.send_timeout) == (1000, 131072, 30.0)


@pytest.mark.parametrize(
    "given", [{"batch_max_messages": 0}, {"batch_max_bytes": 0}, {"linger": -1}, {"send_timeout": -1}]
)
def test_producers(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        checked(ProducerOptions, given)

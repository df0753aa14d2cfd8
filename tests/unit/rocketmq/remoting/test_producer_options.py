"""A producer's options are checked when made."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.producer_options import ProducerOptions


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"attempts": 0}, "attempts=0: must be more than 0"),
        ({"linger": -1}, "linger=-1"),
        ({"when_full": "wait"}, "'block' or 'refuse'"),
        ({"compression": "gzip"}, "lz4, zstd, zlib"),
        ({"send_time": 1}, "did you mean 'send_timeout'"),
    ],
)
def test_wrong_ones_are_named(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ProducerOptions.of(given)


def test_defaults_and_no_limits() -> None:
    assert ProducerOptions.of({"max_pending_bytes": 0, "compression": None}).attempts == 3

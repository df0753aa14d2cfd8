"""How a handler is called: what is checked before anything begins."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.push_options import PushOptions, push_options


def test_options_are_taken_apart() -> None:
    member, push = push_options({"threads": 3, "model": "broadcasting", "orderly": True})
    assert (member.model, push.threads, push.orderly) == ("broadcasting", 3, True)
    with pytest.raises(ConfigError, match="did you mean 'threads'"):
        push_options({"thread": 3})


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"threads": 0}, "at least 1 each"),
        ({"batch": 0}, "at least 1 each"),
        ({"suspend": 0}, "more than 0 seconds"),
        ({"retry_levels": ()}, "name a level"),
        ({"retry_levels": [19]}, "19 is no delay level"),
        ({"skip_retries_before": "first"}, "a datetime or milliseconds"),
    ],
)
def test_what_is_wrong_is_said(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        PushOptions(**wrong)


def test_limits_and_levels() -> None:
    assert [PushOptions().attempts, PushOptions(orderly=True).attempts] == [16, -1]
    assert PushOptions(orderly=True, max_attempts=3).attempts == 3
    assert [PushOptions(retry_levels=(1, 4)).level(tried) for tried in range(3)] == [1, 4, 4]
    assert PushOptions(retry_levels=lambda tried: tried + 2).level(5) == 7
    assert PushOptions().level(9) == 0
    moment = datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert PushOptions(skip_retries_before=moment).skip_before_ms == 1767225600000
    assert PushOptions().skip_before_ms is None

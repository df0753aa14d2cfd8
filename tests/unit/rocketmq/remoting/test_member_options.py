"""How a member of a group consumes: options, topics, where to start."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.member_options import member_options, start_ms, topics_of


def test_options() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)
    assert [start_ms("first"), start_ms(7.9), start_ms(noon)] == [None, 7, 1767268800000]
    with pytest.raises(ConfigError, match="start='middle'"):
        start_ms("middle")
    assert topics_of("a") == {"a": "*"}
    assert topics_of(["a", "b"]) == {"a": "*", "b": "*"}
    assert topics_of({"a": "x"}) == {"a": "x"}
    with pytest.raises(ConfigError, match="needs a topic"):
        topics_of([])
    with pytest.raises(ConfigError, match="did you mean 'pull_batch'"):
        member_options({"pull_batches": 1})

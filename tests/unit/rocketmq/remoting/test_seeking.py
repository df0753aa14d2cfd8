"""Going on at a time, or at the ends."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.model import MessageQueue
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


@pytest.mark.parametrize("orderly", [False, True])
def test_back_to_a_time_and_to_both_ends(codec: Any, orderly: bool) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 2)
    cluster.fill("orders", 2)
    cluster.world.advance(100)
    middle = cluster.world.wall_ms
    cluster.fill("orders", 1)
    seen: list[bytes] = []
    push = cluster.client().push(
        "g", "orders", lambda messages: seen.extend(one.body for one in messages), start="first", orderly=orderly
    )
    cluster.world.advance(1)
    for when, expected in ((middle, [2, 2]), ("last", [3, 3]), ("first", [0, 0])):
        seen.clear()
        with push.driver.enter():
            slot = run_steps(push.engine.seek_to_time_steps(when, None))
        assert sorted(cluster.world.result(slot).values()) == expected
        cluster.world.advance(1)
        assert len(seen) == 6 - sum(expected)
    with push.driver.enter():
        slot = run_steps(push.engine.seek_to_time_steps("first", [MessageQueue("orders", "other", 0)]))
    with pytest.raises(ConfigError, match="is not assigned to this consumer"):
        cluster.world.result(slot)
    with pytest.raises(ConfigError, match="is not assigned"), push.driver.enter():
        push.engine.seek(MessageQueue("orders", "other", 0), 0)

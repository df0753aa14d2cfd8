"""How a member begins: routes that are not there yet, filters that brokers refuse, where a queue starts."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.rocketmq.codes import BrokerError
from mqclient.rocketmq.remoting.subscription import Sql
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


def test_a_topic_may_come_later(codec: Any, caplog: pytest.LogCaptureFixture) -> None:
    cluster = VirtualCluster(codec)
    push = cluster.client().push("g", "later", start="first")
    assert push.started.done
    assert sum("which is not there yet" in record.getMessage() for record in caplog.records) == 1
    cluster.topic("later", 1)
    cluster.fill("later", 2)
    cluster.world.advance(40)
    assert push.engine.handled == 2


def test_a_filter_is_checked_before_anything_begins(codec: Any) -> None:
    cluster = VirtualCluster(codec, enablePropertyFilter=True)
    cluster.topic("orders", 1)
    client = cluster.client()
    push = client.push("g", {"orders": Sql("a >")}, start="first")
    cluster.world.advance(1)
    assert isinstance(push.started.error, BrokerError)
    assert "a >" in str(push.started.error)
    assert client.engine.consumers == {}
    well = client.push("g", {"orders": Sql("a > 1")}, start="first")
    cluster.world.advance(1)
    assert well.started.error is None


def test_a_broker_that_filters_by_tags_only_is_told_with_its_cure(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    push = cluster.client().push("g", {"orders": Sql("a > 1")}, start="first")
    cluster.world.advance(1)
    assert "enablePropertyFilter=true" in str(push.started.error)


@pytest.mark.parametrize(("start", "offset"), [("first", 0), ("last", 0), ("time", 6)])
def test_a_young_queue_and_a_new_group(codec: Any, start: str, offset: int) -> None:
    """Brokers say 0 for "last", too, as long as the first message is at hand; a time is taken as it is given."""
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    cluster.fill("orders", 6)
    cluster.world.advance(100)
    middle = cluster.world.wall_ms
    cluster.fill("orders", 4)
    push = cluster.client().push("fresh", "orders", start=middle if start == "time" else start)
    (held,) = (held for queue, held in push.member.queues.items() if queue.topic == "orders")
    assert held.started_at == offset

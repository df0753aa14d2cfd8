"""What all consumers of one client may hold together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.cache import Cache
from mqclient.rocketmq.remoting.process_queue import Limits, ProcessQueue
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


def queues(codec: Any, cache: Cache, count: int) -> list[ProcessQueue]:
    return [
        ProcessQueue(MessageQueue("t", "b", number), 0, 1, codec.permits.Outstanding(), Limits(), cache)
        for number in range(count)
    ]


def batch(*offsets: int, size: int = 10) -> Any:
    return SimpleNamespace(offsets=list(offsets), sizes=[size] * len(offsets))


@pytest.mark.parametrize(
    "limits", [Limits(count=3, bytes=-1, span=-1), Limits(-1, 30, -1), Limits(count=-1, bytes=-1, span=2)]
)
def test_one_queue_waits_for_the_other(codec: Any, limits: Limits) -> None:
    cache = Cache(limits)
    one, two = queues(codec, cache, 2)
    one.put(batch(0, 1))
    assert not two.full()
    two.put(batch(5, 7))
    assert one.full()
    assert two.full()
    waits = [queue.wait_for_room() for queue in (one, two)]
    assert [wait.done for wait in waits] == [False, False]
    one.done([0, 1])
    assert [wait.done for wait in waits] == [True, True]
    assert cache.held() == {"count": 2, "bytes": 20, "span": 2}


def test_a_queue_that_is_full_by_itself_goes_on_waiting(codec: Any) -> None:
    cache = Cache(Limits(count=3, bytes=-1, span=-1))
    one, two = queues(codec, cache, 2)
    one.put(batch(0, 1, 2, 3))
    two.pause()
    wait = two.wait_for_room()
    one.done([0, 1, 2])
    assert not wait.done
    one.drop()
    assert cache.held()["count"] == 0
    two.resume()
    assert wait.done


def test_without_limits_nothing_is_counted(codec: Any) -> None:
    cache = Cache(Limits(-1, -1, -1))
    (one,) = queues(codec, cache, 1)
    one.put(batch(*range(1000)))
    assert (one.full(), cache.over(), cache.held()["count"]) == (False, False, 0)


def test_a_client_pulls_no_more_than_it_may_hold(codec: Any) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 2)
    client = cluster.client(cache_limits=Limits(count=8, bytes=-1, span=-1))
    held: list[int] = []

    def handle(messages: Any) -> None:
        held.append(client.engine.cache.held()["count"])

    push = client.push("g", "orders", handle, start="first", pull_batch=4, batch=2)
    cluster.fill("orders", 30)
    cluster.world.advance(30)
    assert push.engine.handled == 60
    assert max(held) <= 8 + 2 * 4

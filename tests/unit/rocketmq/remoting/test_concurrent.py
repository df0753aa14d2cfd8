"""Concurrent consumption: partial success, delays by attempt, pauses, rates, retries that are too old."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from mqclient.broker.remoting.state import Incoming
from mqclient.rocketmq.remoting.handling import Retry
from tests.unit.rocketmq.remoting.cluster import Push, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    return cluster


def committed(cluster: VirtualCluster) -> int:
    return cluster.broker.offsets.stored.get(("g", "orders", 0), -1)


class Seen:
    def __init__(self, cluster: VirtualCluster) -> None:
        self.world = cluster.world
        self.began = cluster.world.mono
        self.calls: list[tuple[int, list[tuple[bytes, int]]]] = []

    def __call__(self, messages: Any) -> None:
        at = round(self.world.mono - self.began)
        self.calls.append((at, [(one.body, one.attempts) for one in messages]))
        again = [one for one in messages if one.body == b"0-1" and one.attempts < 3]
        if again:
            raise Retry(again)


def start(cluster: VirtualCluster, handler: Any, **options: Any) -> Push:
    return cluster.client().push("g", "orders", handler, start="first", **options)


def test_only_what_the_handler_names_comes_again_by_its_delays(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 3)
    seen = Seen(cluster)
    push = start(cluster, seen, retry_levels=[1, 2])
    cluster.world.advance(6)
    assert committed(cluster) == 3
    cluster.world.advance(30)
    assert [call for _, call in seen.calls] == [
        [(b"0-0", 0), (b"0-1", 0), (b"0-2", 0)],
        [(b"0-1", 1)],
        [(b"0-1", 2)],
        [(b"0-1", 3)],
    ]
    times = [at for at, _ in seen.calls]
    assert [later - earlier for earlier, later in pairwise(times)] == [1, 5, 5]
    assert (push.engine.handled, push.engine.failed) == (3, 3)


def test_a_level_that_the_handler_names_counts(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 1)
    seen: list[int] = []

    def handle(messages: Any) -> None:
        seen.append(messages[0].attempts)
        raise Retry(level=-1)

    start(cluster, handle)
    cluster.world.advance(60)
    assert seen == [0]
    assert cluster.broker.broker.topics["%DLQ%g"].queues[0].log.next == 1


def test_a_retry_of_nothing_is_a_success(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 2)

    def handle(messages: Any) -> None:
        raise Retry([])

    push = start(cluster, handle)
    cluster.world.advance(6)
    assert (committed(cluster), push.engine.handled, push.engine.failed) == (2, 2, 0)


def test_broadcasting_passes_over_what_failed(cluster: VirtualCluster, tmp_path: Any) -> None:
    cluster.fill("orders", 3)
    seen = Seen(cluster)
    push = cluster.client(offset_dir=str(tmp_path)).push("g", "orders", seen, model="broadcasting", start="first")
    cluster.world.advance(10)
    assert (len(seen.calls), push.engine.failed) == (1, 1)
    assert list(push.member.offsets.memory.values()) == [3]


def test_what_was_handed_out_at_a_pause_is_handed_out_again(cluster: VirtualCluster) -> None:
    calls: list[int] = []
    client = cluster.client()

    def handle(messages: Any) -> None:
        calls.append(messages[0].offset)
        if len(calls) == 1:
            with client.driver.enter():
                push.engine.pause(None)

    push = client.push("g", "orders", handle, start="first", threads=1, batch=1)
    cluster.fill("orders", 3)
    cluster.world.advance(10)
    assert calls == [0]
    assert push.engine.diagnose()["handlers"] == {"running": 0, "waiting": 0}
    with client.driver.enter():
        push.engine.resume(None)
    cluster.world.advance(10)
    assert sorted(calls) == [0, 1, 2]
    assert committed(cluster) == 3


def test_what_is_parked_of_a_queue_that_goes_is_forgotten(cluster: VirtualCluster) -> None:
    calls: list[int] = []
    client = cluster.client()
    push = client.push("g", "orders", lambda messages: calls.append(messages[0].offset), start="first", batch=1)
    work: Any = push.engine._work
    with client.driver.enter():
        push.engine.pause(None)
    held = next(held for held in push.member.queues.values() if held.queue.topic == "orders")
    cluster.fill("orders", 2)
    cluster.world.advance(20)  # the pull that was under way
    assert (len(work._parked), calls) == (2, [])
    with client.driver.enter():
        push.engine.seek(held.queue, 1)
        push.engine.resume(None)
    cluster.world.advance(5)
    assert (work._parked, calls) == ([], [1])


def test_a_rate_spreads_them_out(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 40)
    seen = Seen(cluster)
    start(cluster, seen, rate=10.0, batch=5)
    cluster.world.advance(2.1)
    assert sum(len(call) for _, call in seen.calls) == 25
    cluster.world.advance(5)
    assert sum(len(call) for _, call in seen.calls) == 40


def test_retries_that_were_born_too_early_are_passed_over(cluster: VirtualCluster) -> None:
    topic = cluster.broker.broker.make_topic("%RETRY%g", 1)
    for born in (5, 20, 6, 30, 7):
        cluster.broker.broker.store(Incoming(topic.name, 0, b"%d" % born, b"", born_at=born, attempts=1))
    cluster.broker.broker.store(Incoming("orders", 0, b"old but new here", b"", born_at=1))
    seen = Seen(cluster)
    start(cluster, seen, skip_retries_before=10)
    cluster.world.advance(10)
    assert sorted(body for _, call in seen.calls for body, _ in call) == [b"20", b"30", b"old but new here"]
    assert cluster.broker.offsets.stored["g", "%RETRY%g", 0] == 5

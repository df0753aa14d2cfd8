"""Orderly consumption: one call at a time for a queue, retries in place, dead letters, hand-over."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.rocketmq.remoting.handling import Retry
from mqclient.rocketmq.remoting.orderly import again
from tests.support.remoting import message
from tests.unit.rocketmq.remoting.cluster import Push, VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    return cluster


def committed(cluster: VirtualCluster, queue_id: int = 0) -> int:
    return cluster.broker.offsets.stored.get(("g", "orders", queue_id), -1)


class Script:
    """A handler that notes each call, and raises what it was told to."""

    def __init__(self, *raises: Exception | None) -> None:
        self.calls: list[list[tuple[int, int]]] = []
        self._raises = list(raises)

    def __call__(self, messages: Any) -> None:
        self.calls.append([(one.offset, one.attempts) for one in messages])
        error = self._raises.pop(0) if self._raises else None
        if isinstance(error, Retry) and error.offsets is not None:
            raise Retry([one for one in messages if one.offset in error.offsets], level=error.level, delay=error.delay)
        if error is not None:
            raise error


def wants(*offsets: int, **options: Any) -> Retry:
    retry = Retry(**options)
    retry.offsets = frozenset(offsets)
    return retry


def start(cluster: VirtualCluster, script: Any, **options: Any) -> Push:
    return cluster.client().push("g", "orders", script, start="first", orderly=True, **options)


def test_a_failure_holds_the_queue_and_is_tried_again(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 3)
    script = Script(ValueError("a"), ValueError("b"))
    start(cluster, script, batch=2)
    cluster.world.advance(0.9)
    assert script.calls == [[(0, 0), (1, 0)]]
    cluster.world.advance(1)
    assert script.calls[1:] == [[(0, 1), (1, 1)]]
    cluster.world.advance(10)
    assert script.calls[2:] == [[(0, 2), (1, 2)], [(2, 0)]]
    assert committed(cluster) == 3


def test_what_stands_before_the_first_failure_is_consumed(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 4)
    script = Script(wants(1, delay=0.1))
    push = start(cluster, script, batch=4)
    cluster.world.advance(0.05)
    assert push.member.offsets.memory[next(q for q in push.member.queues if q.topic == "orders")] == 1
    cluster.world.advance(10)
    assert script.calls == [[(0, 0), (1, 0), (2, 0), (3, 0)], [(1, 1), (2, 1), (3, 1)]]
    assert committed(cluster) == 4


def test_a_retry_of_nothing_is_a_success(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 2)
    script = Script(wants())
    push = start(cluster, script)
    cluster.world.advance(10)
    assert (len(script.calls), committed(cluster), push.engine.failed) == (1, 2, 0)


def test_the_dead_let_the_others_pass(cluster: VirtualCluster, caplog: pytest.LogCaptureFixture) -> None:
    cluster.fill("orders", 3)
    script = Script(*[ValueError("no")] * 2)
    start(cluster, script, batch=1, max_attempts=1)
    cluster.control.answer("CONSUMER_SEND_MSG_BACK", 1, "store failed")
    cluster.world.advance(5)
    assert [call[0] for call in script.calls] == [(0, 0), (0, 1)]  # the broker does not have it yet
    cluster.world.advance(10)
    assert [call[0] for call in script.calls] == [(0, 0), (0, 1), (1, 0), (2, 0)]
    assert cluster.broker.broker.topics["%DLQ%g"].queues[0].log.next == 1
    assert committed(cluster) == 3


def test_the_handler_may_bury_at_once(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 2)
    script = Script(wants(0, level=-1))
    start(cluster, script, batch=1)
    cluster.world.advance(10)
    assert script.calls == [[(0, 0)], [(1, 0)]]
    assert cluster.broker.broker.topics["%DLQ%g"].queues[0].log.next == 1


def test_part_of_a_call_is_dead(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 3)
    script = Script(wants(0, level=-1))
    start(cluster, script, batch=3, suspend=0.5)
    cluster.world.advance(10)
    assert script.calls == [[(0, 0), (1, 0), (2, 0)], [(1, 1), (2, 1)]]


def test_broadcasting_passes_over_the_dead(cluster: VirtualCluster, tmp_path: Any) -> None:
    cluster.fill("orders", 2)
    script = Script(*[ValueError("no")] * 3)
    client = cluster.client(offset_dir=str(tmp_path))
    options: dict[str, Any] = {"orderly": True, "model": "broadcasting", "start": "first", "batch": 1}
    push = client.push("g", "orders", script, max_attempts=2, **options)
    cluster.world.advance(10)
    assert [call[0] for call in script.calls] == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert push.member.locks is None
    assert cluster.control.count("CONSUMER_SEND_MSG_BACK") == 0


def test_without_the_lock_nothing_is_handled(cluster: VirtualCluster) -> None:
    script = Script()
    push = start(cluster, script)
    cluster.control.answer("LOCK_BATCH_MQ", 1, "no", times=99)
    cluster.world.advance(31)
    cluster.fill("orders", 1)
    cluster.world.advance(5)
    assert (script.calls, len(push.queues("orders"))) == ([], 1)
    cluster.control.clear()
    cluster.world.advance(30)
    assert script.calls == [[(0, 0)]]


def test_a_lost_queue_goes_on_where_the_other_member_was(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 2)
    script = Script()
    push = start(cluster, script)
    cluster.world.advance(6)
    owners = cluster.broker.locks._owners["g"]
    queue = next(queue for queue in push.member.queues if queue.topic == "orders")
    owners[queue] = ("other", cluster.world.mono + 15)
    cluster.world.advance(15)
    assert push.queues("orders") == []
    cluster.fill("orders", 3)
    cluster.broker.offsets.stored["g", "orders", 0] = 4
    del owners[queue]
    cluster.world.advance(2)
    assert push.queues("orders") == [0]
    assert script.calls == [[(0, 0), (1, 0)], [(4, 0)]]


def test_a_queue_is_handed_over_when_its_handler_has_ended(cluster: VirtualCluster) -> None:
    cluster.topic("wide", 2)
    cluster.fill("wide", 1)
    first = cluster.client().push("h", "wide", start="first", orderly=True)
    cluster.world.advance(1)
    work: Any = first.engine._work
    for queue in first.member.queues:
        work._busy.add(queue)  # handlers that take their time
    second = cluster.client().push("h", "wide", start="first", orderly=True)
    cluster.world.advance(3)
    assert (len(first.queues("wide")), second.queues("wide")) == (1, [])
    for queue in list(work._busy):
        with first.driver.enter():
            work._free(queue)
    cluster.world.advance(2)
    assert sorted(first.queues("wide") + second.queues("wide")) == [0, 1]
    assert [held.started_at for q, held in second.member.queues.items() if q.topic == "wide"] == [1]
    second.close()
    cluster.world.advance(2)
    assert first.queues("wide") == [0, 1]
    first.close()
    assert cluster.broker.locks.held("h") is False


def test_a_queue_that_starts_anew_waits_for_the_call_that_runs(cluster: VirtualCluster) -> None:
    running: list[int] = []

    def handle(messages: Any) -> None:
        assert not running
        running.append(1)
        if len(seen) == 0:
            (held,) = (held for held in push.member.queues.values() if held.queue.topic == "orders")
            with push.driver.enter():
                push.engine.seek(held.queue, 0)
        seen.append(messages[0].offset)
        running.pop()

    seen: list[int] = []
    push = start(cluster, handle)
    cluster.fill("orders", 1)
    cluster.world.advance(1)
    assert seen == [0, 0]
    assert push.engine.handled == 1


def test_paused_it_keeps_what_it_has(cluster: VirtualCluster) -> None:
    script = Script()
    push = start(cluster, script, rate=2.0, batch=1)
    with push.driver.enter():
        push.engine.pause(None)
    cluster.fill("orders", 3)
    cluster.world.advance(30)
    assert script.calls == []
    with push.driver.enter():
        push.engine.resume(None)
    cluster.world.advance(0.9)
    assert len(script.calls) == 2
    work: Any = push.engine._work
    with push.driver.enter():
        push.engine.pause(None)  # the third has its place in the queue of workers already
    cluster.world.advance(5)
    assert len(script.calls) == 2
    with push.driver.enter():
        push.engine.resume(None)
    cluster.world.advance(5)
    assert [call[0][0] for call in script.calls] == [0, 1, 2]
    assert work._busy == set()


def test_retries_that_were_born_too_early_are_passed_over(cluster: VirtualCluster) -> None:
    from mqclient.broker.remoting.state import Incoming

    topic = cluster.broker.broker.make_topic("%RETRY%g", 1)
    for born in (5, 20, 6, 30):
        cluster.broker.broker.store(Incoming(topic.name, 0, b"%d" % born, b"", born_at=born, attempts=1))
    script = Script()
    push = start(cluster, script, skip_retries_before=10)
    cluster.world.advance(10)
    assert [offset for call in script.calls for offset, _ in call] == [1, 3]
    assert cluster.broker.offsets.stored["g", "%RETRY%g", 0] == 4
    assert push.engine.handled == 2


def test_one_attempt_more_and_all_else_the_same(codec: Any) -> None:
    remoting = codec.remoting
    record = message(
        remoting,
        b"x" * 40,
        "%RETRY%g",
        mapping={"RETRY_TOPIC": "orders", "KEYS": "a b", "TAGS": "t"},
        offset=7,
        physical_offset=99,
        queue_id=3,
        flag=5,
        born_at=11,
        stored_at=12,
        attempts=2,
        born_host=("10.0.0.9", 55),
        store_host=("::1", 10911),
    )
    batch = remoting.decode_messages(record, queue="q", retry_topic=True)
    (before,), (after,) = list(batch), list(again(remoting, batch))
    names = "body topic queue queue_id offset physical_offset flag born_at stored_at born_host store_host properties"
    for name in names.split():
        assert getattr(before, name) == getattr(after, name), name
    assert (before.attempts, after.attempts) == (2, 3)

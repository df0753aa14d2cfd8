"""Push consumption: results to offsets, failures back to the broker, the end with a grace."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.slot import Wake
from mqclient.core.steps import run_steps
from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.consumer import PushEngine
from mqclient.rocketmq.remoting.member_options import MemberOptions
from mqclient.rocketmq.remoting.push_options import StopReport
from tests.unit.rocketmq.remoting.cluster import VirtualCluster


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    return cluster


def committed(cluster: VirtualCluster, group: str = "g") -> int:
    return cluster.broker.offsets.stored.get((group, "orders", 0), -1)


def test_batches_for_the_handler_are_cut_to_size(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 70)
    sizes: list[int] = []
    cluster.client().push("g", "orders", lambda messages: sizes.append(len(messages)), start="first", pull_batch=70)
    cluster.world.advance(6)
    assert sizes == [32, 32, 6]
    assert committed(cluster) == 70


def test_a_failed_message_goes_back_and_comes_again(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 3)
    seen: list[tuple[str, int, int]] = []

    def handle(messages: Any) -> None:
        seen.extend((message.topic, message.attempts, message.offset) for message in messages)
        if any(message.attempts < 2 for message in messages):
            raise ValueError("no")

    push = cluster.client().push("g", "orders", handle, start="first")
    cluster.world.advance(6)
    assert committed(cluster) == 3  # the broker has them again
    assert push.engine.failed == 3
    cluster.world.advance(60)
    assert sorted(attempts for _, attempts, _ in seen) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert {topic for topic, _, _ in seen} == {"orders"}
    assert push.engine.handled == 3


def test_until_the_broker_has_it_the_message_is_not_done(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.fill("orders", 1)
    cluster.control.answer("CONSUMER_SEND_MSG_BACK", 1, "store failed", times=2)

    def fail(messages: Any) -> None:
        raise ValueError("no")

    cluster.client().push("g", "orders", fail, start="first")
    cluster.world.advance(4)
    assert committed(cluster) == -1
    cluster.world.advance(20)
    assert committed(cluster) == 1
    assert sum("could not send a message back" in record.getMessage() for record in caplog.records) == 1


def test_broadcasting_passes_over_what_failed(cluster: VirtualCluster, tmp_path: Any) -> None:
    cluster.fill("orders", 2)

    def fail(messages: Any) -> None:
        raise ValueError("no")

    client = cluster.client(offset_dir=str(tmp_path))
    push = client.push("g", "orders", fail, model="broadcasting", start="first")
    cluster.world.advance(5)
    assert cluster.control.count("CONSUMER_SEND_MSG_BACK") == 0
    assert list(push.member.offsets.memory.values()) == [2]


def test_results_of_a_dropped_queue_count_for_nothing(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 1)
    calls: list[int] = []

    def handle(messages: Any) -> None:
        """The first call sees its queue start anew while it works."""
        calls.append(len(messages))
        if len(calls) == 1:
            member = client.engine.consumers["g"]
            (held,) = (held for held in member.queues.values() if held.queue.topic == "orders")
            with client.driver.enter():
                member.restart(held, 0)

    client = cluster.client()
    push = client.push("g", "orders", handle, start="first")
    cluster.world.advance(1)
    assert calls == [1, 1]
    assert push.engine.handled == 1


def test_tags_that_were_filtered_out_are_consumed_too(cluster: VirtualCluster) -> None:
    client = cluster.client()
    with client.driver.enter():
        engine = PushEngine(client.engine, "g", {"orders": "nothing"}, print, MemberOptions(start="first"))
        engine.start()
    cluster.world.run()
    cluster.fill("orders", 5)
    cluster.world.advance(30)
    assert committed(cluster) == 5


def test_limits_must_make_sense(cluster: VirtualCluster) -> None:
    wrong: list[dict[str, Any]] = [{"threads": 0}, {"batch": 0}]
    for limits in wrong:
        with pytest.raises(ConfigError, match="at least 1"):
            cluster.client().push("g", "orders", **limits)


def test_the_end_waits_for_what_runs_but_not_beyond_its_grace(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 1)
    push = cluster.client().push("g", "orders", start="first")
    cluster.world.advance(1)
    push.engine._work.workers.running += 1  # a handler that never comes back
    before = cluster.world.mono
    with push.driver.enter():
        slot = push.engine.close(3.0)
    push.driver.wait(slot)
    assert cluster.world.mono - before == pytest.approx(3.0, abs=0.1)
    assert committed(cluster) == 1


@pytest.mark.parametrize("orderly", [False, True])
def test_a_queue_that_comes_during_the_end_is_not_begun_with(cluster: VirtualCluster, orderly: bool) -> None:
    """Else its messages are handled, and come again to the next member, since their queue is dropped right after."""
    cluster.fill("orders", 2)
    cluster.control.delay("QUERY_CONSUMER_OFFSET", 1.0, times=2)
    seen: list[Any] = []
    push = cluster.client().push("g", "orders", seen.extend, start="first", orderly=orderly)
    push.engine._work.workers.running += 1  # a handler of another queue
    with push.driver.enter():
        slot = push.engine.close(3.0)
        push.engine.resume(None)  # too late
    cluster.world.advance(2)
    assert len(push.member.queues) > 0
    push.driver.wait(slot)
    assert (seen, committed(cluster)) == ([], -1)


def test_a_lock_that_comes_during_the_end_is_given_up(cluster: VirtualCluster) -> None:
    """Else the queue is nobody's for as long as the broker keeps it: a minute."""
    cluster.control.delay("LOCK_BATCH_MQ", 1.0, times=2)
    push = cluster.client().push("g", "orders", lambda messages: None, start="first", orderly=True)
    with push.driver.enter():
        slot = push.engine.close(3.0)
    push.driver.wait(slot)
    cluster.world.advance(5)
    assert not cluster.broker.locks.held("g")


def test_the_end_waits_until_the_broker_has_what_failed(cluster: VirtualCluster) -> None:
    cluster.fill("orders", 2)
    cluster.control.delay("CONSUMER_SEND_MSG_BACK", 2.0, times=2)

    def fail(messages: Any) -> None:
        raise ValueError("no")

    push = cluster.client().push("g", "orders", fail, start="first")
    assert push.engine.failed == 2
    with push.driver.enter():
        ended = push.engine.close(10.0)
    assert push.driver.wait(ended) == StopReport(True, 0, 2, 0, [])
    assert committed(cluster) == 2  # nobody gets them but by the retry topic


def test_positions_pauses_and_the_report_at_the_end(cluster: VirtualCluster) -> None:
    seen: list[int] = []
    push = cluster.client().push("g", "orders", lambda batch: seen.extend(one.offset for one in batch), start="first")
    cluster.fill("orders", 4)
    cluster.world.advance(1)
    queue = next(queue for queue in push.member.queues if queue.topic == "orders")
    ended = Wake()
    with push.driver.enter():
        push.engine.until(ended)
        push.engine.seek(queue, 2)
        push.engine.pause([queue])
    cluster.world.advance(1)
    assert seen == [0, 1, 2, 3]
    with push.driver.enter():
        push.engine.pause(None)
        push.engine.resume([queue])
    cluster.world.advance(1)
    assert seen[4:] == [2, 3]
    with push.driver.enter():
        slot = run_steps(push.engine.seek_to_time_steps("first", [queue]))
    assert cluster.world.result(slot) == {queue: 0}
    assert push.member.queues[queue].paused  # as all are, and those to come
    with push.driver.enter():
        push.engine.resume(None)
        with pytest.raises(ConfigError, match="is not assigned"):
            push.engine.seek(queue._replace(queue_id=9), 0)
    cluster.world.advance(1)
    assert seen[6:] == [0, 1, 2, 3]
    assert not ended.done
    with push.driver.enter():
        slots = [push.engine.close(1.0), push.engine.close(1.0)]
    reports = [cluster.world.result(slot) for slot in slots]
    assert reports[0] is reports[1]
    assert reports[0] == StopReport(True, 10, 0, 0, [])
    assert ended.done


def test_the_client_ends_it_and_a_child_abandons_it(cluster: VirtualCluster) -> None:
    client = cluster.client()
    push = client.push("g", "orders", start="first", orderly=True)
    with client.driver.enter():
        slot = client.engine.shutdown()
    cluster.world.result(slot)
    assert push.member.closed
    child = cluster.client().push("h", "orders", start="first", orderly=True)
    cluster.world.advance(1)
    with child.driver.enter():
        child.engine.abandon()
    cluster.fill("orders", 1)
    cluster.world.advance(60)
    assert (child.engine.handled, child.member.abandoned) == (0, True)

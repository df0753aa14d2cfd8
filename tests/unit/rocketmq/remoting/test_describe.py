"""What a member tells about itself, to operators and to people."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.rocketmq.remoting.cluster import VirtualCluster


@pytest.mark.parametrize("orderly", [False, True])
def test_running_info_and_diagnose(codec: Any, orderly: bool) -> None:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    push = cluster.client().push("g", "orders", start="first", orderly=orderly, threads=7)
    cluster.fill("orders", 2)
    cluster.world.advance(1)
    with push.driver.enter():
        info, state = push.member.running_info(), push.member.diagnose()
    assert info["properties"]["PROP_CONSUMEORDERLY"] == str(orderly).lower()
    assert info["properties"]["PROP_THREADPOOL_CORE_SIZE"] == "7"
    assert info["statusTable"]["orders"]["consumeOKTPS"] > 0
    (row,) = [row for queue, row in info["mqTable"].items() if queue.topic == "orders"]
    assert (row["commitOffset"], row["cachedMsgCount"], row["droped"], row["locked"]) == (2, 0, False, orderly)
    assert row["lastPullTimestamp"] > 0
    assert row["lastConsumeTimestamp"] > 0
    assert (row["lastLockTimestamp"] > 0) is orderly
    (queue,) = [queue for queue in state["queues"] if queue.topic == "orders"]
    told = state["queues"][queue]
    assert (told["next_offset"], told["committed"], told["lag"], told["cached"]) == (2, 2, 0, 0)
    assert ("locked" in told) is orderly


def test_a_consumer_without_a_handler_has_no_figures_of_it(codec: Any) -> None:
    from mqclient.rocketmq.remoting.member_options import MemberOptions
    from mqclient.rocketmq.remoting.pull_consumer import PullEngine

    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    client = cluster.client()
    with client.driver.enter():
        engine = PullEngine(client.engine, "g", {"orders": "*"}, MemberOptions())
        engine.start()
        assert engine.member.running_info()["statusTable"] == {}


def test_why_nothing_came(codec: Any) -> None:
    from mqclient.rocketmq.remoting.describe import why_nothing

    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    client = cluster.client()
    push = client.push("g", "orders", start="first")
    assert why_nothing(push.member) == "nothing new in our 2 queues"
    for held in push.member.queues.values():
        held.last_pull_ms = 0
    assert "no pull was answered yet" in why_nothing(push.member)
    with push.driver.enter():
        for held in push.member.queues.values():
            held.last_pull_ms = 1
            held.pause()
    assert why_nothing(push.member) == "all of our queues are paused"
    other = cluster.client().push("late", "missing", start="first")
    other.member.queues.clear()
    assert "topic missing is not there" in why_nothing(other.member)
    push.member.queues.clear()
    assert "no queue is ours" in why_nothing(push.member)


def test_stacks_show_what_handlers_do_and_every_thread(codec: Any) -> None:
    from types import SimpleNamespace

    from mqclient.rocketmq.remoting.describe import stacks

    job = SimpleNamespace(
        stack=lambda: ['File "handlers.py", line 7, in handle'],
        process_queue=SimpleNamespace(queue="queue-3"),
        messages=SimpleNamespace(first_offset=42),
    )
    idle = SimpleNamespace(stack=list)
    text = stacks(SimpleNamespace(taker=SimpleNamespace(running=[job, idle])))
    assert text.startswith('handler of queue-3 from offset 42\nFile "handlers.py", line 7, in handle\n')
    assert "test_stacks_show_what_handlers_do_and_every_thread" in text
    assert stacks(SimpleNamespace(taker=object())).startswith("thread ")

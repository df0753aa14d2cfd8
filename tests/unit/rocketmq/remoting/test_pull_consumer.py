"""Pull consumption: batches in order, what was taken counts when more is asked for, positions that can be moved."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.steps import run_steps
from mqclient.errors import ClosedError, ConfigError
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.member_options import MemberOptions
from mqclient.rocketmq.remoting.pull_consumer import PullEngine
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster

QUEUE = MessageQueue("orders", "broker-a", 0)


class Puller:
    """A pull engine and the driver it lives in."""

    def __init__(self, client: VirtualClient, **options: Any) -> None:
        self.client = client
        with client.driver.enter():
            self.engine = PullEngine(
                client.engine,
                "g",
                {"orders": "*"},
                MemberOptions(start="first", retries=False, pull_batch=4),
                **options,
            )
            self.engine.start()
        client.cluster.world.advance(1)

    def receive(self) -> Any:
        with self.client.driver.enter():
            slot = self.engine.refill()
        self.client.cluster.world.run()
        assert slot.done
        return self.engine.mailbox.take()

    def batch(self, limit: int = 100) -> list[bytes] | None:
        with self.client.driver.enter():
            batch = self.engine.next_batch(limit)
        return None if batch is None else [message.body for message in batch]

    def run(self, steps: Any) -> Any:
        with self.client.driver.enter():
            slot = run_steps(steps)
        return self.client.driver.wait(slot)

    def consumed(self) -> int | None:
        offset: int | None = self.engine.member.offsets.memory.get(QUEUE)
        return offset


@pytest.fixture(name="cluster")
def cluster_fixture(codec: Any) -> VirtualCluster:
    cluster = VirtualCluster(codec)
    cluster.topic("orders", 1)
    cluster.fill("orders", 6)
    return cluster


def test_what_was_taken_counts_when_more_is_asked_for(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    assert puller.batch(3) == [b"0-0", b"0-1", b"0-2"]
    assert puller.consumed() is None
    assert puller.batch() == [b"0-3"]
    assert puller.consumed() == 3
    assert puller.batch() == [b"0-4", b"0-5"]
    assert puller.batch() is None
    assert puller.consumed() == 6


def test_message_by_message(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    assert puller.receive().body == b"0-0"
    assert puller.engine.mailbox.take_many(2)[-1].body == b"0-2"
    with puller.client.driver.enter():
        puller.engine.begin_take()
    assert puller.consumed() == 3
    with pytest.raises(ConfigError, match="left over"):
        puller.batch()
    assert puller.engine.mailbox.take().body == b"0-3"
    assert puller.batch() == [b"0-4", b"0-5"]


def test_who_waits_is_woken_by_a_batch_and_by_the_end(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    puller.batch(), puller.batch()
    with puller.client.driver.enter():
        waits = puller.engine.wait()
        other = puller.engine.refill()
    before = [waits.done, other.done]
    cluster.fill("orders", 1)
    cluster.world.run()
    assert (before, [waits.done, other.done]) == ([False, False], [True, False])  # one message, one is woken
    with puller.client.driver.enter():
        puller.engine.waiters.leave(waits)  # cancelled before it took: the other one's turn
    assert other.done
    assert puller.batch() == [b"0-0"]
    with puller.client.driver.enter():
        last = puller.engine.wait()
        puller.engine.close()
    cluster.world.run()
    assert isinstance(last.error, ClosedError)
    with puller.client.driver.enter():
        assert puller.engine.close().done
        with pytest.raises(ClosedError):
            puller.engine.refill()


def test_the_close_commits_what_was_taken_and_no_more(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    puller.batch(2)
    with puller.client.driver.enter():
        puller.engine.close()
    cluster.world.run()
    assert cluster.broker.offsets.stored["g", "orders", 0] == 2


def test_without_auto_commit_only_commit_counts(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client(), auto_commit=False)
    puller.batch(2)
    puller.batch(1)
    assert puller.consumed() is None
    puller.run(puller.engine.commit_steps())
    assert cluster.broker.offsets.stored["g", "orders", 0] == 3
    assert puller.run(puller.engine.committed_steps(QUEUE)) == 3


def test_nothing_new_does_not_commit_what_is_still_held(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    puller.batch(), puller.batch()
    cluster.world.advance(40)  # pulls end with nothing new meanwhile
    assert puller.consumed() == 4


def test_seek_drops_what_waits(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    puller.batch(1)
    with puller.client.driver.enter():
        puller.engine.seek(QUEUE, 5)
    cluster.world.advance(1)
    assert puller.batch() == [b"0-5"]
    with pytest.raises(ConfigError, match="not assigned"), puller.client.driver.enter():
        puller.engine.seek(MessageQueue("orders", "broker-a", 9), 0)


def test_paused_queues_are_not_pulled(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    puller.batch(), puller.batch()
    with puller.client.driver.enter():
        puller.engine.pause([QUEUE])
    cluster.world.advance(20)
    cluster.fill("orders", 1)
    cluster.world.advance(1)
    assert puller.batch() is None
    with puller.client.driver.enter():
        puller.engine.resume([QUEUE])
    cluster.world.advance(1)
    assert puller.batch() == [b"0-0"]


def test_lag_and_committed(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    assert puller.run(puller.engine.lag_steps()) == {QUEUE: 6}
    assert puller.run(puller.engine.committed_steps(QUEUE)) == 0  # a young queue, as brokers answer
    puller.batch(), puller.batch(), puller.batch()
    assert puller.run(puller.engine.lag_steps()) == {QUEUE: 0}
    assert puller.engine.diagnose()["waiting"] == 0


def test_a_queue_that_goes_takes_its_messages_along(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    puller.receive()
    Puller(cluster.client())
    cluster.world.advance(5)
    assert len(cluster.broker.members.consumers["g"].members) == 2
    if not puller.engine.member.queues:
        assert puller.engine.mailbox.take() is None
        assert cluster.broker.offsets.stored["g", "orders", 0] == 1
    else:
        assert puller.engine.mailbox.take().body == b"0-1"


def test_limits_must_make_sense(cluster: VirtualCluster) -> None:
    with pytest.raises(ConfigError, match="max_messages=0"):
        Puller(cluster.client()).batch(0)


def test_a_filter_for_assigned_queues_only(cluster: VirtualCluster) -> None:
    with pytest.raises(ConfigError, match="goes with assign="):
        Puller(cluster.client(), expression="TagA")


def test_to_where_it_was_at_a_time(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    assert puller.batch() == [b"0-0", b"0-1", b"0-2", b"0-3"]
    moved = puller.run(puller.engine.seek_to_time_steps("first", None))
    assert moved == {QUEUE: 0}
    cluster.world.advance(1)
    assert puller.batch() == [b"0-0", b"0-1", b"0-2", b"0-3"]


def test_why_nothing_came(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    error = puller.engine.nothing()
    assert (str(error).startswith("no message in time: "), error.outcome_unknown) == (True, False)
    assert not puller.engine.ended()


def test_a_forked_child_has_none_of_it(cluster: VirtualCluster) -> None:
    puller = Puller(cluster.client())
    with puller.client.driver.enter():
        puller.engine.abandon()
    assert puller.engine.diagnose()["waiting"] == 0

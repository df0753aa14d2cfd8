"""Entries without receipt: order, what is late, the send timeout, the end."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ClosedError, DeadlineError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.outgoing import prepare
from mqclient.pulsar.pending import Pending
from mqclient.pulsar.train import Train
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def batch(client: ClientEngine, first: int, count: int, after: float) -> Batch:
    made = Batch(client, -1, first, client.driver.now.mono + after)
    made.count = count
    return made


def test_in_order(world: PulsarWorld) -> None:
    client = world.client()
    pending = Pending(client.timers, "t", 5.0)
    with client.driver.enter():
        first, second = batch(client, 3, 2, 5), batch(client, 5, 1, 5)
        pending.append(first)
        pending.append(second)
        assert (len(pending), pending.messages, list(pending)) == (2, 3, [first, second])
        assert (pending.head, pending.last) == (first, second)
        assert pending.pop() is first
        pending.fail_all(ClosedError("closed"))
    assert isinstance(second.error, ClosedError)
    assert not first.done
    assert len(pending) == 0


def test_the_timeout_of_each(world: PulsarWorld) -> None:
    client = world.client()
    pending = Pending(client.timers, "t", 2.0)
    with client.driver.enter():
        early: Any = batch(client, 0, 1, 2)
        late: Any = batch(client, 1, 1, 3)
        pending.append(early)
        pending.append(late)
    world.world.advance(2.1)
    assert isinstance(early.error, DeadlineError)
    assert not late.error
    world.world.advance(1)
    assert isinstance(late.error, DeadlineError)
    assert "no receipt from t in 2.0 s" in str(late.error)


def test_without_a_timeout_it_waits(world: PulsarWorld) -> None:
    client = world.client()
    pending = Pending(client.timers, "t", 0.0)
    with client.driver.enter():
        waiting: Any = batch(client, 0, 1, 0)
        pending.append(waiting)
    world.world.advance(1000)
    assert not waiting.done


def test_a_train_falls_apart_into_entries_among_the_others(world: PulsarWorld) -> None:
    client = world.client()
    pending = Pending(client.timers, "t", 5.0)
    producer = world.producer(client, "t", batching=False)
    with client.driver.enter() as now:
        entries = producer.framer.train(4, now.wall_ms, 1000, 1000)
        assert all(entries.add(prepare(b"%d" % number)) == number for number in range(3))
        train = Train(client, -1, entries, now.mono + 5, now.mono + 1)
        train.close()
        first = batch(client, 3, 1, 5)
        pending.append(first)
        pending.append(train)
        assert pending.messages == 4
        assert pending.find(2) is None
        found = pending.find(5)
        assert [one.sequence_id for one in pending] == [3, 4, 5, 6]
        assert found is list(pending)[2]

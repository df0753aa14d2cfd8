"""A queue while it is ours: what is here, when pulling pauses, and the end of its epoch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.cache import Cache
from mqclient.rocketmq.remoting.process_queue import Limits, ProcessQueue

QUEUE = MessageQueue("orders", "broker-a", 0)


def batch(*offsets: int) -> Any:
    return SimpleNamespace(offsets=list(offsets), sizes=[10] * len(offsets))


@pytest.fixture(name="held")
def held_fixture(codec: Any) -> ProcessQueue:
    return ProcessQueue(QUEUE, 5, 1, codec.permits.Outstanding(), Limits(count=3, bytes=100, span=50))


def test_the_lowest_not_done_is_what_counts(held: ProcessQueue) -> None:
    held.put(batch(5, 6, 9))
    assert held.done([6]) == 5
    assert held.done([5]) == 9
    assert held.done([9]) == 10


@pytest.mark.parametrize("offsets", [(1, 2, 3, 4), (1, 60)])
def test_full_by_count_and_by_span(held: ProcessQueue, offsets: tuple[int, ...]) -> None:
    held.put(batch(*offsets))
    assert held.full()
    room = held.wait_for_room()
    assert room is held.wait_for_room()
    held.done(offsets[1:])
    assert room.done
    assert not held.full()


def test_full_by_bytes(codec: Any) -> None:
    held = ProcessQueue(QUEUE, 0, 1, codec.permits.Outstanding(), Limits(count=-1, bytes=19, span=-1))
    held.put(batch(1, 2))
    assert held.full()


def test_paused_is_full(held: ProcessQueue) -> None:
    held.pause()
    room = held.wait_for_room()
    held.done([])
    assert not room.done
    held.resume()
    assert room.done


def test_dropped_wakes_who_waits_and_forgets(held: ProcessQueue) -> None:
    held.put(batch(1, 2, 3, 4))
    room = held.wait_for_room()
    held.drop()
    assert room.done
    assert held.outstanding.count == 0


def two_of_one_client(codec: Any) -> tuple[Cache, ProcessQueue, ProcessQueue]:
    """Queues that together may hold three messages."""
    cache = Cache(Limits(count=3, bytes=-1, span=-1))
    one, two = (
        ProcessQueue(MessageQueue("orders", "broker-a", number), 0, 1, codec.permits.Outstanding(), Limits(), cache)
        for number in range(2)
    )
    return cache, one, two


def test_what_another_queue_of_the_client_holds_counts(codec: Any) -> None:
    cache, one, two = two_of_one_client(codec)
    one.put(batch(0, 1, 2))
    assert not two.full()
    two.put(batch(0))
    assert (one.full(), two.full()) == (True, True)
    room = two.wait_for_room()
    assert room is two.wait_for_room()
    one.done([0])
    assert room.done
    assert cache.held()["count"] == 3


def test_a_queue_that_is_dropped_makes_room_for_the_others(codec: Any) -> None:
    cache, one, two = two_of_one_client(codec)
    one.put(batch(0, 1, 2, 3))
    waits = [two.wait_for_room()]
    assert [room.done for room in waits] == [False]
    one.drop()
    assert [room.done for room in waits] == [True]
    assert cache.held()["count"] == 0


def test_room_in_the_client_is_none_for_a_queue_that_is_full_by_itself(codec: Any) -> None:
    _, one, two = two_of_one_client(codec)
    one.put(batch(0, 1, 2, 3))
    two.pause()
    waits = [two.wait_for_room()]
    one.done([0, 1, 2, 3])
    assert [room.done for room in waits] == [False]
    one.put(batch(4, 5, 6, 7))
    two.resume()
    assert [room.done for room in waits] == [False]
    one.done([4])
    assert [room.done for room in waits] == [True]


def test_a_client_without_limits_is_not_asked(codec: Any) -> None:
    cache = Cache(Limits(count=-1, bytes=-1, span=-1))
    held = ProcessQueue(QUEUE, 0, 1, codec.permits.Outstanding(), Limits(), cache)
    held.put(batch(0, 1, 2, 3))
    assert not held.full()
    assert cache.held()["count"] == 0

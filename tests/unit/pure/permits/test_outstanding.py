"""Offsets of a RocketMQ queue in flight, story by story, on both implementations."""

from __future__ import annotations

from typing import Any

import pytest


def test_the_commit_offset_is_the_lowest_not_yet_done(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    assert (queue.commit_offset, queue.lowest, queue.highest_seen, queue.span) == (-1, -1, -1, 0)
    assert queue.add_many([10, 11, 15, 20], [1, 2, 3, 4]) == 4
    assert (queue.count, queue.bytes, queue.span, queue.commit_offset) == (4, 10, 10, 10)
    assert queue.done(11)
    assert queue.commit_offset == 10
    assert queue.done(10)
    assert (queue.commit_offset, queue.lowest, queue.span) == (15, 15, 5)
    assert queue.done(20)
    assert (queue.bytes, queue.span, queue.offsets()) == (3, 0, [15])
    assert queue.done_many([15, 15, 20]) == 1
    assert (queue.commit_offset, queue.highest_seen, len(queue)) == (21, 20, 0)


def test_only_what_is_in_flight_can_be_done(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    assert not queue.done(0)
    queue.add_many([2, 4, 6, 8], [0, 0, 0, 0])
    queue.done(4)
    assert [offset in queue for offset in range(-1, 11)] == [False, False, False, True] + [False] * 3 + [
        True, False, True, False, False,
    ]  # fmt: skip
    assert "6" not in queue
    assert 2**70 not in queue
    assert not any(map(queue.done, (-1, 0, 3, 4, 5, 7, 9)))
    assert queue.count == 3


def test_a_message_that_came_twice_is_not_taken_up(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    assert queue.add(5, 10)
    assert not queue.add(5, 10)
    assert not queue.add(4, 10)
    queue.done(5)
    assert not queue.add(5, 10)
    assert queue.add_many([3, 5, 6, 6, 7], [1] * 5) == 2
    assert (queue.count, queue.bytes) == (2, 2)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ((2, 99, 99), "COUNT"),
        ((3, 29, 99), "BYTES"),
        ((3, 30, 8), "SPAN"),
        ((3, 30, 9), None),
        ((-1, -1, -1), None),
        ((0, 0, 0), "COUNT"),
    ],
)
def test_the_flow_decision_names_the_limit_that_is_exceeded(
    codec: Any, limits: tuple[int, int, int], expected: str | None
) -> None:
    queue = codec.permits.Outstanding()
    assert queue.over(0, 0, 0) == 0
    queue.add_many([1, 5, 10], [10, 10, 10])
    assert queue.over(*limits) == (getattr(codec.permits, expected) if expected else 0)


def test_clear_forgets_what_was_seen(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    queue.add_many([7, 8, 9], [1, 1, 1])
    queue.done(8)
    assert queue.clear() == 2
    assert (queue.count, queue.bytes, queue.span, queue.commit_offset) == (0, 0, 0, -1)
    assert queue.add(1, 1)


def test_outstanding_refuses_what_is_no_message(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    for offset, size in ((-1, 0), (0, -1), (0, 2**31)):
        with pytest.raises(ValueError, match="no message"):
            queue.add(offset, size)
    with pytest.raises(ValueError, match="2 offsets with 1 sizes"):
        queue.add_many([1, 2], [1])
    assert queue.count == 0


def test_thousands_in_flight(codec: Any) -> None:
    queue = codec.permits.Outstanding()
    offsets = list(range(0, 30_000, 3))
    queue.add_many(offsets, [2] * len(offsets))
    assert queue.done_many(reversed(offsets[1:])) == len(offsets) - 1
    assert (queue.count, queue.span, queue.commit_offset) == (1, 0, 0)
    later = range(29_999, 60_000)
    queue.add_many(tuple(later), (1,) * len(later))
    assert queue.done(0)
    assert queue.commit_offset == 29_999

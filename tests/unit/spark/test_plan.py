"""Planning of RocketMQ reads: every offset once, nothing outside of what is there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from mqclient.errors import ConfigError
from mqclient.spark.filters import Bounds
from mqclient.spark.plan import (
    Ahead,
    Limit,
    Queue,
    Range,
    advance,
    clipped,
    flat,
    nested,
    ranges,
    resolve,
    split,
    within,
)
from tests.unit.spark.test_filters import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan

A0, A1, B0 = Queue("t", "a", 0), Queue("t", "a", 1), Queue("t", "b", 0)
ENDS = {A0: (5, 10), A1: (0, 0), B0: (2, 8)}


def test_symbolic_positions() -> None:
    assert resolve("earliest", ENDS, "startingOffsets") == {A0: 5, A1: 0, B0: 2}
    assert resolve("latest", ENDS, "endingOffsets") == {A0: 10, A1: 0, B0: 8}


def test_named_positions_and_what_is_left_out() -> None:
    named: dict[str, Any] = {"t": {"a": {"0": 7}, "b": {"0": -1}}}
    assert resolve(named, ENDS, "startingOffsets") == {A0: 7, A1: 0, B0: 8}
    assert resolve({"t": {"b": {"0": -2}}}, ENDS, "endingOffsets") == {A0: 10, A1: 0, B0: 2}
    assert resolve({"v": 1, "q": named}, ENDS, "startingOffsets")[A0] == 7


@pytest.mark.parametrize("offset", [4, 11])
def test_what_is_not_there_is_an_error_unless_losses_are_allowed(offset: int) -> None:
    named = {"t": {"a": {"0": offset}}}
    with pytest.raises(ConfigError, match=rf"offset {offset} of t, broker a, queue 0 .* 5 to 10.*failOnDataLoss"):
        resolve(named, ENDS, "startingOffsets")
    assert resolve(named, ENDS, "startingOffsets", clamp=True)[A0] == min(max(offset, 5), 10)


def test_unknown_queues_and_odd_shapes() -> None:
    with pytest.raises(ConfigError, match="there is no u, broker a, queue 0"):
        resolve({"u": {"a": {"0": 1}}}, ENDS, "startingOffsets")
    for odd in ({"t": 3}, {"t": {"a": {"x": 1}}}, {"v": 1}):
        with pytest.raises(ConfigError, match="is not of the form"):
            flat(odd, "startingOffsets")


def test_offsets_are_written_in_one_order() -> None:
    offsets = {B0: 1, A1: 2, A0: 3}
    assert json.dumps(nested(offsets)) == '{"t": {"a": {"0": 3, "1": 2}, "b": {"0": 1}}}'
    assert flat(nested(offsets), "x") == offsets


def test_an_end_before_the_start_is_an_error() -> None:
    assert ranges({A0: 3}, {A0: 5, A1: 1}) == [Range(A0, 3, 5), Range(A1, 0, 1)]
    with pytest.raises(ConfigError, match="ends at 2, before its start 3"):
        ranges({A0: 3}, {A0: 2})


@example([(0, 2)], None, 3)
@given(
    some.lists(some.tuples(some.integers(0, 50), some.integers(0, 200)), max_size=4),
    some.none() | some.integers(1, 60),
    some.none() | some.integers(1, 20),
)
def test_pieces_cover_everything_once(
    sizes: list[tuple[int, int]], max_records: int | None, min_partitions: int | None
) -> None:
    wholes = [Range(Queue("t", "a", number), low, low + size) for number, (low, size) in enumerate(sizes)]
    pieces = split(wholes, max_records, min_partitions)
    for whole in wholes:
        own = [piece for piece in pieces if piece.queue == whole.queue]
        assert [offset for piece in own for offset in range(piece.start, piece.end)] == list(
            range(whole.start, whole.end)
        )
        assert all(piece.start < piece.end for piece in own)
        assert all(piece.end - piece.start <= (max_records or 10**9) for piece in own)


@given(some.lists(some.integers(0, 1000), min_size=1, max_size=6), some.integers(1, 500))
def test_limits_are_shared_by_backlog_and_starve_nobody(backlog: list[int], limit: int) -> None:
    starts = {Queue("t", "a", number): 7 for number in range(len(backlog))}
    ends = {queue: 7 + backlog[queue.number] for queue in starts}
    ahead = {queue: Ahead(7, backlog[queue.number], 1.0, 0.0) for queue in starts if backlog[queue.number]}
    found = within(Limit(rows=limit), ends, ahead, advance)
    taken = {queue: found[queue] - 7 for queue in found}
    assert all(0 <= taken[queue] <= backlog[queue.number] for queue in taken)
    assert all(taken[queue] for queue in taken if backlog[queue.number])
    assert sum(taken.values()) <= limit + len(backlog)
    if sum(backlog) <= limit:
        assert found == ends


def test_bytes_limit_too_and_the_narrower_one_counts() -> None:
    ends, ahead = {A0: 107, B0: 1007}, {A0: Ahead(7, 100, 1.0, 10.0), B0: Ahead(7, 1000, 1.0, 10.0)}
    assert within(Limit(size=1100), ends, ahead, advance) == {A0: 17, B0: 107}
    assert within(Limit(rows=550, size=1100), ends, ahead, advance) == {A0: 17, B0: 107}
    assert within(Limit(rows=55, size=1100), ends, ahead, advance) == {A0: 12, B0: 57}
    assert within(Limit(size=1 << 30), ends, ahead, advance) == ends
    assert within(Limit(), ends, ahead, advance) == ends


def test_where_nobody_knows_how_many_there_are_as_many_as_fit_are_taken() -> None:
    ahead = {"t": Ahead(100, None, 10.0, 1000.0)}
    assert within(Limit(rows=55), {"t": 9999}, ahead, advance) == {"t": 105}
    assert within(Limit(rows=55, size=2000), {"t": 9999}, ahead, advance) == {"t": 102}
    assert within(Limit(rows=3), {"t": 9999}, ahead, advance) == {"t": 101}


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([], [(5, 100), (0, 50)]),
        ([EqualTo("queue", 1)], [(0, 50)]),
        ([EqualTo("broker", "b")], []),
        ([In("queue", [0, 7]), GreaterThan("offset", 20)], [(20, 100)]),
        ([GreaterThanOrEqual("offset", 20), LessThan("offset", 30)], [(20, 31), (20, 31)]),
        ([EqualTo("offset", 3)], [(3, 4)]),
        ([EqualTo("queue", 1), EqualTo("queue", 0)], []),
    ],
)
def test_conditions_narrow_ranges(filters: list[Any], expected: list[tuple[int, int]]) -> None:
    wholes = [Range(A0, 5, 100), Range(A1, 0, 50)]
    assert [(one.start, one.end) for one in clipped(wholes, Bounds.of(filters), {}, {})] == expected


def test_times_narrow_ranges_with_one_more_where_brokers_are_vague() -> None:
    wholes = [Range(A0, 5, 100), Range(A1, 0, 50)]
    assert clipped(wholes, Bounds(), {A0: 10, A1: 60}, {A0: 20}) == [Range(A0, 10, 21)]

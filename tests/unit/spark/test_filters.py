"""Conditions of a query: what they leave, and that those which narrow nothing are passed over."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from mqclient.spark.filters import Bounds


class Filter:
    """As Spark's: the column's path, a value."""

    def __init__(self, column: str, value: Any) -> None:
        self.attribute = tuple(column.split("."))
        self.value = value


class EqualTo(Filter): ...


class EqualNullSafe(Filter): ...


class In(Filter): ...


class GreaterThan(Filter): ...


class GreaterThanOrEqual(Filter): ...


class LessThan(Filter): ...


class LessThanOrEqual(Filter): ...


class StringContains(Filter): ...


class Not:
    """Of another filter: it has no column of its own."""

    def __init__(self, child: Any) -> None:
        self.child = child


def test_ranges_of_a_column() -> None:
    found = Bounds.of(
        [
            GreaterThan("offset", 3),
            GreaterThanOrEqual("offset", 7),
            LessThan("offset", 90),
            LessThanOrEqual("offset", 80),
        ]
    )
    assert (found.least("offset"), found.most("offset"), found.least("queue")) == (7, 80, None)
    assert [found.allows("offset", value) for value in (6, 7, 80, 81)] == [False, True, True, False]
    assert found.allows("queue", 6)


def test_values_of_a_column() -> None:
    found = Bounds.of(
        [In("queue", [1, 2, 3]), In("queue", [2, 3]), GreaterThan("queue", 0), EqualNullSafe("topic", "t")]
    )
    assert (found.least("queue"), found.most("queue")) == (2, 3)
    assert [found.allows("queue", value) for value in (1, 2)] == [False, True]
    assert not found.impossible()
    assert Bounds.of([EqualTo("queue", 1), EqualTo("queue", 2)]).impossible()
    assert Bounds.of([In("queue", [])]).impossible()


def test_what_narrows_nothing() -> None:
    filters = [
        StringContains("topic", "x"),
        Not(EqualTo("topic", "x")),
        EqualTo("properties.a", "b"),
        EqualTo("tag", None),
    ]
    assert Bounds.of(filters) == Bounds()


def test_times_are_milliseconds_and_the_end_lies_behind_what_matters() -> None:
    def at(microseconds: int) -> datetime:
        return datetime.fromtimestamp(1_700_000_000, timezone.utc).replace(microsecond=microseconds)

    found = Bounds.of([GreaterThan("timestamp", at(1_500)), LessThan("timestamp", at(9_001))])
    assert found.times() == (1_700_000_000_001, 1_700_000_000_010)
    assert Bounds().times() == (None, None)

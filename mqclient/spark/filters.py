"""Owns what of a query's conditions narrows the ranges of a batch read; without Spark, so testable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

LOWER: Final = ("GreaterThan", "GreaterThanOrEqual")
UPPER: Final = ("LessThan", "LessThanOrEqual")
EQUAL: Final = ("EqualTo", "EqualNullSafe")


@dataclass
class Bounds:
    """Of each column the values that can matter: those named, or the closed range between two."""

    values: dict[str, set[Any]] = field(default_factory=dict)
    low: dict[str, Any] = field(default_factory=dict)
    high: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(filters: Iterable[Any]) -> Bounds:
        """From Spark's filters, which all hold. Those that narrow nothing are passed over: Spark applies them all."""
        found = Bounds()
        for one in filters:
            attribute: tuple[str, ...] = getattr(one, "attribute", ())
            if len(attribute) == 1:
                found._narrow(type(one).__name__, attribute[0], getattr(one, "value", None))
        return found

    def _narrow(self, kind: str, column: str, value: Any) -> None:
        if kind == "In":
            self._only(column, set(value or ()))
        elif value is None:
            return
        elif kind in EQUAL:
            self._only(column, {value})
        elif kind in LOWER:
            self.low[column] = max(value, self.low.get(column, value))
        elif kind in UPPER:
            self.high[column] = min(value, self.high.get(column, value))

    def _only(self, column: str, values: set[Any]) -> None:
        self.values[column] = self.values[column] & values if column in self.values else values

    def allows(self, column: str, value: Any) -> bool:
        """Whether rows with this value may be wanted."""
        return (
            (column not in self.values or value in self.values[column])
            and (column not in self.low or value >= self.low[column])
            and (column not in self.high or value <= self.high[column])
        )

    def least(self, column: str) -> Any:
        """The lowest value that can matter, None: any."""
        return max((*self._named(column, min), *([self.low[column]] if column in self.low else ())), default=None)

    def most(self, column: str) -> Any:
        """The highest value that can matter, None: any."""
        return min((*self._named(column, max), *([self.high[column]] if column in self.high else ())), default=None)

    def _named(self, column: str, which: Any) -> list[Any]:
        return [which(self.values[column])] if self.values.get(column) else []

    def impossible(self) -> bool:
        """Whether no row can be wanted."""
        return any(not values for values in self.values.values())

    def times(self) -> tuple[int | None, int | None]:
        """The first millisecond that can matter, and the first after those that can."""
        low, high = self.least("timestamp"), self.most("timestamp")
        return (
            None if low is None else _milliseconds(low),
            None if high is None else _milliseconds(high) + 1,
        )


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)

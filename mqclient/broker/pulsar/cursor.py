"""Owns how far a subscription has come: the mark, entries acknowledged above it, entries acknowledged in part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any


def bits_of(words: Sequence[int]) -> int:
    """The words of an ack set as one number: bit i set = message i is not acknowledged.

    >>> bits_of([-1, 1]) == 2**65 - 1
    True
    """
    return sum((word % 2**64) << (64 * index) for index, word in enumerate(words))


def words_of(bits: int) -> list[int]:
    """The reverse: signed words, no zero words at the end."""
    words = []
    while bits:
        word = bits & (2**64 - 1)
        words.append(word - 2**64 if word >> 63 else word)
        bits >>= 64
    return words


def ranges(numbers: Iterable[int]) -> list[list[int]]:
    """First and last of what follows on each other, of numbers in order.

    >>> ranges([1, 2, 3, 7])
    [[1, 3], [7, 7]]
    """
    rows = [[number for _, number in run] for _, run in groupby(enumerate(numbers), lambda at: at[1] - at[0])]
    return [[row[0], row[-1]] for row in rows]


class Cursor:
    """Everything up to `mark` is acknowledged; -1: nothing is.

    >>> cursor = Cursor(-1)
    >>> cursor.ack(1), cursor.mark, cursor.ack(0), cursor.mark
    (True, -1, True, 1)
    """

    __slots__ = ("_above", "_parts", "mark", "tell")

    def __init__(self, mark: int) -> None:
        self.mark = mark
        self._above: set[int] = set()
        self._parts: dict[int, int] = {}
        self.tell: Callable[[], object] = _nobody
        """Called when it has moved."""

    def acked(self, entry: int) -> bool:
        return entry <= self.mark or entry in self._above

    def remaining(self, entry: int, count: int) -> int:
        """The bits of what is not acknowledged of an entry of that many messages."""
        return 0 if self.acked(entry) else self._parts.get(entry, (1 << count) - 1)

    def partly(self, entry: int) -> bool:
        return entry in self._parts

    def ack(self, entry: int) -> bool:
        """All of it; False if it was already."""
        if self.acked(entry):
            return False
        self._parts.pop(entry, None)
        self._above.add(entry)
        self._advance()
        self.tell()
        return True

    def ack_part(self, entry: int, count: int, remaining: int) -> int:
        """Keep only the bits in `remaining`; how many messages were acknowledged by that."""
        before = self.remaining(entry, count)
        after = before & remaining
        if after == before:
            return 0
        if after:
            self._parts[entry] = after
            self.tell()
        else:
            self.ack(entry)
        return (before ^ after).bit_count()

    def ack_up_to(self, entry: int) -> None:
        if entry > self.mark:
            self.mark = entry
            self._above = {above for above in self._above if above > entry}
            self._parts = {part: bits for part, bits in self._parts.items() if part > entry}
            self._advance()
            self.tell()

    def reset(self, mark: int) -> None:
        """As if nothing after `mark` had ever been acknowledged."""
        self.mark = mark
        self._above.clear()
        self._parts.clear()
        self.tell()

    def acked_between(self, start: int, stop: int) -> int:
        """How many entries of a range above the mark are acknowledged."""
        return sum(start <= entry < stop for entry in self._above)

    def dump(self) -> dict[str, Any]:
        """As JSON has it: ranges of what is acknowledged above the mark, and what is left of entries in hex."""
        above = ranges(sorted(self._above))
        return {"mark": self.mark, "above": above, "parts": [[part, f"{bits:x}"] for part, bits in self._parts.items()]}

    def load(self, dumped: Mapping[str, Any]) -> None:
        """The reverse."""
        self.mark = dumped["mark"]
        self._above = {entry for first, last in dumped["above"] for entry in range(first, last + 1)}
        self._parts = {part: int(bits, 16) for part, bits in dumped["parts"]}

    def _advance(self) -> None:
        while self.mark + 1 in self._above:
            self.mark += 1
            self._above.discard(self.mark)


def _nobody() -> None:
    """Nothing is kept."""

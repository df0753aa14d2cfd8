"""Owns the entries of a subscription that come again."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush


class Replay:
    """Entries that come again, lowest first."""

    __slots__ = ("_entries", "_heap")

    def __init__(self) -> None:
        self._entries: set[int] = set()
        self._heap: list[int] = []

    def add(self, entries: Iterable[int]) -> None:
        for entry in entries:
            if entry not in self._entries:
                self._entries.add(entry)
                heappush(self._heap, entry)

    def discard(self, entry: int) -> None:
        self._entries.discard(entry)

    def pop(self) -> int | None:
        while self._heap:
            entry = heappop(self._heap)
            if entry in self._entries:
                self._entries.discard(entry)
                return entry
        return None

    def clear(self) -> None:
        self._entries.clear()
        self._heap.clear()

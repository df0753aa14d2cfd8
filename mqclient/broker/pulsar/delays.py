"""Owns what is not due yet: entries of one subscription that wait for their time."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mqclient.broker.control import Alarm, Clock


class Delays:
    """Entries by the time (ms) at which they may be delivered; `due` is called when the first ones may."""

    __slots__ = ("_alarm", "_due", "_heap")

    def __init__(self, due: Callable[[], None]) -> None:
        self._due = due
        self._heap: list[tuple[int, int]] = []
        self._alarm: Alarm | None = None

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, entry: int, when: int, clock: Clock) -> None:
        heappush(self._heap, (when, entry))
        if self._heap[0] == (when, entry):
            self._arm(clock)

    def take(self, clock: Clock) -> list[int]:
        """Entries that are due now."""
        found, now = [], clock.wall_ms()
        while self._heap and self._heap[0][0] <= now:
            found.append(heappop(self._heap)[1])
        self._arm(clock)
        return found

    def clear(self) -> None:
        self._heap.clear()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _arm(self, clock: Clock) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._heap:
            # The clock counts in fractions of ms: one more, so that the time has really come.
            self._alarm = clock.after(max(0, self._heap[0][0] - clock.wall_ms() + 1) / 1000, self._due)

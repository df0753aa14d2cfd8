"""Owns how large the queue of an adaptive consumer is: as small as its user can keep up with, within a memory limit."""

from __future__ import annotations

from mqclient.pulsar.permits import Permits

FILL, FULL = 0.75, 0.95
"""Of the memory limit: up to here the queue grows, from here on it shrinks."""
_WEIGHT = 0.1


class Adaptive:
    """Starts at one message. It doubles when a receive finds nothing although the broker used up all that was granted,
    and halves when what waits here, by the average size of late, comes near the limit.
    """

    __slots__ = ("_average", "_filled", "_memory", "_most", "_permits")

    def __init__(self, permits: Permits, most: int, memory: int) -> None:
        self._permits = permits
        self._most = most
        self._memory = memory
        self._average = 0.0
        self._filled = False
        """Since the last growth the broker has used up all that was granted."""

    def on_entry(self, size: int, count: int) -> int | None:
        """An entry came; the window to have from now on, if another one."""
        each = size / max(count, 1)
        self._average += (each - self._average) * (_WEIGHT if self._average else 1.0)
        account = self._permits.diagnose()
        self._filled = self._filled or account["at_broker"] <= 0
        window = account["window"]
        if window > 1 and account["here"] * self._average > FULL * self._memory:
            return window // 2
        return None

    def on_wait(self) -> int | None:
        """A receive found nothing; the window to have from now on, if another one."""
        account = self._permits.diagnose()
        window = account["window"]
        larger = min(window * 2, self._most)
        if not self._filled or larger == window or larger * self._average > FILL * self._memory:
            return None
        self._filled = False
        return larger

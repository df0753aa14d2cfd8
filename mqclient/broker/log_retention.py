"""Owns how much is kept: the oldest messages of all logs go when there are too many bytes, or when they are too old."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mqclient.broker.control import Clock
    from mqclient.broker.store import Log

LIMIT: Final = 4 << 30
BESIDE: Final = 16
"""Bytes that a record takes beside itself: its time, its mark and its end."""
PAUSE: Final = 0.25
"""Seconds between two looks; what comes meanwhile may be above the limit."""

Trim = Callable[[int], None]


class Retention:
    """Looks at all logs again and again; `logs` gives each with how it is trimmed."""

    def __init__(
        self, clock: Clock, logs: Callable[[], Iterable[tuple[Log, Trim]]], limit: int, seconds: float | None
    ) -> None:
        self._clock = clock
        self._logs = logs
        self._limit = limit
        self._seconds = seconds

    def start(self) -> None:
        self._clock.after(PAUSE, self._round)

    def _round(self) -> None:
        self.look()
        self.start()

    def look(self) -> None:
        """Trim what is too much now."""
        logs = [(log, trim) for log, trim in self._logs() if len(log)]
        if self._seconds is not None:
            since = self._clock.wall_ms() - round(self._seconds * 1000)
            for log, trim in logs:
                if log.time(log.first) < since:
                    trim(log.at_or_after(since))
        left = sum(log.bytes + BESIDE * len(log) for log, _ in logs) - self._limit
        while left > 0 and (logs := [each for each in logs if len(each[0])]):
            log, trim = min(logs, key=lambda each: each[0].time(each[0].first))
            before = log.bytes + BESIDE * len(log)
            trim(log.second)
            left -= before - log.bytes - BESIDE * len(log)

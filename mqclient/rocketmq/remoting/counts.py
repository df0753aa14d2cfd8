"""Owns what a push consumer did: totals for people, and the figures of the last minute that operators' tools print."""

from __future__ import annotations

from typing import Any, Final

MINUTE: Final = 60.0


class _Topic:
    """One topic's figures: totals, and those of the minute that runs and of the one before."""

    __slots__ = ("calls", "failed", "handled", "last", "seconds")

    def __init__(self) -> None:
        self.handled = self.failed = self.calls = 0
        self.seconds = 0.0
        self.last = (0, 0, 0, 0.0)


class Counts:
    """Messages handled and failed, and how long the calls took."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._topics: dict[str, _Topic] = {}
        self._since = client.driver.now.mono
        self.all_handled = 0
        self.all_failed = 0

    def handled(self, topic: str, count: int) -> None:
        self.all_handled += count
        self._of(topic).handled += count

    def failed(self, topic: str, count: int) -> None:
        self.all_failed += count
        self._of(topic).failed += count

    def took(self, topic: str, seconds: float) -> None:
        entry = self._of(topic)
        entry.calls += 1
        entry.seconds += seconds

    def status(self, topic: str) -> dict[str, float | int]:
        """As 307 shows it: rates of the last minute, times in milliseconds."""
        entry = self._of(topic)
        handled, failed, calls, seconds = entry.last if any(entry.last) else self._now(entry)
        return {
            "consumeFailedMsgs": entry.failed,
            "consumeFailedTPS": failed / MINUTE,
            "consumeOKTPS": handled / MINUTE,
            "consumeRT": 1000 * seconds / calls if calls else 0.0,
            "pullRT": 0.0,
            "pullTPS": (handled + failed) / MINUTE,
        }

    def _now(self, entry: _Topic) -> tuple[int, int, int, float]:
        return entry.handled, entry.failed, entry.calls, entry.seconds

    def _of(self, topic: str) -> _Topic:
        now = self._client.driver.now.mono
        if now - self._since >= MINUTE:
            self._turn(now)
        entry = self._topics.get(topic)
        if entry is None:
            entry = self._topics[topic] = _Topic()
        return entry

    def _turn(self, now: float) -> None:
        """A minute is over: what it brought is the last minute's; a rest of more than one brought nothing."""
        fresh = now - self._since < 2 * MINUTE
        self._since = now
        for entry in self._topics.values():
            entry.last = self._now(entry) if fresh else (0, 0, 0, 0.0)
            entry.handled = entry.calls = entry.failed = 0
            entry.seconds = 0.0

"""Owns a rate: how long the next ones have to wait so that no more than so many go in a second."""

from __future__ import annotations

from mqclient.errors import ConfigError


class Pace:
    """Evenly spread, without saving up: after a rest the first ones go at once, and no burst follows.

    >>> pace = Pace(10.0)
    >>> pace.take(5, 100.0), pace.take(5, 100.1)
    (0.0, 0.4)
    """

    def __init__(self, rate: float) -> None:
        if rate <= 0:
            raise ConfigError(f"rate={rate}: more than 0 messages a second")
        self._rate = rate
        self._free = 0.0

    def take(self, count: int, now: float) -> float:
        """Seconds from now until these may go."""
        start = max(self._free, now)
        self._free = start + count / self._rate
        return round(start - now, 9)

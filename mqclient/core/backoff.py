"""Owns delays between tries: they grow to a limit, and differ between clients so that not all come back at once."""

from __future__ import annotations

from random import Random


class Backoff:
    """`next()` gives the delay before the next try, `reset()` after a success.

    The delay is taken from the upper part of the step: with `jitter=0.2` between 80 % and 100 % of it.

    >>> backoff = Backoff(1.0, 5.0, jitter=0.0)
    >>> [backoff.next() for _ in range(4)]
    [1.0, 2.0, 4.0, 5.0]
    """

    __slots__ = ("_factor", "_first", "_jitter", "_limit", "_random", "_step", "tries")

    def __init__(
        self, first: float, limit: float, *, factor: float = 2.0, jitter: float = 0.2, random: Random | None = None
    ) -> None:
        self._first = first
        self._limit = limit
        self._factor = factor
        self._jitter = jitter
        self._random = random or Random()
        self._step = first
        self.tries = 0

    def next(self) -> float:
        self.tries += 1
        step = min(self._step, self._limit)
        self._step = min(step * self._factor, self._limit)
        return step * (1.0 - self._jitter * self._random.random())

    def reset(self) -> None:
        self.tries = 0
        self._step = self._first

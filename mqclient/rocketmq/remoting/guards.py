"""Owns what holds a producer back by itself: a rate limit, and a breaker that spares brokers which only fail."""

from __future__ import annotations

from mqclient.errors import MQError
from mqclient.rocketmq.model import CircuitOpenError, QueueFullError
from mqclient.rocketmq.remoting.producer_options import ProducerOptions

BURST: float = 0.1
"""So many seconds' worth of messages may go at once."""
SHORTEST: float = 0.001
"""A shorter wait costs more than it keeps apart."""


class Guards:
    """Asked before each send, told after it. Inside entries; times are monotonic."""

    def __init__(self, options: ProducerOptions) -> None:
        self._rate = options.rate_limit
        self._next = 0.0
        """When the next message may go if all before it kept the pace."""
        self._failures = options.breaker_failures
        self._pause = options.breaker_pause
        self._failed = 0
        self._open_until = 0.0
        self._probing = False

    @property
    def needed(self) -> bool:
        return bool(self._rate or self._failures)

    def check(self, now: float) -> None:
        """A CircuitOpenError while the breaker is open; after its pause one send may try."""
        if not self._failures or self._failed < self._failures:
            return
        if now < self._open_until or self._probing:
            left = max(0.0, self._open_until - now)
            raise CircuitOpenError(
                f"the last {self._failed} sends failed: nothing is sent for {left:.1f} s, then one tries"
            )
        self._probing = True

    def wait(self, now: float) -> float:
        """How long the next message would have to wait."""
        pause = self._next - now - BURST if self._rate else 0.0
        return pause if pause > SHORTEST else 0.0

    def enter(self, count: int, now: float, deadline: float) -> float:
        """How long these messages wait for the turn that they take now; a QueueFullError if their time ends before."""
        self.check(now)
        pause = self.wait(now)
        if not self._rate:
            return 0.0
        if now + pause > deadline:
            self._probing = False
            raise QueueFullError(f"rate_limit={self._rate:g} messages a second lets this one go in {pause:.1f} s only")
        self._next = max(self._next, now) + count / self._rate
        return pause

    def told(self, error: BaseException | None, now: float) -> None:
        """The outcome of a request. What another message might survive, such as too large a body, is no failure."""
        self._probing = False
        if isinstance(error, MQError) and error.retriable:
            self._failed += 1
            if self._failures and self._failed >= self._failures:
                self._open_until = now + self._pause
        elif error is None or getattr(error, "code", None) is not None:
            self._failed = 0

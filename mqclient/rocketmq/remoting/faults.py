"""Owns which brokers are left alone for a while, because they were slow or failed (latency-fault avoidance)."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

LADDER: Final = ((15.0, 30.0), (5.0, 10.0), (3.0, 6.0), (1.8, 5.0), (0.55, 2.0))
"""An answer that took so many seconds at least: its broker is avoided for so many."""
ISOLATED: Final = 10.0
_NONE: Final[Set[str]] = frozenset()


class Faults:
    """Upstream's ladder. A broker that answers well is available at once, whatever it did before."""

    __slots__ = ("until",)

    def __init__(self) -> None:
        self.until: dict[str, float] = {}
        """Of each broker that was slow or failed, and did not answer well since."""

    def answered(self, broker: str, seconds: float, now: float) -> None:
        """It answered, after so many seconds."""
        if seconds < LADDER[-1][0] and not self.until:
            return
        pause = next((pause for least, pause in LADDER if seconds >= least), 0.0)
        if pause:
            self.until[broker] = now + pause
        else:
            self.until.pop(broker, None)

    def failed(self, broker: str, now: float) -> None:
        """It refused, was silent, or could not be reached."""
        self.until[broker] = now + ISOLATED

    def avoided(self, now: float) -> Set[str]:
        """Brokers to be left alone now."""
        if not self.until:
            return _NONE
        return {broker for broker, until in self.until.items() if until > now}

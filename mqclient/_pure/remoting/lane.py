"""Owns nothing: what the native lane does in one step would be many in Python, between which others come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Crossing:
    """One request that goes by a lane; `what` belongs to whoever made it."""

    __slots__ = ("answered", "opaque", "passage", "slot", "what")

    def __init__(self, passage: Any, opaque: int, what: Any, /) -> None:
        self.passage = passage
        self.opaque = opaque
        self.what = what
        self.slot: Any = None
        self.answered = False

    def take(self, slot: Any, /) -> bool:
        """Whether this slot stands for it from now on: no other does."""
        if self.slot is not None:
            return False
        self.slot = slot
        return True


class Lane:
    """It takes nothing: requests go through the engine, where the lock keeps others out."""

    __slots__ = ("patience_ms", "under_way")

    able = False
    landed = 0

    def __init__(self, late: Callable[[Crossing], Any], /) -> None:
        self.patience_ms = 100
        self.under_way: set[Crossing] = set()

    def exchange(self, crossing: Crossing, frame: bytes, count: int = 1, /) -> Any:
        """None: take the long way."""
        return None

"""Owns nothing: what the native lane does in one step would be many in Python, between which others come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqclient._pure.pulsar.flight import EntryFlight


class Lane:
    """It never opens: messages take the way through the engine, where the lock keeps others out."""

    __slots__ = ("patience_ms",)

    def __init__(self, budget: Any, make_slot: Callable[[], Any], give_up: Callable[[], None], /) -> None:
        self.patience_ms = 100

    @property
    def opened(self) -> bool:
        return False

    @property
    def published(self) -> int:
        """Nothing went this way."""
        return -1

    def open(self, flight: EntryFlight, passage: Any, sequence_id: int, /) -> bool:
        """Whether messages go this way from now on: no."""
        return False

    def shut(self, deadline: float, /) -> tuple[int, int, list[bytes]]:
        """Nobody asks for what is back: it was never open."""
        return 0, 0, []

    def send(self, message: Any, /) -> Any:
        """None: send it the long way."""
        return None

"""The only owner of permits: one account per consumer, bound to the epoch of a connection; says when FLOW is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Permits:
    """Wraps native Credits. Every message that arrived leaves by `release` with a reason; there is no other way out.

    `window == at broker + here + released - debt` holds after every call. FLOW goes out by `send(permits)`: once
    for the whole queue when a subscription opens, then in portions of at least half of it.
    """

    __slots__ = ("_credits", "_send", "_waiting")

    def __init__(self, impl: Any, window: int, send: Callable[[int], None]) -> None:
        self._credits = impl.permits.Credits(window)
        self._send = send
        self._waiting = 0

    @property
    def epoch(self) -> int:
        epoch: int = self._credits.epoch
        return epoch

    @property
    def half(self) -> int:
        half: int = self._credits.half
        return half

    @property
    def zero_queue(self) -> bool:
        return bool(self._credits.zero_queue)

    def open(self, epoch: int) -> None:
        """SUBSCRIBE was answered: a new account, and the one initial grant (none while paused)."""
        self._credits.reset(epoch)
        self._flow()

    def lost(self) -> None:
        """The subscription is gone: nothing is granted until the next `open`."""
        self._credits.lost()

    def arrive(self, count: int, epoch: int) -> bool:
        """The broker deducted `count`; False: that epoch is over, drop the entry and release nothing."""
        here: bool = self._credits.arrive(count, epoch)
        return here

    def release(self, count: int, reason: int, epoch: int) -> None:
        """`count` messages left, for a reason; grants what is due."""
        if count and self._credits.release(count, reason, epoch):
            self._flow()

    def pause(self) -> None:
        self._credits.pause()

    def resume(self) -> None:
        self._credits.resume()
        self._flow()

    def resize(self, window: int) -> None:
        """Another window: what it is larger by is granted, what it is smaller by is withheld."""
        delta = window - self._credits.window
        if delta:
            self._credits.resize(delta)
            self._flow()

    def receivers(self, waiting: int) -> None:
        """Zero-queue: so many receives wait now, which is the window.

        One that was cancelled is noticed at the next look: until then its grant stays at the broker, for the next one.
        """
        while self._waiting > waiting:
            self._waiting -= 1
            self._credits.receive_ends()
        while self._waiting < waiting:
            self._waiting += 1
            self._credits.receive_waits()
        self._flow()

    def diagnose(self) -> dict[str, int]:
        """The account as it is now; `window` is the sum of the others, less `debt`."""
        credits = self._credits
        return {
            "window": credits.window,
            "at_broker": credits.at_broker,
            "here": credits.here,
            "released": credits.released,
            "debt": credits.debt,
            **credits.counts(),
        }

    def _flow(self) -> None:
        permits = self._credits.flow()
        if permits:
            self._send(permits)

"""Owns submitted entries that wait a moment to be written together, while others are in flight."""

from __future__ import annotations

from collections.abc import Callable

from mqclient.core.driver import Driver, Now
from mqclient.core.timers import Timer, Timers

MOST = 64 << 10
SECONDS = 0.001
"""How much, and how long, is held back while somebody goes on submitting."""


class Held:
    """Frames in order. `write()` is told when it is enough, or when nobody has asked for them until `patience` was
    over; who writes something else takes them along first.

    A system call for each entry would cost more than all else about it. Receipts of what is in flight come meanwhile,
    and each of them is a reason to write, so nothing waits longer than for the answer to what went before.
    """

    __slots__ = ("_alarm", "_driver", "_patience", "_since", "_size", "_timers", "_write", "frames")

    def __init__(self, driver: Driver, timers: Timers, patience: float, write: Callable[[], None]) -> None:
        self._driver = driver
        self._timers = timers
        self._patience = patience
        self._write = write
        self.frames: list[bytes] = []
        self._size = 0
        self._since = 0.0
        self._alarm: Timer | None = None

    def __len__(self) -> int:
        return len(self.frames)

    def add(self, frame: bytes) -> None:
        now = self._driver.now.mono
        if not self.frames:
            self._since = now
        self.frames.append(frame)
        self._size += len(frame)
        if self._size >= MOST or now - self._since >= SECONDS:
            self._write()
        else:
            self.watch()

    def append(self, frames: bytes) -> None:
        """As `add`, for somebody who looks at time and size."""
        self.frames.append(frames)

    def watch(self) -> None:
        """Something is held back."""
        if self._alarm is None:
            self._alarm = self._timers.after(self._patience, self._on_alarm)

    def take(self) -> list[bytes]:
        """All of them, for the caller to write or to forget."""
        frames, self.frames = self.frames, []
        self._size = 0
        return frames

    def stop(self) -> None:
        """They are written no more."""
        self.take()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _on_alarm(self, now: Now) -> None:
        self._alarm = None
        self._write()

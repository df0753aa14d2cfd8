"""Owns the queue of those who wait for messages: woken in turn, and none is woken in vain while another sleeps.

A wake carries no message: who is woken takes, and may find that somebody else was faster. Why no message is left while
somebody waits: whoever leaves, cancelled or not, while messages are there wakes the next one. Sequence of the race: A
is woken for a message; A is cancelled before it takes; A leaves, sees that there still is something, and wakes B.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from mqclient.core.slot import Wake


class Waiters:
    """Used inside entries. `there()` is true while there is something to take."""

    __slots__ = ("_closed", "_there", "_waiting")

    def __init__(self, there: Callable[[], object]) -> None:
        self._there = there
        self._waiting: deque[Wake] = deque()
        self._closed: BaseException | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self) -> Wake:
        """Stand in the queue; done at once if there is something, failed if nothing comes any more."""
        wake = Wake()
        if self._there():
            wake.complete(None)
        elif self._closed is not None:
            wake.fail(self._closed)
        else:
            self._waiting.append(wake)
        return wake

    def leave(self, wake: Wake) -> None:
        """Stand in the queue no more; if this one was woken and there is something, the next is."""
        if not wake.done:
            self._waiting.remove(wake)
        else:
            self.look()

    def look(self) -> None:
        """Wake the next one if there is something."""
        if self._waiting and self._there():
            self._waiting.popleft().complete(None)

    def arrived(self, count: int) -> None:
        """So many came: wake as many."""
        for _ in range(min(count, len(self._waiting))):
            self._waiting.popleft().complete(None)

    def all(self) -> None:
        """Wake everybody: something else changed, and each is to see it."""
        self.arrived(len(self._waiting))

    def close(self, error: BaseException) -> None:
        """Nothing comes any more: who waits gets the error, as does who would begin to."""
        self._closed = error
        waiting, self._waiting = self._waiting, deque()
        for wake in waiting:
            wake.fail(error)

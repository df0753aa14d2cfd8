"""Owns how one thread waits for one slot: on a lock, or in a poll while it reads for itself."""

from __future__ import annotations

import errno
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from threading import get_ident
from typing import Any

from mqclient.io.poller import READ, Bell


class Desk(threading.local):
    """What each thread keeps for its borrowed reading: a bell by which others end its poll, and a poll of its own."""

    def __init__(self) -> None:
        self._bell: Bell | None = None
        self._poll: Any = None
        self._fd = -1

    def own_bell(self) -> Bell:
        bell = self._bell
        if bell is None:
            bell = self._bell = Bell()
        return bell

    def wait(self, fd: int, ms: int, bell: int) -> int:
        """As a frame reader's `wait`, for connections whose reader has none: encrypted ones."""
        if fd != self._fd:
            poll = select.poll()
            poll.register(bell, READ)
            poll.register(fd, READ)
            self._poll, self._fd = poll, fd
        return 0 if any(one == fd for one, _ in self._poll.poll(ms)) else -errno.EAGAIN


class Waiter:
    """One blocking wait.

    The race of changing from poll to lock: the waiting thread writes `bell = None`, *then* looks at `woken`; the
    waking one writes `woken`, *then* looks at `bell`. If both at once, either the waiter sees `woken`, or the waker
    sees no bell and releases the lock, or both: never neither. The lock is made when it is slept on, before that look;
    who sees none need not release it.
    """

    __slots__ = ("_deliver", "_lock", "_thread", "bell", "woken")

    def __init__(self, deliver: Callable[[Callable[[Any], None], Any], None]) -> None:
        self._deliver = deliver
        self._lock: threading.Lock | None = None
        self._thread = get_ident()
        self.bell: Bell | None = None
        self.woken = False

    def on_done(self, slot: object) -> None:
        """The slot's callback, inside an entry: wake after leaving, if it was not us who read the reply."""
        if get_ident() != self._thread:
            self._deliver(self.wake, None)

    def wake(self, _: object) -> None:
        if self.woken:
            return
        self.woken = True
        bell = self.bell
        if bell is not None:
            bell.ring()
        elif self._lock is not None:
            with suppress(RuntimeError):  # two wakers saw it asleep at once
                self._lock.release()

    def sleep(self, seconds: float | None) -> None:
        """Until woken or the time is over; Ctrl-C ends it at once."""
        lock = self._lock
        if lock is None:
            lock = threading.Lock()
            lock.acquire()
            self._lock = lock
        if not self.woken:
            lock.acquire(timeout=-1 if seconds is None else min(max(seconds, 0.0), threading.TIMEOUT_MAX))

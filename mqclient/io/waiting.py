"""Owns how one thread waits for one slot: on a lock, or in a poll while it reads for itself."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable
from threading import get_ident
from typing import Any

from mqclient.io.poller import READ, Bell


class Desk(threading.local):
    """What each thread keeps for its borrowed reading: a bell by which others end its poll, and the poll itself."""

    def __init__(self) -> None:
        self.bell: Bell | None = None
        self.poll: Any = None
        self.fd = -1

    def prepare(self, fd: int) -> tuple[Any, Bell]:
        """The poll over the bell and this descriptor."""
        if self.bell is None:
            self.bell = Bell()
        if fd != self.fd:
            poll = select.poll()
            poll.register(self.bell.fd, READ)
            poll.register(fd, READ)
            self.poll, self.fd = poll, fd
        return self.poll, self.bell


class Waiter:
    """One blocking wait.

    The race of changing from poll to lock: the waiting thread writes `bell = None`, *then* looks at `woken`; the
    waking one writes `woken`, *then* looks at `bell`. If both at once, either the waiter sees `woken`, or the waker
    sees no bell and releases the lock, or both: never neither.
    """

    __slots__ = ("_deliver", "_lock", "_thread", "bell", "woken")

    def __init__(self, deliver: Callable[[Callable[[Any], None], Any], None]) -> None:
        self._deliver = deliver
        self._lock = threading.Lock()
        self._lock.acquire()
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
        else:
            self._lock.release()

    def sleep(self, seconds: float | None) -> None:
        """Until woken or the time is over; Ctrl-C ends it at once."""
        if not self.woken:
            self._lock.acquire(timeout=-1 if seconds is None else min(max(seconds, 0.0), threading.TIMEOUT_MAX))

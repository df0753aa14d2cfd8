"""Owns what the reader thread sleeps on: epoll where there is one, and the bell that wakes it."""

from __future__ import annotations

import os
import select
import selectors
from typing import Protocol

READ, WRITE = 1, 4  # as in poll and epoll


class Bell:
    """A descriptor that becomes readable when rung, by any thread, at any time.

    Closed with its last reference: a late ring must not write to a number that somebody else got meanwhile.
    """

    def __init__(self) -> None:
        self._write: int
        if hasattr(os, "eventfd"):
            self.fd = self._write = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:
            self.fd, self._write = os.pipe()
            os.set_blocking(self.fd, False)
            os.set_blocking(self._write, False)

    @property
    def ring_fd(self) -> int:
        """Eight bytes written there ring it."""
        return self._write

    def ring(self) -> None:
        try:
            os.write(self._write, b"\1\0\0\0\0\0\0\0")
        except BlockingIOError:
            return  # full: it rings already

    def silence(self) -> None:
        try:
            os.read(self.fd, 4096)
        except BlockingIOError:
            return

    def __del__(self) -> None:
        os.close(self.fd)
        if self._write != self.fd:
            os.close(self._write)


class NoBell(Bell):
    """What is left of a bell when nobody listens any more: it can be rung in vain."""

    def __init__(self) -> None:
        self.fd = -1

    def ring(self) -> None:
        """Nothing."""

    def __del__(self) -> None:
        """Nothing was opened."""


class Poller(Protocol):
    """Descriptors and what is awaited of them. `shared`: other threads may change a mask while one waits, and `fd` is
    readable when one of them is ready."""

    shared: bool
    fd: int

    def set(self, fd: int, mask: int) -> None:
        """Begin to watch, or change for what."""

    def forget(self, fd: int) -> None: ...

    def wait(self, seconds: float | None) -> list[tuple[int, int]]: ...

    def close(self) -> None: ...


class EpollPoller:
    """Linux: masks change at any time, by any thread."""

    shared = True

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.fd = self._epoll.fileno()
        self._known: set[int] = set()

    def set(self, fd: int, mask: int) -> None:
        if fd in self._known:
            self._epoll.modify(fd, mask)
        else:
            self._known.add(fd)
            self._epoll.register(fd, mask)

    def forget(self, fd: int) -> None:
        if fd in self._known:
            self._known.discard(fd)
            self._epoll.unregister(fd)

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        return self._epoll.poll(seconds, 64)

    def close(self) -> None:
        self._known.clear()
        self._epoll.close()


class SelectorPoller:
    """Anywhere else: the reader thread alone changes masks, so reading is not lent out."""

    shared = False
    fd = -1

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._known: set[int] = set()

    def set(self, fd: int, mask: int) -> None:
        events = (selectors.EVENT_READ if mask & READ else 0) | (selectors.EVENT_WRITE if mask & WRITE else 0)
        if not events:
            self.forget(fd)
        elif fd in self._known:
            self._selector.modify(fd, events)
        else:
            self._known.add(fd)
            self._selector.register(fd, events)

    def forget(self, fd: int) -> None:
        if fd in self._known:
            self._known.discard(fd)
            self._selector.unregister(fd)

    def wait(self, seconds: float | None) -> list[tuple[int, int]]:
        found = self._selector.select(seconds)
        return [
            (key.fd, (READ if events & selectors.EVENT_READ else 0) | (WRITE if events & selectors.EVENT_WRITE else 0))
            for key, events in found
        ]

    def close(self) -> None:
        self._known.clear()
        self._selector.close()


def new_poller() -> Poller:
    """The best that this system has."""
    return EpollPoller() if hasattr(select, "epoll") else SelectorPoller()

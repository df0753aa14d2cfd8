"""Owns the clients of a worker process: one for each address, kept between tasks, closed when nobody needs it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

IDLE_SECONDS: Final = 55.0
"""Spark ends workers that were idle for 60 s."""
C = TypeVar("C")


class Kept:
    """One client with those who use it now."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.users = 0
        self.timer: threading.Timer | None = None


class Clients:
    """Clients by what they were made with. They belong to one process: a fork begins without any."""

    def __init__(self, idle: float = IDLE_SECONDS) -> None:
        self._idle = idle
        self._lock = threading.Lock()
        self._kept: dict[Hashable, Kept] = {}

    @contextmanager
    def borrow(self, key: Hashable, make: Callable[[], C]) -> Iterator[C]:
        """The client of this key, made if there is none; after the last user it stays for a while."""
        kept = self._take(key, make)
        try:
            yield kept.client
        finally:
            self._give_back(key, kept)

    def close(self) -> None:
        with self._lock:
            kept, self._kept = list(self._kept.values()), {}
        for one in kept:
            if one.timer is not None:
                one.timer.cancel()
            one.client.close()

    def forget(self) -> None:
        """In a forked child: what was made by the parent is the parent's; its lock may be held for ever."""
        self._lock = threading.Lock()
        self._kept = {}

    def __len__(self) -> int:
        return len(self._kept)

    def _take(self, key: Hashable, make: Callable[[], Any]) -> Kept:
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                kept = self._kept[key] = Kept(make())
            kept.users += 1
            if kept.timer is not None:
                kept.timer.cancel()
                kept.timer = None
            return kept

    def _give_back(self, key: Hashable, kept: Kept) -> None:
        if sys.is_finalizing():
            return  # a reader was left suspended: no thread starts any more, and `start` would wait for it for ever
        with self._lock:
            kept.users -= 1
            if kept.users == 0 and self._kept.get(key) is kept:
                kept.timer = threading.Timer(self._idle, self._expire, (key, kept))
                kept.timer.daemon = True
                kept.timer.start()

    def _expire(self, key: Hashable, kept: Kept) -> None:
        with self._lock:
            # Somebody may have taken it between the timer's end and this lock.
            if kept.users or self._kept.get(key) is not kept:
                return
            del self._kept[key]
        kept.client.close()


CLIENTS: Final = Clients()
os.register_at_fork(after_in_child=CLIENTS.forget)

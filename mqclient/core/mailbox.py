"""Owns the rules of the hand-over to the user: marks, waiters and clearing; the native part does the moving.

Waiters carry no message, only a wake. The face takes without any await after it:

    message = self._take()
    while message is None:
        with self._inbox.waiting() as wake:
            await self._driver.wait(wake, deadline)
            message = self._take()

Why no message is lost: it stays in the mailbox until somebody takes it; who waits is `core.waiters`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from mqclient.core.driver import Driver
from mqclient.core.slot import Wake
from mqclient.core.waiters import Waiters


class Box(Protocol):
    """The native part, handed in: `handover.Mailbox`."""

    def __len__(self) -> int: ...

    def put_many(self, messages: list[Any], source: Any, /) -> int: ...

    def put_sealed(self, sealed: Any, count: int, source: Any, /) -> int: ...

    def take(self) -> Any: ...

    def take_many(self, limit: int, /) -> list[Any]: ...

    def drain(self, limit: int, /) -> list[Any]: ...

    def collect(self, source: Any, /) -> int: ...

    def clear(self, source: Any = None, /) -> int: ...


class Mailbox:
    """Messages on their way from an engine to whoever receives.

    `make_box(on_half, opener, wake)` makes the native part. `on_taken(source, count)` is told inside an entry, in
    portions of half a window. `on_low()` is told inside an entry when the mailbox, once at or above `high`, is down to
    `low`; messages are looked at when they are told, so let `half` of the sources be at most `high - low`.
    `on_wait()` is told inside an entry when somebody begins to wait.
    """

    __slots__ = ("_driver", "_on_low", "_on_taken", "_on_wait", "_waiters", "box", "full", "high", "low",
                 "take", "take_many")  # fmt: skip

    def __init__(
        self,
        driver: Driver,
        make_box: Callable[..., Box],
        *,
        on_taken: Callable[[Any, int], None],
        opener: Callable[[Any, Any], list[Any]] | None = None,
        high: int = 0,
        low: int = 0,
        on_low: Callable[[], None] | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> None:
        self._driver = driver
        self._on_taken = on_taken
        self._on_low = on_low
        self._on_wait = on_wait
        self.high = high
        self.low = low
        self.full = False
        """At or above `high` and not yet down to `low`: do not fetch."""
        self.box = make_box(self._half, opener, self._wake)
        self._waiters = Waiters(self.box.__len__)
        self.take = self.box.take
        """The next message or None; called by the face, outside of entries."""
        self.take_many = self.box.take_many

    def __len__(self) -> int:
        return len(self.box)

    @property
    def waiters(self) -> int:
        return len(self._waiters)

    # ---- the engine's side, inside entries

    def put_many(self, messages: list[Any], source: Any) -> None:
        self._arrived(self.box.put_many(messages, source))

    def put_sealed(self, sealed: Any, count: int, source: Any) -> None:
        """What the opener will turn into at most `count` messages, on the taking side."""
        self._arrived(self.box.put_sealed(sealed, count, source))

    def clear(self, source: Any = None) -> int:
        """Drop what waits, of one source or all; the source's untold takes are for the engine to collect."""
        dropped = self.box.clear(source)
        self._look_low()
        return dropped

    def close(self, error: BaseException) -> None:
        """Nothing comes any more: who waits gets the error, as does who would begin to."""
        self._waiters.close(error)

    def _arrived(self, count: int) -> None:
        if self.high and count >= self.high:
            self.full = True
        self._waiters.arrived(count)

    def _look_low(self) -> None:
        if self.full and len(self.box) <= self.low:
            self.full = False
            if self._on_low is not None:
                self._on_low()

    # ---- the face's side, outside of entries

    @contextmanager
    def waiting(self) -> Iterator[Wake]:
        """Stand in the queue; the wake is done at once if there are messages."""
        with self._driver.enter():
            wake = self.join()
        try:
            yield wake
        finally:
            with self._driver.enter():
                self.leave(wake)

    def join(self) -> Wake:
        """Stand in the queue, inside an entry; whoever does takes, or leaves."""
        wake = self._waiters.join()
        if not wake.done and self._on_wait is not None:
            self._on_wait()
        return wake

    def leave(self, wake: Wake) -> None:
        """Stand in the queue no more; if there are messages and this one was woken, the next is."""
        self._waiters.leave(wake)

    def _wake(self) -> None:
        """Told by the native part when a thread that opened a sealed put left messages that another one missed."""
        with self._driver.enter():
            self._waiters.look()

    def _half(self, source: Any, taken: int) -> None:
        """Told by the native part, on the thread that takes."""
        with self._driver.enter():
            self._on_taken(source, taken)
            self._look_low()

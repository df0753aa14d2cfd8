"""The hand-over of messages to the user, and the futures of messages sent, in plain Python."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from mqclient.errors import DeadlineError

if TYPE_CHECKING:
    import asyncio
    from contextvars import Context

    from mqclient._native.handover import Batch

_OPEN: Final = object()
"""In place of what is sealed: the messages are there."""


class Source:
    """Where messages of a mailbox came from: one consumer in one epoch, with the count of what was taken of it."""

    __slots__ = ("_clears", "consumer", "epoch", "half", "last", "untold", "waiting")

    def __init__(self, consumer: Any, epoch: int, half: int) -> None:
        self.consumer = consumer
        self.epoch = epoch
        self.half = half
        self.waiting = 0
        self.untold = 0
        self.last: Any = None
        self._clears = 0


class _Put:
    """One put: its messages from `cursor` on, or what is sealed and announced to hold `count`."""

    __slots__ = ("count", "cursor", "messages", "sealed", "source")

    def __init__(self, source: Source, messages: list[Any], sealed: Any, count: int) -> None:
        self.source = source
        self.messages = messages
        self.sealed = sealed
        self.cursor = 0
        self.count = count
        """Messages left."""


class Mailbox:
    """Messages that wait for the user, in the order in which they were put."""

    __slots__ = (
        "_clears",
        "_count",
        "_failure",
        "_lock",
        "_missed",
        "_on_half",
        "_opener",
        "_opening",
        "_puts",
        "_wake",
    )

    def __init__(
        self,
        on_half: Callable[[Source, int], object] | None = None,
        opener: Callable[[Any, Source], list[Any]] | None = None,
        wake: Callable[[], object] | None = None,
    ) -> None:
        self._on_half = on_half
        self._opener = opener
        self._wake = wake
        self._lock = threading.Lock()
        self._puts: deque[_Put] = deque()
        self._count = 0
        self._clears = 0
        self._opening = 0
        """Threads that are opening a sealed put just now."""
        self._missed = False
        """Somebody found nothing while another was opening."""
        self._failure: BaseException | None = None

    def __len__(self) -> int:
        return self._count

    def put_many(self, messages: list[Any], source: Source, /) -> int:
        with self._lock:
            if messages:
                self._append(_Put(source, messages, _OPEN, len(messages)))
            return self._count

    def put_sealed(self, sealed: Any, count: int, source: Source, /) -> int:
        if self._opener is None:
            raise ValueError("this mailbox has no opener")
        if count < 0:
            raise ValueError(f"a put cannot announce {count} messages")
        with self._lock:
            self._append(_Put(source, [], sealed, count))
            return self._count

    def take(self) -> Any:
        with self._lock:
            puts = self._puts
            if not puts or puts[0].sealed is not _OPEN or self._failure is not None:
                put = None
            else:
                put, message = puts[0], self._next()
        if put is None:
            taken = self.take_many(1)
            return taken[0] if taken else None
        if put.source.untold >= put.source.half:
            self._tell(put.source)
        return message

    def take_many(self, limit: int, /) -> list[Any]:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        taken: list[Any] = []
        sources: dict[Source, None] = {}
        try:
            self._take_into(taken, limit, sources)
        except BaseException:
            if not taken:
                raise
            # Nothing taken gets lost: the sealed put is back at the front, and its opener raises at the next call.
        finally:
            for source in sources:
                self._tell(source)
        return taken

    def drain(self, limit: int, /) -> list[Any]:
        taken: list[Any] = []
        with self._lock:
            self._gather(taken, limit, {})
        return taken

    def collect(self, source: Source, /) -> int:
        with self._lock:
            untold, source.untold = source.untold, 0
            return untold

    def clear(self, source: Source | None = None, /) -> int:
        with self._lock:
            before = self._count
            kept = [put for put in self._puts if source is not None and put.source is not source]
            gone = [put for put in self._puts if source is None or put.source is source]
            for put in gone:
                self._move(put, -put.count)
            self._puts = deque(kept)
            if source is None:
                self._clears += 1
            else:
                source._clears += 1
            return before - self._count

    def _append(self, put: _Put) -> None:
        self._puts.append(put)
        self._move(put, put.count)

    def _move(self, put: _Put, count: int) -> None:
        put.source.waiting += count
        self._count += count

    def _next(self) -> Any:
        """Take one message of the first put, which is open."""
        put = self._puts[0]
        message = put.messages[put.cursor]
        put.messages[put.cursor] = None  # the mailbox keeps nothing alive that was taken
        put.cursor += 1
        put.count -= 1
        if not put.count:
            self._puts.popleft()
        self._count -= 1
        source = put.source
        source.waiting -= 1
        source.untold += 1
        source.last = message
        return message

    def _take_into(self, taken: list[Any], limit: int, sources: dict[Source, None]) -> None:
        while True:
            with self._lock:
                self._gather(taken, limit, sources)
                if len(taken) >= limit:
                    return
                if not self._puts:
                    self._missed = self._missed or (self._opening > 0 and not taken)
                    return
                sealed = self._puts.popleft()
                self._move(sealed, -sealed.count)
                self._opening += 1
                clears = self._clears, sealed.source._clears
            sources[sealed.source] = None
            self._open(sealed, clears)

    def _gather(self, taken: list[Any], limit: int, sources: dict[Source, None]) -> None:
        """Append messages up to the limit, or up to what is sealed."""
        while len(taken) < limit and self._puts and self._puts[0].sealed is _OPEN:
            put = self._puts[0]
            count = min(limit - len(taken), put.count)
            start, put.cursor = put.cursor, put.cursor + count
            taken += put.messages[start : put.cursor]
            put.messages[start : put.cursor] = [None] * count
            put.count -= count
            if not put.count:
                self._puts.popleft()
            self._move(put, -count)
            put.source.untold += count
            put.source.last = taken[-1]
            sources[put.source] = None

    def _open(self, put: _Put, clears: tuple[int, int]) -> None:
        """Turn a claimed put into messages at the front, without the lock.

        Race: A opens, the engine clears, A comes back. What A opened was dropped by that clear, but could not be
        counted by it; it counts as taken, so that its permits find their way back. Race: A opens, B finds nothing and
        goes to wait, A puts back more than it takes. So A wakes.
        """
        assert self._opener is not None
        failed = True
        try:
            put.messages = self._opener(put.sealed, put.source)
            put.sealed, put.count = _OPEN, len(put.messages)
            failed = False
        finally:
            with self._lock:
                self._opening -= 1
                if clears != (self._clears, put.source._clears):
                    put.source.untold += put.count
                elif put.count or failed:
                    self._puts.appendleft(put)
                    self._move(put, put.count)
                missed, self._missed = self._missed, False
            if missed and self._wake is not None:
                self._wake()

    def _tell(self, source: Source) -> None:
        """The count starts anew *before* it is told: telling enters the engine, which may look here."""
        if self._on_half is None:
            return
        with self._lock:
            if not 0 < source.half <= source.untold:
                return
            untold, source.untold = source.untold, 0
        try:
            self._on_half(source, untold)
        except BaseException as failure:
            self._failure = failure  # the messages in hand must not get lost; the next take raises it


@final
class SendFuture:
    """The outcome of one message that was submitted: its batch and its index in it, no state of its own."""

    __slots__ = ("batch", "index")

    def __init__(self, batch: Batch, index: int) -> None:
        self.batch: Any = batch
        self.index = index

    def done(self) -> bool:
        return bool(self.batch.settled > self.index)

    def result(self, timeout: float | None = None) -> Any:
        outcome = self._outcome(timeout)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def exception(self, timeout: float | None = None) -> BaseException | None:
        outcome = self._outcome(timeout)
        return outcome if isinstance(outcome, BaseException) else None

    def add_done_callback(self, callback: Callable[[SendFuture], object], /) -> None:
        self.batch.on_done(callback, self.index)

    def __eq__(self, other: object, /) -> bool:
        if not isinstance(other, SendFuture):
            return NotImplemented
        return self.batch is other.batch and self.index == other.index

    def __hash__(self) -> int:
        return hash((id(self.batch), self.index))

    def _outcome(self, timeout: float | None) -> Any:
        if self.batch.settled <= self.index and not self.batch.wait(timeout, self.index):
            raise DeadlineError(f"the outcome was not there within {timeout} s")
        return self.batch.outcome(self.index)


@final
class SendWait:
    """What a task of asyncio awaits for the outcome of a message: a future to it; to us, one wake-up for a batch."""

    __slots__ = ("_asyncio_future_blocking", "_callback", "_cancelled", "_context", "_loop", "batch", "index")

    awaitable = True

    def __init__(self, batch: Batch, index: int, loop: asyncio.AbstractEventLoop) -> None:
        self.batch: Any = batch
        self.index = index
        self._loop = loop
        self._callback: Callable[[SendWait], object] | None = None
        self._context: Context | None = None
        self._cancelled = False
        self._asyncio_future_blocking = False

    def __await__(self) -> SendWait:
        return self

    def __iter__(self) -> SendWait:
        return self

    def __next__(self) -> SendWait:
        if self.batch.done:
            raise StopIteration(self.result())
        self._asyncio_future_blocking = True
        return self

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    def done(self) -> bool:
        return self._cancelled or bool(self.batch.done)

    def cancelled(self) -> bool:
        return self._cancelled

    def result(self) -> Any:
        if self._cancelled:
            raise _cancelled_error()
        outcome = self.batch.outcome(self.index)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def cancel(self, msg: Any = None) -> bool:
        """The task's waiting ends, not the message."""
        if self.done():
            return False
        self._cancelled = True
        self._loop.call_soon(_wake_all, [self])
        return True

    def add_done_callback(self, callback: Callable[[SendWait], object], *, context: Context | None = None) -> None:
        if self._callback is not None:
            raise RuntimeError("awaited by two tasks")
        if self.done():
            self._loop.call_soon(callback, self, context=context)
        else:
            self._callback, self._context = callback, context

    def remove_done_callback(self, callback: Callable[[SendWait], object]) -> int:
        if self._callback is None or self._callback != callback:
            return 0
        self._callback = self._context = None
        return 1


def wake(waits: list[SendWait], /) -> None:
    """All of one loop, in its next turn."""
    waits[0]._loop.call_soon(_wake_all, waits)


def _wake_all(waits: list[SendWait]) -> None:
    for place, wait in enumerate(waits):
        callback, context = wait._callback, wait._context
        if callback is None:
            continue
        wait._callback = wait._context = None
        try:
            if context is None:
                callback(wait)
            else:
                context.run(callback, wait)
        except BaseException:  # Ctrl-C: the others are woken all the same
            if place + 1 < len(waits):
                wait._loop.call_soon(_wake_all, waits[place + 1 :])
            raise


def _cancelled_error() -> BaseException:
    from asyncio import CancelledError  # whoever uses the sync client does not load asyncio for it

    return CancelledError()

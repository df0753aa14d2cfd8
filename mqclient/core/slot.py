"""Owns the completion cell: pending, then a value or an error; callbacks, no lock.

Engines complete slots, and ask for callbacks with `then`, inside entries. A thread that is about to block is outside:
it puts its waiter in with `watch`, *then* looks at `done`; the engine writes the outcome, *then* takes the callbacks.
If both happen at once, the thread sees the outcome, or the engine the waiter, or both: never neither. Callbacks are
taken one by one from a list, which is atomic, so none is run twice.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from mqclient.errors import MQError

T = TypeVar("T")


class Slot(Generic[T]):
    """One request's outcome. Callbacks run where the slot is completed: inside the engine.

    >>> slot: Slot[int] = Slot()
    >>> slot.done
    False
    >>> slot.complete(7)
    >>> slot.result()
    7
    """

    __slots__ = ("_callbacks", "_value", "done", "error")

    awaitable = False
    """True in what a task may await by itself, without the driver's help."""
    expects_reply = True
    """False in `Wake`: a driver then knows that the answer is not on its way."""

    def __init__(self) -> None:
        # Plain attributes: a waiting send looks at `done` five times.
        self.done = False
        """Turns true once, after the outcome was written; only `complete` and `fail` write it."""
        self.error: BaseException | None = None
        self._value: Any = None
        self._callbacks: list[Callable[[Slot[T]], None]] = []

    def complete(self, value: T) -> None:
        """Pending becomes done; a second completion is a late one and changes nothing."""
        if not self.done:
            self._value = value
            self.done = True
            callbacks = self._callbacks
            while callbacks:
                callbacks.pop(0)(self)

    def fail(self, error: BaseException) -> None:
        if not self.done:
            self.error = error
            self.done = True
            if self._callbacks:
                self._tell()

    # What a table of requests in flight calls; see core/inflight.py.
    on_reply = complete
    on_failure = fail

    def drop(self, callback: Callable[[Slot[T]], None] | None = None) -> None:
        """This one, or nobody, waits any more; the request itself still ends at its deadline."""
        if callback is None:
            self._callbacks.clear()
        elif callback in self._callbacks:
            with suppress(ValueError):  # taken in this very moment
                self._callbacks.remove(callback)

    def then(self, callback: Callable[[Slot[T]], None]) -> None:
        """Call back when done, at once if it is; callbacks run in the order in which they were given."""
        self._callbacks.append(callback)
        if self.done:
            self._tell()

    def watch(self, callback: Callable[[Slot[T]], None]) -> None:
        """For threads outside of entries: call back if it is not done yet. Look at `done` afterwards."""
        self._callbacks.append(callback)

    def result(self) -> T:
        """The value, or the error raised; asking a pending slot is a bug of the caller."""
        if self.error is not None:
            raise self.error
        if not self.done:
            raise MQError("the slot is still pending")
        value: T = self._value
        return value

    def _tell(self) -> None:
        callbacks = self._callbacks
        while callbacks:
            callbacks.pop(0)(self)


class Wake(Slot[None]):
    """A slot that no reply completes: somebody waits until there is something to do."""

    __slots__ = ()
    expects_reply = False


def completed(value: T) -> Slot[T]:
    """A slot that is done already."""
    slot: Slot[T] = Slot()
    slot.complete(value)
    return slot


def failed(error: BaseException) -> Slot[Any]:
    """A slot that failed already."""
    slot: Slot[Any] = Slot()
    slot.fail(error)
    return slot

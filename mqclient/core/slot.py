"""Owns the completion cell: pending, then a value or an error; callbacks, no lock.

It needs no lock of its own because both sides run inside entries: engines complete slots there, and a driver that is
about to block enters once more to look at the state and install its waiter. Looking at `done` needs no entry: it turns
true once, after the outcome was written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

from mqclient.errors import MQError

T = TypeVar("T")

_PENDING = object()


class Slot(Generic[T]):
    """One request's outcome. Callbacks run where the slot is completed: inside the engine.

    >>> slot: Slot[int] = Slot()
    >>> slot.done
    False
    >>> slot.complete(7)
    >>> slot.result()
    7
    """

    __slots__ = ("_callback", "_error", "_value")

    expects_reply = True
    """False in `Wake`: a driver then knows that the answer is not on its way."""

    def __init__(self) -> None:
        self._value: Any = _PENDING
        self._error: BaseException | None = None
        self._callback: Callable[[Slot[T]], None] | list[Callable[[Slot[T]], None]] | None = None

    @property
    def done(self) -> bool:
        return self._value is not _PENDING

    @property
    def error(self) -> BaseException | None:
        return self._error

    def complete(self, value: T) -> None:
        """Pending becomes done; a second completion is a late one and changes nothing."""
        if self._value is _PENDING:
            self._value = value
            if self._callback is not None:
                self._tell()

    def fail(self, error: BaseException) -> None:
        if self._value is _PENDING:
            self._error = error
            self._value = None
            if self._callback is not None:
                self._tell()

    def drop(self, callback: Callable[[Slot[T]], None] | None = None) -> None:
        """This one, or nobody, waits any more; the request itself still ends at its deadline."""
        if callback is None or self._callback == callback:
            self._callback = None
        elif isinstance(self._callback, list) and callback in self._callback:
            self._callback.remove(callback)

    def then(self, callback: Callable[[Slot[T]], None]) -> None:
        """Call back when done, at once if it is; callbacks run in the order in which they were given."""
        if self._value is not _PENDING:
            callback(self)
        elif self._callback is None:
            self._callback = callback
        elif isinstance(self._callback, list):
            self._callback.append(callback)
        else:
            self._callback = [self._callback, callback]

    def result(self) -> T:
        """The value, or the error raised; asking a pending slot is a bug of the caller."""
        if self._error is not None:
            raise self._error
        if self._value is _PENDING:
            raise MQError("the slot is still pending")
        return cast(T, self._value)

    def _tell(self) -> None:
        callback, self._callback = self._callback, None
        if isinstance(callback, list):
            for one in callback:
                one(self)
        elif callback is not None:
            callback(self)


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

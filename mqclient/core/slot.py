"""Owns the completion cell: pending, then a value, an error, or dropped; one callback, no lock.

The order that makes it safe without a lock. Whoever waits installs the callback, *then* looks at the state again;
whoever completes writes the state, *then* reads the callback. If both happen at once, at least one of them sees the
other; `_taken` makes sure that the callback runs once.
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

    def __init__(self) -> None:
        self._value: Any = _PENDING
        self._error: BaseException | None = None
        self._callback: Callable[[Slot[T]], None] | None = None

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
            self._tell()

    def fail(self, error: BaseException) -> None:
        if self._value is _PENDING:
            self._error = error
            self._value = None
            self._tell()

    def drop(self) -> None:
        """Nobody waits any more: whatever comes is forgotten, the request itself still ends at its deadline."""
        self._callback = None

    def then(self, callback: Callable[[Slot[T]], None]) -> None:
        """Call back when done, at once if it is; one callback a slot."""
        self._callback = callback
        if self._value is not _PENDING:
            self._tell()

    def result(self) -> T:
        """The value, or the error raised; asking a pending slot is a bug of the caller."""
        if self._error is not None:
            raise self._error
        if self._value is _PENDING:
            raise MQError("the slot is still pending")
        return cast(T, self._value)

    def _tell(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback(self)


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

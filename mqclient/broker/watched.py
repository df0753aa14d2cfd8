"""Owns tables that tell of their changes, so that what changed can be kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Watched(dict[K, V]):
    """A dict that tells which keys were set or removed. `touch` tells of one whose value changed in itself.

    >>> told = []
    >>> table = Watched(a=1)
    >>> table.tell = told.append
    >>> table["b"] = 2
    >>> table.pop("a"), table.pop("a", None), table.setdefault("b", 9)
    (1, None, 2)
    >>> told
    ['b', 'a', 'a', 'b']
    """

    __slots__ = ("tell",)

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.tell: Callable[[K], object] = _nobody

    def touch(self, key: K) -> None:
        self.tell(key)

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.tell(key)

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        self.tell(key)

    def pop(self, key: K, *default: Any) -> Any:
        found = super().pop(key, *default)
        self.tell(key)
        return found

    def setdefault(self, key: K, default: V) -> V:
        found = super().setdefault(key, default)
        self.tell(key)
        return found

    def update(self, *given: Any, **more: Any) -> None:
        for key, value in dict(*given, **more).items():
            self[key] = value

    def clear(self) -> None:
        for key in list(self):
            del self[key]


def _nobody(key: Any) -> None:
    """Nothing is kept."""

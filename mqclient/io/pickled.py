"""Owns how faces travel to other processes: as recipes, by which they are made anew at their first use there."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final, TypeVar

T = TypeVar("T", bound="Lazily")

_LOCK: Final = threading.RLock()
"""Two threads may use what just arrived at the same time: it is made once."""
_MADE: Final = ("_driver", "_engine")


class Lazily:
    """A face that a pickle brought has no engine until it is used; `_make` gives it one by its recipe."""

    _recipe: tuple[Any, ...] | None = None

    def _make(self, *recipe: Any) -> None:
        raise NotImplementedError

    def __reduce__(self) -> Any:
        if self._recipe is None:
            raise TypeError(f"a {type(self).__name__} cannot be pickled: make another one in the other process")
        return revived, (type(self), self._recipe)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Asked for what is not there: before the first use of what was pickled."""
            if name not in _MADE or self._recipe is None:
                raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
            with _LOCK:
                if "_engine" not in self.__dict__:
                    self._make(*self._recipe)
            return self.__dict__[name]


def revived(kind: type[T], recipe: tuple[Any, ...]) -> T:
    """What a pickle calls."""
    face = kind.__new__(kind)
    face._recipe = recipe
    return face

"""Owns the kind of values of consumers and producers, for type checkers: what the schema says, else anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)
    U = TypeVar("U")
else:
    from typing import TypeVar

    T = TypeVar("T")
    U = TypeVar("U")

"""Owns the definition text of a dataclass as Java's client writes it for a class of the same shape, to the byte."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from mqclient.errors import ConfigError

_NAMES: Mapping[Any, Any] = {
    str: "string",
    bool: "boolean",
    int: "long",
    float: "double",
    bytes: {"type": "bytes", "java-class": "[B"},
}


def java_text(cls: type) -> str:
    """Fields stand in the order of their names, and whatever may be None has that as its default.

    >>> from dataclasses import make_dataclass
    >>> java_text(make_dataclass("Order", [("shop", str | None), ("number", int)]))
    '{"type":"record","name":"Order","fields":[{"name":"number","type":"long"},{"name":"shop","type":["null","string"],"default":null}]}'
    """
    return json.dumps(_Writer().form(cls, ""), separators=(",", ":"))


class _Writer:
    """Knows which types were written before: they are named from then on."""

    def __init__(self) -> None:
        self._seen: dict[type, str] = {}

    def form(self, hint: Any, space: str) -> Any:
        """`space`: the namespace that is in force here, which is not said again."""
        origin, given = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return given[1]
        if hint in _NAMES:
            return _NAMES[hint]
        if origin in (Union, types.UnionType):
            found = [self.form(one, space) for one in given if one is not type(None)]
            return ["null", *found] if type(None) in given else found
        if origin is list:
            return {"type": "array", "items": self.form(given[0], space), "java-class": "java.util.List"}
        if origin is dict and given[0] is str:
            return {"type": "map", "values": self.form(given[1], space)}
        if isinstance(hint, type) and (is_dataclass(hint) or issubclass(hint, Enum)):
            return self._named(hint, space)
        raise ConfigError(
            f"{hint!r} has no form in Avro: str, bytes, bool, int, float, Enum, list, dict or a dataclass"
        )

    def _named(self, cls: type, space: str) -> Any:
        own = self._seen.get(cls)
        if own is not None:
            return cls.__name__ if own == space else f"{own}.{cls.__name__}"
        own = self._seen[cls] = str(getattr(cls, "__namespace__", space))
        found: dict[str, Any] = {"type": "record" if is_dataclass(cls) else "enum", "name": cls.__name__}
        if own != space:
            found["namespace"] = own
        if issubclass(cls, Enum):
            return {**found, "symbols": [member.name for member in cls]}
        hints = get_type_hints(cls, include_extras=True)
        members = sorted(fields(cls), key=lambda one: one.name)  # type: ignore[arg-type]
        return {**found, "fields": [self._member(one, hints[one.name], own) for one in members]}

    def _member(self, one: Any, hint: Any, space: str) -> dict[str, Any]:
        found = {"name": one.name, "type": self.form(hint, space)}
        if isinstance(found["type"], list) and found["type"][0] == "null":
            found["default"] = None
        elif one.default is not MISSING:
            found["default"] = one.default.name if isinstance(one.default, Enum) else one.default
        return found

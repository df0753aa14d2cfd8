"""Owns JSON and Avro records declared as dataclasses: their definition text, values there and back."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from mqclient.core.json import dumps, loads
from mqclient.errors import ConfigError, ProtocolError
from mqclient.pulsar.schema.avro import Avro as Codec
from mqclient.pulsar.schema.base import Schema, SchemaInfo, SchemaType
from mqclient.pulsar.schema.like_java import java_text

T = TypeVar("T")

Int = Annotated[int, "int"]
"""32 bits; a plain `int` has 64."""
Float = Annotated[float, "float"]
"""32 bits; a plain `float` has 64."""

_NAMES: Mapping[Any, str] = {
    str: "string", bytes: "bytes", bool: "boolean", int: "long", float: "double", type(None): "null"
}  # fmt: skip


def definition_of(cls: type, *, defaults: bool = False) -> dict[str, Any]:
    """The Avro definition of a dataclass: fields in their order, `X | None` as a union that begins with null.

    `defaults` writes those of fields that have one, which lets a topic's definition change and stay readable both ways.
    """
    return _record(cls, set(), defaults)


def _record(cls: type, seen: set[str], defaults: bool) -> dict[str, Any]:
    if not is_dataclass(cls):
        raise ConfigError(f"{cls!r} is no dataclass: a record is declared as one")
    found: dict[str, Any] = {"type": "record", "name": cls.__name__}
    space = getattr(cls, "__namespace__", None)
    if space:
        found["namespace"] = space
    seen.add(cls.__name__)
    hints = get_type_hints(cls, include_extras=True)
    found["fields"] = [_member(one, hints[one.name], seen, defaults) for one in fields(cls)]
    return found


def _member(one: Any, hint: Any, seen: set[str], defaults: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"name": one.name}
    if defaults and one.default is not MISSING:
        found["default"] = one.default.name if isinstance(one.default, Enum) else one.default
    found["type"] = _type(hint, seen, defaults)
    return found


def _type(hint: Any, seen: set[str], defaults: bool) -> Any:
    origin, given = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return given[1]
    if hint in _NAMES:
        return _NAMES[hint]
    if origin in (Union, types.UnionType):
        branches = [_type(one, seen, defaults) for one in given if one is not type(None)]
        return ["null", *branches] if type(None) in given else branches
    if origin is list:
        return {"type": "array", "items": _type(given[0], seen, defaults)}
    if origin is dict and given[0] is str:
        return {"type": "map", "values": _type(given[1], seen, defaults)}
    if not isinstance(hint, type):
        raise ConfigError(
            f"{hint!r} has no form in Avro: str, bytes, bool, int, float, Enum, list, dict or a dataclass"
        )
    if hint.__name__ in seen:
        return hint.__name__
    if issubclass(hint, Enum):
        seen.add(hint.__name__)
        return {"type": "enum", "name": hint.__name__, "symbols": [member.name for member in hint]}
    return _record(hint, seen, defaults)


def to_plain(value: Any) -> Any:
    """A record as dicts, lists and symbols."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in value.items()}
    return value


def from_plain(hint: Any, value: Any) -> Any:
    """Back again. Unknown members are left out, missing ones have their default, or are None."""
    if value is None:
        return None
    origin, given = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return from_plain(given[0], value)
    if origin in (Union, types.UnionType):
        wanted = [one for one in given if one is not type(None)]
        return from_plain(wanted[0], value) if len(wanted) == 1 else value
    if origin is list:
        return [from_plain(given[0], item) for item in value]
    if origin is dict:
        return {key: from_plain(given[1], item) for key, item in value.items()}
    if is_dataclass(hint):
        return _made(hint, value)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint[value] if value in hint.__members__ else hint(value)
    return value.encode() if hint is bytes and isinstance(value, str) else value


@lru_cache(maxsize=256)
def _hints(cls: type) -> dict[str, tuple[Any, bool]]:
    """Of each member its type, and whether it has a default."""
    hints = get_type_hints(cls, include_extras=True)
    found: dict[str, tuple[Any, bool]] = {}
    for one in fields(cls):
        found[one.name] = (hints[one.name], one.default is not MISSING or one.default_factory is not MISSING)
    return found


def _made(cls: Any, value: Mapping[str, Any]) -> Any:
    if not isinstance(value, Mapping):
        raise TypeError(f"an object is needed, not {type(value).__name__}")
    given: dict[str, Any] = {}
    for name, (hint, has_default) in _hints(cls).items():
        if name in value:
            given[name] = from_plain(hint, value[name])
        elif not has_default:
            given[name] = None
    return cls(**given)


class _Records(Schema[T]):
    """A dataclass; or dicts, by a definition that is given (a dict or its text, kept to the byte).

    `like`: whose text a dataclass's definition has: "python", the official client's, or "java", that of Java's client
    for a class of the same shape, so that topics which both write to keep one version.
    """

    kind: SchemaType

    def __init__(
        self,
        record: type[T] | None = None,
        *,
        definition: Mapping[str, Any] | str | None = None,
        defaults: bool = False,
        like: str = "python",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        if like not in ("python", "java"):
            raise ConfigError(f"like={like!r}: whose text the definition has: 'python' or 'java'")
        if record is None and definition is None:
            raise ConfigError("a schema of records needs a dataclass or a definition")
        if definition is None:
            assert record is not None
            definition = java_text(record) if like == "java" else definition_of(record, defaults=defaults)
        text = definition if isinstance(definition, str) else json.dumps(definition, indent=1)
        self._record = record
        self._codec = Codec.parse(text)
        self.info = SchemaInfo(self.kind.name, self.kind, text.encode(), dict(properties or {}))

    def _plain(self, value: T) -> Any:
        if self._record is not None and not isinstance(value, self._record):
            raise TypeError(f"a {self._record.__name__} is needed, not {type(value).__name__}")
        return to_plain(value)

    def _back(self, plain: Any) -> T:
        try:
            value: T = plain if self._record is None else from_plain(self._record, plain)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            raise ProtocolError(f"this body is no {self._record}: {error}") from error
        return value


class Json(_Records[T]):
    """Records as JSON text."""

    kind = SchemaType.JSON

    def encode(self, value: T) -> bytes:
        return dumps(_without_bytes(self._plain(value)))

    def decode(self, body: bytes, writer: SchemaInfo | None = None) -> T:
        try:
            plain = loads(body)
        except ValueError as error:
            raise ProtocolError(f"this body is no JSON: {error}") from error
        return self._back(plain)


class Avro(_Records[T]):
    """Records in Avro's binary form; what was written with another version is read with that one's definition."""

    kind = SchemaType.AVRO
    versioned = True

    def encode(self, value: T) -> bytes:
        return self._codec.write(self._plain(value))

    def decode(self, body: bytes, writer: SchemaInfo | None = None) -> T:
        codec = self._codec if writer is None or writer.data == self.info.data else _codec(writer.data)
        return self._back(codec.read(body))


@lru_cache(maxsize=256)
def _codec(definition: bytes) -> Codec:
    return Codec.parse(definition)


def _without_bytes(value: Any) -> Any:
    """JSON has no bytes: they stand there as text, as the official clients write them."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list):
        return [_without_bytes(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_bytes(item) for key, item in value.items()}
    return value

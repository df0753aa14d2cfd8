"""Owns the binary form of Avro: values by a definition, written and read, with every length checked."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from mqclient.core.json import loads
from mqclient.errors import ConfigError, ProtocolError

Definition = Any
"""A definition as JSON has it: a name, a union's list, or an object with "type"."""

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
MAX_DEPTH = 64
MAX_ITEMS = 1 << 20
_NAMED = ("record", "enum", "fixed", "error")


class Avro:
    """One definition, its names resolved."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self._names: dict[str, Mapping[str, Any]] = {}
        self._collect(definition, "")

    @classmethod
    def parse(cls, text: bytes | str) -> Avro:
        try:
            return cls(loads(text))
        except ValueError as error:
            raise ProtocolError(f"this Avro definition is no JSON: {error}") from error

    def write(self, value: Any) -> bytes:
        """TypeError for a value that the definition does not allow, with the way to it."""
        out = bytearray()
        self._write(out, self.definition, value, "")
        return bytes(out)

    def read(self, data: bytes) -> Any:
        """Records as dicts, enums as their symbols; ProtocolError for bytes that are none of it."""
        source = _Source(data)
        value = self._read(source, self.definition, 0)
        if source.at != len(data):
            raise ProtocolError(f"Avro: {len(data) - source.at} bytes are left over")
        return value

    # ---- names

    def _collect(self, definition: Definition, space: str) -> None:
        if isinstance(definition, list):
            for branch in definition:
                self._collect(branch, space)
        elif isinstance(definition, dict):
            kind = definition.get("type")
            if kind in _NAMED:
                space = definition.get("namespace", space)
                self._names[definition["name"]] = self._names[_full(definition["name"], space)] = definition
            for part in ("items", "values"):
                if part in definition:
                    self._collect(definition[part], space)
            for member in definition.get("fields", ()):
                self._collect(member["type"], space)
            if isinstance(kind, dict | list):
                self._collect(kind, space)

    def _resolved(self, definition: Definition) -> tuple[str, Any]:
        """The kind, and the object that says the rest."""
        while isinstance(definition, dict) and isinstance(definition.get("type"), dict | list):
            definition = definition["type"]
        if isinstance(definition, list):
            return "union", definition
        if isinstance(definition, str):
            if definition in PRIMITIVES:
                return definition, definition
            if definition not in self._names:
                raise ConfigError(f"Avro: {definition!r} is defined nowhere")
            definition = self._names[definition]
        kind = definition["type"]
        return (kind, definition) if kind in (*PRIMITIVES, *_NAMED, "array", "map") else self._resolved(kind)

    # ---- writing

    def _write(self, out: bytearray, definition: Definition, value: Any, way: str) -> None:
        kind, rest = self._resolved(definition)
        if kind == "union":
            self._write_union(out, rest, value, way)
        elif kind in _WRITERS:
            if not _suits(kind, value):
                raise TypeError(f"{way or 'the value'}: {kind} is needed, not {type(value).__name__}")
            _WRITERS[kind](out, value)
        elif kind == "record":
            self._write_record(out, rest, value, way)
        elif kind == "array":
            self._write_array(out, rest, value, way)
        elif kind == "map":
            self._write_map(out, rest, value, way)
        elif kind == "enum":
            if value not in rest["symbols"]:
                raise TypeError(f"{way}: {value!r} is none of {', '.join(rest['symbols'])}")
            _long(out, rest["symbols"].index(value))
        else:
            if not isinstance(value, bytes) or len(value) != rest["size"]:
                raise TypeError(f"{way}: exactly {rest['size']} bytes are needed")
            out += value

    def _write_array(self, out: bytearray, array: Mapping[str, Any], value: Any, way: str) -> None:
        if not isinstance(value, list | tuple):
            raise TypeError(f"{way}: a list is needed, not {type(value).__name__}")
        if value:
            _long(out, len(value))
        for number, item in enumerate(value):
            self._write(out, array["items"], item, f"{way}[{number}]")
        out.append(0)

    def _write_map(self, out: bytearray, kind: Mapping[str, Any], value: Any, way: str) -> None:
        if not isinstance(value, dict):
            raise TypeError(f"{way}: a dict is needed, not {type(value).__name__}")
        if value:
            _long(out, len(value))
        for name, item in value.items():
            _text(out, name)
            self._write(out, kind["values"], item, f"{way}[{name!r}]")
        out.append(0)

    def _write_union(self, out: bytearray, branches: list[Any], value: Any, way: str) -> None:
        for number, branch in enumerate(branches):
            kind, rest = self._resolved(branch)
            if self._is(kind, rest, value):
                _long(out, number)
                self._write(out, branch, value, way)
                return
        kinds = ", ".join(self._resolved(branch)[0] for branch in branches)
        raise TypeError(f"{way or 'the value'}: {type(value).__name__} is none of {kinds}")

    def _is(self, kind: str, rest: Any, value: Any) -> bool:
        if kind in _WRITERS:
            return _suits(kind, value)
        if kind == "enum":
            return isinstance(value, str) and value in rest["symbols"]
        if kind == "fixed":
            return isinstance(value, bytes) and len(value) == rest["size"]
        return isinstance(value, list if kind == "array" else dict)

    def _write_record(self, out: bytearray, record: Mapping[str, Any], value: Any, way: str) -> None:
        if not isinstance(value, dict):
            raise TypeError(f"{way or record['name']}: a record is needed, not {type(value).__name__}")
        for member in record["fields"]:
            name = member["name"]
            self._write(out, member["type"], value.get(name, member.get("default")), f"{way}.{name}" if way else name)

    # ---- reading

    def _read(self, source: _Source, definition: Definition, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ProtocolError("Avro: nested too deeply")
        kind, rest = self._resolved(definition)
        if kind in _READERS:
            return _READERS[kind](source)
        if kind == "record":
            return {member["name"]: self._read(source, member["type"], depth + 1) for member in rest["fields"]}
        if kind == "union":
            return self._read(source, source.chosen(rest), depth + 1)
        if kind == "enum":
            return source.chosen(rest["symbols"])
        if kind == "fixed":
            return source.take(rest["size"])
        return self._read_blocks(source, kind, rest, depth)

    def _read_blocks(self, source: _Source, kind: str, rest: Mapping[str, Any], depth: int) -> Any:
        items: list[Any] = []
        while count := source.long():
            if count < 0:
                count = -count
                source.long()  # the size of the block, for those who skip it
            if len(items) + count > MAX_ITEMS:
                raise ProtocolError(f"Avro: more than {MAX_ITEMS} items")
            for _ in range(count):
                name = source.text() if kind == "map" else None
                item = self._read(source, rest["values" if kind == "map" else "items"], depth + 1)
                items.append((name, item) if kind == "map" else item)
        return dict(items) if kind == "map" else items


class _Source:
    """Bytes and how many of them were read."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise ProtocolError(f"Avro: {size} bytes are said to follow, {len(self.data) - self.at} are there")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def long(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise ProtocolError("Avro: a number without end")

    def text(self) -> str:
        try:
            return self.take(self.long()).decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"Avro: {error}") from error

    def chosen(self, among: list[Any]) -> Any:
        number = self.long()
        if not 0 <= number < len(among):
            raise ProtocolError(f"Avro: number {number} of {len(among)}")
        return among[number]

    def packed(self, layout: str, size: int) -> Any:
        return struct.unpack(layout, self.take(size))[0]


def _full(name: str, space: str) -> str:
    return f"{space}.{name}" if space and "." not in name else name


def _long(out: bytearray, value: int) -> None:
    value = value << 1 ^ value >> 63
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _blob(out: bytearray, value: bytes) -> None:
    _long(out, len(value))
    out += value


def _text(out: bytearray, value: str) -> None:
    _blob(out, value.encode())


def _suits(kind: str, value: Any) -> bool:
    if kind in ("int", "long"):
        bits = 31 if kind == "int" else 63
        return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits
    if kind in ("float", "double"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return (
        value is None if kind == "null" else isinstance(value, {"boolean": bool, "bytes": bytes, "string": str}[kind])
    )


_WRITERS: Mapping[str, Callable[[bytearray, Any], None]] = {
    "null": lambda out, value: None,
    "boolean": lambda out, value: out.append(value),
    "int": _long,
    "long": _long,
    "float": lambda out, value: out.extend(struct.pack("<f", value)),
    "double": lambda out, value: out.extend(struct.pack("<d", value)),
    "bytes": _blob,
    "string": _text,
}
_READERS: Mapping[str, Callable[[_Source], Any]] = {
    "null": lambda source: None,
    "boolean": lambda source: source.take(1) != b"\0",
    "int": _Source.long,
    "long": _Source.long,
    "float": lambda source: source.packed("<f", 4),
    "double": lambda source: source.packed("<d", 8),
    "bytes": lambda source: source.take(source.long()),
    "string": _Source.text,
}

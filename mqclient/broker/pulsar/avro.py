"""Owns Avro schemas as far as a broker needs them: are they valid, are two the same, can one read what another wrote.

Rules as the real broker was seen to apply them: names of records do not matter, those of enums and fixed do; an enum's
symbols do not; a new field needs a default; numbers widen, strings and bytes are each other's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PRIMITIVES = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
READS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""What else a type reads than itself."""
DEEPEST = 100


class InvalidSchema(ValueError):
    """The text is no Avro schema."""


@dataclass(slots=True, eq=False)
class Field:
    name: str
    type: Node
    aliases: tuple[str, ...]
    default: Any
    has_default: bool


@dataclass(slots=True, eq=False)
class Node:
    """One type. `parts`: items of an array, values of a map, branches of a union."""

    kind: str
    name: str = ""
    fields: list[Field] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)
    symbols: tuple[str, ...] = ()
    size: int = 0


def parse(text: bytes) -> Node:
    """The type that a definition describes; InvalidSchema says what is wrong with it."""
    try:
        return _parse(json.loads(text), "", {}, 0)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(f"Invalid schema definition data for AVRO schema: {error}") from None


def _parse(given: Any, namespace: str, known: dict[str, Node], depth: int) -> Node:
    if depth > DEEPEST:
        raise InvalidSchema(f"it is nested deeper than {DEEPEST}")
    if isinstance(given, str):
        return _named(given, namespace, known)
    if isinstance(given, list):
        branches = [_parse(branch, namespace, known, depth + 1) for branch in given]
        if any(branch.kind == "union" for branch in branches):
            raise InvalidSchema("a union holds no union")
        return Node("union", parts=branches)
    if not isinstance(given, dict) or "type" not in given:
        raise InvalidSchema(f"{str(given)[:80]!r} is no type")
    kind = given["type"]
    if kind in ("record", "error", "enum", "fixed"):
        return _definition(given, namespace, known, depth)
    if kind in ("array", "map"):
        inside = given.get("items" if kind == "array" else "values")
        return Node(kind, parts=[_parse(inside, namespace, known, depth + 1)])
    return _parse(kind, namespace, known, depth + 1)


def _named(name: str, namespace: str, known: Mapping[str, Node]) -> Node:
    if name in PRIMITIVES:
        return Node(name)
    found = known.get(name if "." in name or not namespace else f"{namespace}.{name}") or known.get(name)
    if found is None:
        raise InvalidSchema(f"{name[:80]!r} is not defined")
    return found


def _definition(given: Mapping[str, Any], namespace: str, known: dict[str, Node], depth: int) -> Node:
    name = given.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidSchema(f"a {given['type']} has a name")
    own = given.get("namespace", namespace)
    namespace = name.rpartition(".")[0] if "." in name else str(own or "")
    full = name if "." in name or not namespace else f"{namespace}.{name}"
    if full in known:
        raise InvalidSchema(f"{full[:80]!r} is defined twice")
    node = known[full] = Node("record" if given["type"] == "error" else given["type"], full)
    if node.kind == "enum":
        node.symbols = tuple(str(symbol) for symbol in _list(given, "symbols"))
    elif node.kind == "fixed":
        node.size = int(given.get("size", -1))
    else:
        node.fields = [_field(each, namespace, known, depth) for each in _list(given, "fields")]
    return node


def _list(given: Mapping[str, Any], key: str) -> list[Any]:
    found = given.get(key)
    if not isinstance(found, list):
        raise InvalidSchema(f"{given.get('name')!r} has no list of {key}")
    return found


def _field(given: Any, namespace: str, known: dict[str, Node], depth: int) -> Field:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str) or "type" not in given:
        raise InvalidSchema("a field has a name and a type")
    kind = _parse(given["type"], namespace, known, depth + 1)
    if "default" in given and not _fits(given["default"], kind):
        raise InvalidSchema(f"Invalid default for field {given['name']}: {given['default']!r} not a {kind.kind}")
    aliases = tuple(str(alias) for alias in given.get("aliases") or ())
    return Field(given["name"], kind, aliases, given.get("default"), "default" in given)


def _fits(value: Any, kind: Node) -> bool:
    """Whether a default is of its type; of a union any branch will do."""
    if kind.kind == "union":
        return any(_fits(value, branch) for branch in kind.parts)
    if kind.kind in ("int", "long"):
        return isinstance(value, int) and not isinstance(value, bool)
    if kind.kind in ("float", "double"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    wanted = {"null": type(None), "boolean": bool, "array": list, "map": dict, "record": dict}
    return isinstance(value, wanted.get(kind.kind, str))


def same(one: Node, other: Node) -> bool:
    """Whether two definitions mean the same, however they are written."""
    return _same(one, other, set())


def _same(one: Node, other: Node, seen: set[tuple[int, int]]) -> bool:
    if (id(one), id(other)) in seen:
        return True
    seen.add((id(one), id(other)))
    if (one.kind, one.name, one.symbols, one.size) != (other.kind, other.name, other.symbols, other.size):
        return False
    if len(one.fields) != len(other.fields) or len(one.parts) != len(other.parts):
        return False
    for mine, theirs in zip(one.fields, other.fields, strict=True):
        if (mine.name, mine.has_default, mine.default) != (theirs.name, theirs.has_default, theirs.default):
            return False
        if not _same(mine.type, theirs.type, seen):
            return False
    return all(_same(mine, theirs, seen) for mine, theirs in zip(one.parts, other.parts, strict=True))


def can_read(reader: Node, writer: Node) -> bool:
    """Whether what was written by one schema can be read by another.

    >>> old, new = parse(b'"int"'), parse(b'["null", "long"]')
    >>> can_read(new, old), can_read(old, new)
    (True, False)
    """
    return _can_read(reader, writer, {})


def _can_read(reader: Node, writer: Node, known: dict[tuple[int, int], bool]) -> bool:
    pair = id(reader), id(writer)
    if pair not in known:
        known[pair] = True  # a type that holds itself: as good as the rest of it
        known[pair] = _resolves(reader, writer, known)
    return known[pair]


def _resolves(reader: Node, writer: Node, known: dict[tuple[int, int], bool]) -> bool:
    if writer.kind == "union":
        return all(_can_read(reader, branch, known) for branch in writer.parts)
    if reader.kind == "union":
        return any(_can_read(branch, writer, known) for branch in reader.parts)
    if reader.kind != writer.kind:
        return writer.kind in READS.get(reader.kind, ())
    if reader.kind in ("enum", "fixed"):
        return (reader.name, reader.size) == (writer.name, writer.size)
    if reader.kind in ("array", "map"):
        return _can_read(reader.parts[0], writer.parts[0], known)
    written = {field.name: field.type for field in writer.fields}
    for wanted in reader.fields:
        found = next((written[name] for name in (wanted.name, *wanted.aliases) if name in written), None)
        if found is None and not wanted.has_default:
            return False
        if found is not None and not _can_read(wanted.type, found, known):
            return False
    return True

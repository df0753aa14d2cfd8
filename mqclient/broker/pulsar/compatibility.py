"""Owns which schema may follow which: the strategies, and what they mean for each type of schema."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from mqclient.broker.pulsar import avro
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.schema import TYPES, Schema
from mqclient.pulsar.codes import ServerError

STRING, JSON, PROTOBUF, AVRO, KEY_VALUE, PROTOBUF_NATIVE, AUTO_CONSUME = 1, 2, 3, 4, 15, 20, 21
BY_AVRO: Final = frozenset((JSON, PROTOBUF, AVRO))
"""Types whose definition is an Avro schema."""
STRATEGIES: Final[Mapping[str, tuple[bool, bool, bool]]] = {
    "BACKWARD": (True, False, False),
    "FORWARD": (False, True, False),
    "FULL": (True, True, False),
    "BACKWARD_TRANSITIVE": (True, False, True),
    "FORWARD_TRANSITIVE": (False, True, True),
    "FULL_TRANSITIVE": (True, True, True),
}
"""Whether the new one reads the old, the old the new, and whether all old ones count or the latest."""
NAMES: Final = frozenset(("UNDEFINED", "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", *STRATEGIES))
FOR_CONSUMERS: Final[Mapping[str, str]] = {"FORWARD": "BACKWARD", "FORWARD_TRANSITIVE": "BACKWARD", "FULL": "BACKWARD"}
"""A consumer only reads."""


def validate(schema: Schema) -> None:
    """Refused if the definition is none of its type."""
    try:
        if schema.type in BY_AVRO:
            avro.parse(schema.data)
        elif schema.type == KEY_VALUE:
            for half in halves(schema):
                validate(half)
        elif schema.type == PROTOBUF_NATIVE:
            _root(schema)
    except ValueError as error:
        raise Refused(ServerError.IncompatibleSchema, f"Invalid schema definition data: {error}") from None


def same(one: Schema, other: Schema) -> bool:
    """Whether they get one version: Avro by what it means, others byte by byte."""
    if one.type != other.type:
        return False
    return one.data == other.data or (one.type in BY_AVRO and avro.same(avro.parse(one.data), avro.parse(other.data)))


def check(new: Schema, existing: list[Schema], strategy: str) -> None:
    """Refused if the strategy does not let this schema follow those, the latest of which is the last."""
    if strategy == "ALWAYS_COMPATIBLE" or not existing:
        return
    new_reads, old_reads, transitive = STRATEGIES.get(strategy, (False, False, False))
    for old in existing if transitive else existing[-1:]:
        if new.type != old.type:
            text = f"Incompatible schema: exists schema type {old.type_name}, new schema type {new.type_name}"
            raise Refused(ServerError.IncompatibleSchema, text)
        if same(new, old):
            continue
        fine = strategy in STRATEGIES and (not new_reads or reads(new, old)) and (not old_reads or reads(old, new))
        if not fine:
            text = f"Error during schema compatibility check with strategy {strategy}: Unable to read schema: "
            text += f"{old.text} using schema: {new.text}"
            raise Refused(ServerError.IncompatibleSchema, text)


def reads(reader: Schema, writer: Schema) -> bool:
    """Whether a reader with one schema understands what was written with another of its type."""
    if reader.type in BY_AVRO:
        return avro.can_read(avro.parse(reader.data), avro.parse(writer.data))
    if reader.type == KEY_VALUE:
        pairs = list(zip(halves(reader), halves(writer), strict=True))
        alike = reader.properties.get("kv.encoding.type") == writer.properties.get("kv.encoding.type")
        return alike and all(mine.type == theirs.type and reads(mine, theirs) for mine, theirs in pairs)
    if reader.type == PROTOBUF_NATIVE:
        return bool(_root(reader) == _root(writer))
    return True


def halves(schema: Schema) -> list[Schema]:
    """Key and value of a key-value schema: each with its length before it, its type among the properties."""
    found, at = [], 0
    numbers = {name: number for number, name in TYPES.items()}
    for half in ("key", "value"):
        if at + 4 > len(schema.data):
            raise ValueError(f"the {half} of a key-value schema is not there")
        (size,) = struct.unpack_from(">i", schema.data, at)
        data = schema.data[at + 4 : at + 4 + max(size, 0)]
        if len(data) != max(size, 0):
            raise ValueError(f"the {half} of a key-value schema is cut")
        at += 4 + max(size, 0)
        kind = numbers.get(schema.properties.get(f"{half}.schema.type", "BYTES"), -1)
        if kind == KEY_VALUE:
            raise ValueError("a key-value schema holds no other")
        found.append(Schema(kind, data))
    return found


def _root(schema: Schema) -> Any:
    """The name of the message that a protobuf definition is about."""
    given = json.loads(schema.data)
    if not isinstance(given, dict) or "rootMessageTypeName" not in given:
        raise ValueError("it names no root message")
    return given["rootMessageTypeName"]

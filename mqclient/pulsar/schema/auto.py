"""Owns reading by whatever schema a topic has: a definition from the broker becomes one that decodes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mqclient.core.json import loads
from mqclient.errors import ProtocolError
from mqclient.pulsar.schema.base import BYTES, Schema, SchemaInfo, SchemaType
from mqclient.pulsar.schema.key_value import KeyValue, split
from mqclient.pulsar.schema.native import ProtobufNative
from mqclient.pulsar.schema.primitives import BY_TYPE
from mqclient.pulsar.schema.records import Avro, Json


class AutoConsume(Schema[Any]):
    """Values as each message's own definition says: records are dicts, bodies without a schema bytes."""

    info = SchemaInfo("AutoConsume", SchemaType.AUTO_CONSUME)
    versioned = True

    def encode(self, value: Any) -> bytes:
        raise TypeError("AUTO_CONSUME is for consumers: a producer says which schema it has")

    def decode(self, body: bytes, writer: SchemaInfo | None = None) -> Any:
        return body if writer is None else _made(writer).decode(body)

    def value_of(self, message: Any, writer: SchemaInfo | None = None) -> Any:
        return (BYTES if writer is None else _made(writer)).value_of(message)


AUTO_CONSUME = AutoConsume()


def schema_of(info: SchemaInfo) -> Schema[Any]:
    """The schema of a definition as the broker keeps it."""
    if info.type in (None, SchemaType.NONE):
        return BYTES
    if info.type in BY_TYPE:
        return BY_TYPE[info.type]
    if info.type in (SchemaType.AVRO, SchemaType.JSON):
        kind = Avro if info.type == SchemaType.AVRO else Json
        return kind(definition=info.data.decode(errors="replace"), properties=info.properties)
    if info.type == SchemaType.PROTOBUF_NATIVE:
        return ProtobufNative.from_info(info)
    if info.type == SchemaType.KEY_VALUE:
        return _key_value(info)
    raise ProtocolError(f"schema type {info.type} of {info.name} cannot be read here")


def _key_value(info: SchemaInfo) -> KeyValue:
    said = info.properties
    key, value = split(info.data)
    parts: list[Schema[Any]] = []
    for name, data in (("key", key), ("value", value)):
        try:
            kind = said.get(f"{name}.schema.type", "BYTES")
            number = None if kind == "BYTES" else int(SchemaType[kind])
            properties = loads(said.get(f"{name}.schema.properties") or "{}")
        except (KeyError, ValueError) as error:
            raise ProtocolError(f"the schema of the {name} cannot be read: {error}") from error
        parts.append(schema_of(SchemaInfo(said.get(f"{name}.schema.name", ""), number, data or b"", properties)))
    return KeyValue(parts[0], parts[1], encoding=said.get("kv.encoding.type", "INLINE").lower())


_made = lru_cache(maxsize=256)(schema_of)

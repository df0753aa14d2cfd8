"""Owns pairs of key and value: both in the body, or the key as the message's."""

from __future__ import annotations

import struct
from typing import Any

from mqclient.core.json import dumps
from mqclient.errors import ConfigError, ProtocolError
from mqclient.pulsar.schema.base import Schema, SchemaInfo, SchemaType


class KeyValue(Schema[tuple[Any, Any]]):
    """`encoding`: "inline", or "separated" with the key as the message's, by which it is routed and compacted."""

    pairs = True

    def __init__(self, key: Schema[Any], value: Schema[Any], encoding: str = "inline") -> None:
        if encoding not in ("inline", "separated"):
            raise ConfigError(f"encoding={encoding!r}: it is 'inline' or 'separated'")
        self._key = key
        self._value = value
        self.separated = encoding == "separated"
        self.versioned = key.versioned or value.versioned
        parts = (("key", key.info), ("value", value.info))
        properties = {"kv.encoding.type": encoding.upper()}
        for name, info in parts:
            properties[f"{name}.schema.name"] = info.name
            properties[f"{name}.schema.type"] = "BYTES" if info.type is None else SchemaType(info.type).name
            properties[f"{name}.schema.properties"] = dumps(dict(info.properties)).decode()
        data = _pair(key.info.data, value.info.data)
        self.info = SchemaInfo("KeyValue", SchemaType.KEY_VALUE, data, properties)

    def encode(self, value: tuple[Any, Any]) -> bytes:
        key, content = value
        return _pair(_coded(self._key, key), _coded(self._value, content))

    def outgoing(self, value: tuple[Any, Any]) -> tuple[bytes | None, bytes | None]:
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeError(f"a pair (key, value) is needed, not {type(value).__name__}")
        if not self.separated:
            return self.encode(value), None
        return _coded(self._value, value[1]), _coded(self._key, value[0])

    def decode(self, body: bytes, writer: SchemaInfo | None = None) -> tuple[Any, Any]:
        key, value = split(body)
        key_writer, value_writer = writers(writer)
        return _read(self._key, key, key_writer), _read(self._value, value, value_writer)

    def value_of(self, message: Any, writer: SchemaInfo | None = None) -> tuple[Any, Any] | None:
        if not self.separated:
            return super().value_of(message, writer)
        key = message.key_bytes if message.key is not None else None
        body = None if message.null_value else message.body
        key_writer, value_writer = writers(writer)
        return _read(self._key, key, key_writer), _read(self._value, body, value_writer)


def split(body: bytes) -> tuple[bytes | None, bytes | None]:
    """Two lengths with what follows them; -1 is null."""
    key, at = _take(body, 0)
    value, end = _take(body, at)
    if end != len(body):
        raise ProtocolError(f"this body is no pair: {len(body) - end} bytes are left over")
    return key, value


def writers(writer: SchemaInfo | None) -> tuple[SchemaInfo | None, SchemaInfo | None]:
    """The definitions of both parts; their types are those of the reader."""
    if writer is None or writer.type != SchemaType.KEY_VALUE:
        return None, None
    key, value = split(writer.data)
    return SchemaInfo("", None, key or b""), SchemaInfo("", None, value or b"")


def _take(body: bytes, at: int) -> tuple[bytes | None, int]:
    if at + 4 > len(body):
        raise ProtocolError("this body is no pair: a length is missing")
    size = struct.unpack_from(">i", body, at)[0]
    at += 4
    if size < 0:
        return None, at
    if at + size > len(body):
        raise ProtocolError(f"this body is no pair: {size} bytes are said to follow, {len(body) - at} are there")
    return body[at : at + size], at + size


def _pair(key: bytes | None, value: bytes | None) -> bytes:
    parts = [struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part for part in (key, value)]
    return b"".join(parts)


def _coded(schema: Schema[Any], value: Any) -> bytes | None:
    return None if value is None else schema.encode(value)


def _read(schema: Schema[Any], data: bytes | None, writer: SchemaInfo | None) -> Any:
    return None if data is None else schema.decode(data, writer)

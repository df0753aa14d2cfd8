"""Owns the schemas of single values: text, numbers, truth, times."""

from __future__ import annotations

import struct
from datetime import datetime, timedelta, timezone
from typing import Any

from mqclient.errors import ProtocolError
from mqclient.pulsar.schema.base import Schema, SchemaInfo, SchemaType

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class String(Schema[str]):
    """Text, as UTF-8."""

    info = SchemaInfo("String", SchemaType.STRING)

    def encode(self, value: str) -> bytes:
        if not isinstance(value, str):
            raise TypeError(f"a text is needed, not {type(value).__name__}")
        return value.encode()

    def decode(self, body: bytes, writer: SchemaInfo | None = None) -> str:
        try:
            return body.decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(f"this body is no UTF-8 text: {error}") from error


class Packed(Schema[Any]):
    """A value of fixed size, big-endian."""

    def __init__(self, name: str, kind: SchemaType, layout: str, *types: type) -> None:
        self.info = SchemaInfo(name, kind)
        self._struct = struct.Struct(layout)
        self._types = types

    def encode(self, value: Any) -> bytes:
        # True is an int for Python; nobody means 1 by it.
        if not isinstance(value, self._types) or (isinstance(value, bool) and bool not in self._types):
            raise TypeError(f"{self.info.name} takes {self._types[0].__name__}, not {type(value).__name__}")
        try:
            return self._struct.pack(value)
        except struct.error as error:
            raise TypeError(f"{value!r} does not fit into {self.info.name}: {error}") from error

    def decode(self, body: bytes, writer: SchemaInfo | None = None) -> Any:
        try:
            return self._struct.unpack(body)[0]
        except struct.error as error:
            raise ProtocolError(f"this body is no {self.info.name}: {error}") from error


class Timestamp(Schema[datetime]):
    """A time with its zone, in milliseconds."""

    info = SchemaInfo("Timestamp", SchemaType.TIMESTAMP)

    def encode(self, value: datetime) -> bytes:
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise TypeError("a datetime with a time zone is needed: datetime(…, tzinfo=timezone.utc)")
        return struct.pack(">q", (value - _EPOCH) // timedelta(milliseconds=1))

    def decode(self, body: bytes, writer: SchemaInfo | None = None) -> datetime:
        try:
            return _EPOCH + timedelta(milliseconds=struct.unpack(">q", body)[0])
        except (struct.error, OverflowError) as error:
            raise ProtocolError(f"this body is no Timestamp: {error}") from error


STRING = String()
BOOLEAN = Packed("Boolean", SchemaType.BOOLEAN, ">?", bool)
INT8 = Packed("INT8", SchemaType.INT8, ">b", int)
INT16 = Packed("INT16", SchemaType.INT16, ">h", int)
INT32 = Packed("INT32", SchemaType.INT32, ">i", int)
INT64 = Packed("INT64", SchemaType.INT64, ">q", int)
FLOAT = Packed("Float", SchemaType.FLOAT, ">f", float, int)
DOUBLE = Packed("Double", SchemaType.DOUBLE, ">d", float, int)
TIMESTAMP = Timestamp()

BY_TYPE: dict[int, Schema[Any]] = {
    int(schema.info.type or 0): schema
    for schema in (STRING, BOOLEAN, INT8, INT16, INT32, INT64, FLOAT, DOUBLE, TIMESTAMP)
}

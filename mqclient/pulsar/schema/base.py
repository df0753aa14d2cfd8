"""Owns what all schemas have in common: what the broker is told, bodies there and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class SchemaType(IntEnum):
    """As the wire numbers them."""

    NONE = 0
    STRING = 1
    JSON = 2
    PROTOBUF = 3
    AVRO = 4
    BOOLEAN = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FLOAT = 10
    DOUBLE = 11
    DATE = 12
    TIME = 13
    TIMESTAMP = 14
    KEY_VALUE = 15
    INSTANT = 16
    LOCAL_DATE = 17
    LOCAL_TIME = 18
    LOCAL_DATE_TIME = 19
    PROTOBUF_NATIVE = 20
    AUTO_CONSUME = 21


@dataclass(frozen=True)
class SchemaInfo:
    """A definition as the broker keeps it; `type` None: bytes, which it is not told of."""

    name: str
    type: int | None
    data: bytes = b""
    properties: Mapping[str, str] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.name, self.type, self.data))


class Schema(Generic[T]):
    """Values of one kind. `versioned`: reading them needs the definition that they were written with."""

    info: SchemaInfo
    versioned = False
    pairs = False
    """Its values are tuples."""

    def encode(self, value: T) -> bytes:
        """The body of a value; TypeError for one of another kind."""
        raise NotImplementedError

    def decode(self, body: bytes, writer: SchemaInfo | None = None) -> T:
        """The value of a body, written with this definition or the one given; ProtocolError if it is none."""
        raise NotImplementedError

    def outgoing(self, value: T) -> tuple[bytes | None, bytes | None]:
        """Body and, where the value holds it, key."""
        return None if value is None else self.encode(value), None

    def value_of(self, message: Any, writer: SchemaInfo | None = None) -> T | None:
        """Of a message received; None for a null value."""
        return None if message.null_value else self.decode(message.body, writer)


class Bytes(Schema[bytes]):
    """Bodies as they are."""

    info = SchemaInfo("BYTES", None)

    def encode(self, value: bytes) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            raise TypeError(f"a body is bytes-like, not {type(value).__name__}")
        return bytes(value)

    def decode(self, body: bytes, writer: SchemaInfo | None = None) -> bytes:
        return body


BYTES = Bytes()

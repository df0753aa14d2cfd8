"""Single values, pairs, protobuf messages, and whatever a topic has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from mqclient.errors import ConfigError, ProtocolError
from mqclient.pulsar import schema
from mqclient.pulsar.schema.auto import schema_of
from mqclient.pulsar.schema.base import Schema, SchemaInfo, SchemaType
from mqclient.pulsar.schema.key_value import KeyValue, split


class Received:
    """As much of a message as schemas look at."""

    def __init__(self, body: bytes | None, key: bytes | None = None) -> None:
        self.body = body or b""
        self.null_value = body is None
        self.key = None if key is None else "given"
        self.key_bytes = key


@dataclass
class Order:
    number: int
    shop: str | None = None


@pytest.mark.parametrize(
    ("kind", "value", "body"),
    [
        (schema.STRING, "Grüße", "Grüße".encode()),
        (schema.BOOLEAN, True, b"\x01"),
        (schema.INT8, -2, b"\xfe"),
        (schema.INT16, 258, b"\x01\x02"),
        (schema.INT32, -1, b"\xff" * 4),
        (schema.INT64, 5, b"\0" * 7 + b"\x05"),
        (schema.FLOAT, 0.5, b"\x3f\0\0\0"),
        (schema.DOUBLE, 0.5, b"\x3f\xe0" + bytes(6)),
        (schema.TIMESTAMP, datetime(1970, 1, 1, 0, 0, 1, tzinfo=timezone.utc), b"\0" * 6 + b"\x03\xe8"),
        (schema.BYTES, b"x", b"x"),
    ],
)
def test_single_values(kind: Schema[Any], value: Any, body: bytes) -> None:
    assert (kind.encode(value), kind.decode(body)) == (body, value)
    assert kind.outgoing(value) == (body, None)
    assert kind.outgoing(None) == (None, None)
    assert kind.value_of(Received(body)) == value
    assert kind.value_of(Received(None)) is None


@pytest.mark.parametrize(
    ("kind", "value"),
    [(schema.STRING, b"x"), (schema.INT8, 200), (schema.INT32, True), (schema.INT64, 0.5), (schema.BYTES, "x"),
     (schema.TIMESTAMP, datetime(2024, 1, 1)), (schema.BOOLEAN, 1)],
)  # fmt: skip
def test_values_of_another_kind(kind: Schema[Any], value: Any) -> None:
    with pytest.raises(TypeError):
        kind.encode(value)


@pytest.mark.parametrize("kind", [schema.STRING, schema.INT32, schema.TIMESTAMP])
def test_bodies_of_another_kind(kind: Schema[Any]) -> None:
    with pytest.raises(ProtocolError):
        kind.decode(b"\xff\xfe\xff")


def test_the_base_leaves_it_to_others() -> None:
    nothing: Schema[Any] = Schema()
    for call in (nothing.encode, nothing.decode):
        with pytest.raises(NotImplementedError):
            call(b"")


def test_pairs_in_the_body() -> None:
    pairs = KeyValue(schema.STRING, schema.INT32)
    assert pairs.encode(("k", 1)) == b"\0\0\0\x01k\0\0\0\x04\0\0\0\x01"
    assert pairs.decode(pairs.encode(("k", None))) == ("k", None)
    assert pairs.outgoing((None, 1)) == (b"\xff\xff\xff\xff\0\0\0\x04\0\0\0\x01", None)
    assert pairs.value_of(Received(pairs.encode(("k", 1)))) == ("k", 1)
    assert pairs.info.properties["kv.encoding.type"] == "INLINE"
    assert split(pairs.info.data) == (b"", b"")


def test_pairs_apart() -> None:
    pairs = KeyValue(schema.STRING, schema.Avro(Order), "separated")
    body, key = pairs.outgoing(("k", Order(1)))
    assert key == b"k"
    assert pairs.value_of(Received(body, key)) == ("k", Order(1))
    assert pairs.value_of(Received(None, key)) == ("k", None)
    assert pairs.value_of(Received(body)) == (None, Order(1))
    assert pairs.versioned
    assert pairs.value_of(Received(body, key), pairs.info) == ("k", Order(1))
    assert pairs.outgoing((None, None)) == (None, None)


def test_what_is_no_pair() -> None:
    pairs = KeyValue(schema.STRING, schema.STRING)
    wrong: Any
    for wrong in (b"", b"\0\0\0\x05k", b"\0\0\0\x01k\0\0\0\0x"):
        with pytest.raises(ProtocolError):
            pairs.decode(wrong)
    for wrong in (5, ("a",)):
        with pytest.raises(TypeError):
            pairs.outgoing(wrong)
    with pytest.raises(ConfigError):
        KeyValue(schema.STRING, schema.STRING, "apart")


def test_protobuf_messages() -> None:
    kind = schema.ProtobufNative(DescriptorProto)
    value = DescriptorProto(name="x", field=[FieldDescriptorProto(name="f")])
    assert kind.decode(kind.encode(value)) == value
    made = schema_of(kind.info)
    found = made.decode(value.SerializeToString())
    assert (type(found) is not DescriptorProto, found.name, found.field[0].name) == (True, "x", "f")
    assert made.info == kind.info
    with pytest.raises(TypeError):
        kind.encode(FieldDescriptorProto())
    with pytest.raises(ProtocolError):
        kind.decode(b"\xff")
    with pytest.raises(ConfigError):
        schema.ProtobufNative(int)  # type: ignore[arg-type]
    for data in (b"{", b"{}", b'{"fileDescriptorSet":"/w==","rootMessageTypeName":"x"}'):
        with pytest.raises(ProtocolError):
            schema_of(SchemaInfo("", SchemaType.PROTOBUF_NATIVE, data))


def test_whatever_a_topic_has() -> None:
    auto = schema.AUTO_CONSUME
    assert auto.value_of(Received(b"raw")) == auto.decode(b"raw") == b"raw"
    orders = schema.Avro(Order)
    assert auto.value_of(Received(orders.encode(Order(7))), orders.info) == {"number": 7, "shop": None}
    assert auto.decode(b'{"a": 1}', schema.Json(Order).info) == {"a": 1}
    assert auto.value_of(Received(b"\0\0\0\x05"), schema.INT32.info) == 5
    assert auto.value_of(Received(None), schema.INT32.info) is None
    pairs = KeyValue(schema.STRING, orders, "separated")
    body, key = pairs.outgoing(("k", Order(1, "n")))
    assert auto.value_of(Received(body, key), pairs.info) == ("k", {"number": 1, "shop": "n"})
    assert schema_of(SchemaInfo("", None)) is schema.BYTES
    with pytest.raises(TypeError, match="consumers"):
        auto.encode(5)


@pytest.mark.parametrize("kind", [SchemaType.PROTOBUF, 99])
def test_what_cannot_be_read(kind: int) -> None:
    with pytest.raises(ProtocolError, match="cannot be read here"):
        schema_of(SchemaInfo("x", kind))


def test_pairs_of_unknown_parts() -> None:
    data = KeyValue(schema.STRING, schema.STRING).info.data
    for said in ({"key.schema.type": "WHAT"}, {"key.schema.properties": "{"}):
        with pytest.raises(ProtocolError):
            schema_of(SchemaInfo("x", SchemaType.KEY_VALUE, data, said))

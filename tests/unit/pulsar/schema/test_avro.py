"""The binary form of Avro: examples of its specification, and bytes that are none of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqclient.errors import ConfigError, ProtocolError
from mqclient.pulsar.schema.avro import Avro


@pytest.mark.parametrize(
    ("definition", "value", "data"),
    [
        ("null", None, b""),
        ("boolean", True, b"\x01"),
        ("int", -64, b"\x7f"),
        ("long", 64, b"\x80\x01"),
        ("string", "foo", b"\x06foo"),
        ("float", 1.0, b"\0\0\x80?"),
        ("double", 1.0, b"\0\0\0\0\0\0\xf0?"),
        ({"type": "array", "items": "long"}, [3, 27], b"\x04\x06\x36\0"),
        ({"type": "array", "items": "long"}, [], b"\0"),
        ({"type": "map", "values": "int"}, {"a": 1}, b"\x02\x02a\x02\0"),
        (["null", "string"], "a", b"\x02\x02a"),
        (["null", "string"], None, b"\0"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", b"\x02"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
        ({"type": {"type": "string"}}, "a", b"\x02a"),
        (["null", {"type": "fixed", "name": "F", "size": 1}, {"type": "map", "values": "int"}], {}, b"\x04\0"),
    ],
)
def test_examples(definition: Any, value: Any, data: bytes) -> None:
    codec = Avro(definition)
    assert codec.write(value) == data
    assert codec.read(data) == value


def test_records_that_name_themselves() -> None:
    codec = Avro.parse(
        '{"type":"record","name":"Node","namespace":"a.b","fields":[{"name":"value","type":"long"},'
        '{"name":"next","type":["null","a.b.Node"]}]}'
    )
    value = {"value": 1, "next": {"value": 2, "next": None}}
    assert codec.read(codec.write(value)) == value
    with pytest.raises(ProtocolError, match="deeply"):
        codec.read(b"\x02\x02" * 100)


def test_blocks_with_their_size() -> None:
    assert Avro({"type": "array", "items": "long"}).read(b"\x03\x04\x06\x36\0") == [3, 27]


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("int", 1 << 31),
        ("long", True),
        ("string", b"x"),
        ("double", "x"),
        ({"type": "array", "items": "int"}, 5),
        ({"type": "map", "values": "int"}, []),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "C"),
        ({"type": "fixed", "name": "F", "size": 2}, b"abc"),
        ({"type": "record", "name": "R", "fields": []}, 5),
        (["null", {"type": "enum", "name": "E", "symbols": ["A"]}], "B"),
    ],
)
def test_values_that_do_not_suit(definition: Any, value: Any) -> None:
    with pytest.raises(TypeError):
        Avro(definition).write(value)


@pytest.mark.parametrize(
    ("definition", "data"),
    [
        ("string", b"\x7f"),
        ("string", b"\x09a"),
        ("string", b"\x02\xff"),
        ("long", b"\xff" * 12),
        ("null", b"x"),
        ("bytes", b"\xfe\xff\xff\xff\x0f"),
        (["null"], b"\x02"),
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\x0f"),
    ],
)
def test_bad_bytes(definition: Any, data: bytes) -> None:
    with pytest.raises(ProtocolError):
        Avro(definition).read(data)


def test_bad_definitions() -> None:
    with pytest.raises(ProtocolError):
        Avro.parse("{")
    with pytest.raises(ConfigError, match="nowhere"):
        Avro("Unknown").write(1)


CODEC = Avro({"type": "record", "name": "R", "fields": [
    {"name": "l", "type": {"type": "array", "items": ["null", "long", "string", "double"]}},
    {"name": "m", "type": {"type": "map", "values": "bytes"}},
]})  # fmt: skip


@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.floats(allow_nan=False)),
    st.dictionaries(st.text(), st.binary()),
)
def test_there_and_back(items: list[Any], named: dict[str, bytes]) -> None:
    value = {"l": items, "m": named}
    assert CODEC.read(CODEC.write(value)) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        CODEC.read(data)
    except ProtocolError:
        return

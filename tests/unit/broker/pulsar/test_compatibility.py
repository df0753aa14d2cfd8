"""Which schema may follow which."""

from __future__ import annotations

import json
import struct

import pytest

from mqclient.broker.pulsar import compatibility
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.schema import Schema

STRING, AVRO, KEY_VALUE, NATIVE = 1, 4, 15, 20


def avro(*fields: str, defaults: bool = False) -> Schema:
    more = {"default": 0} if defaults else {}
    shape = {"type": "record", "name": "R", "fields": [{"name": name, "type": "int", **more} for name in fields]}
    return Schema(AVRO, json.dumps(shape).encode())


def pair(key: Schema, value: Schema, encoding: str = "INLINE") -> Schema:
    data = b"".join(struct.pack(">i", len(half.data)) + half.data for half in (key, value))
    names = {"key.schema.type": key.type_name, "value.schema.type": value.type_name, "kv.encoding.type": encoding}
    return Schema(KEY_VALUE, data, names)


def allowed(new: Schema, old: list[Schema], strategy: str) -> bool:
    try:
        compatibility.check(new, old, strategy)
    except Refused:
        return False
    return True


@pytest.mark.parametrize(
    ("strategy", "more", "fewer"),
    [
        ("BACKWARD", False, True),
        ("FORWARD", True, False),
        ("FULL", False, False),
        ("BACKWARD_TRANSITIVE", False, True),
        ("FORWARD_TRANSITIVE", True, False),
        ("ALWAYS_COMPATIBLE", True, True),
        ("ALWAYS_INCOMPATIBLE", False, False),
    ],
)
def test_strategies(strategy: str, more: bool, fewer: bool) -> None:
    assert allowed(avro("a", "b"), [avro("a")], strategy) is more
    assert allowed(avro("a"), [avro("a", "b")], strategy) is fewer
    assert allowed(avro("a"), [avro("a")], strategy)
    assert allowed(avro("a"), [], strategy)


def test_transitive_is_about_all() -> None:
    history = [avro("a"), avro("a", "b", defaults=True)]
    wanted = avro("a", "b")
    assert allowed(wanted, history, "BACKWARD")
    assert not allowed(wanted, history, "BACKWARD_TRANSITIVE")


def test_types_do_not_change() -> None:
    with pytest.raises(Refused, match="exists schema type AVRO, new schema type STRING"):
        compatibility.check(Schema(STRING, b""), [avro("a")], "FULL")
    assert allowed(Schema(STRING, b""), [avro("a")], "ALWAYS_COMPATIBLE")
    assert allowed(Schema(STRING, b"null"), [Schema(STRING, b"")], "FULL")


def test_keys_and_values() -> None:
    old = pair(Schema(STRING, b""), avro("a"))
    assert allowed(pair(Schema(STRING, b""), avro("a", "b", defaults=True)), [old], "BACKWARD")
    assert not allowed(pair(Schema(STRING, b""), avro("a", "b")), [old], "BACKWARD")
    assert not allowed(pair(avro("a"), avro("a")), [old], "BACKWARD")
    assert not allowed(pair(Schema(STRING, b""), avro("a", "b", defaults=True), "SEPARATED"), [old], "BACKWARD")


def test_native_protobuf_keeps_its_root() -> None:
    one, same, other = (
        Schema(NATIVE, json.dumps({"rootMessageTypeName": name, "fileDescriptorSet": text}).encode())
        for name, text in (("a.A", "x"), ("a.A", "y"), ("a.B", "x"))
    )
    assert allowed(same, [one], "FULL")
    assert not allowed(other, [one], "FULL")


@pytest.mark.parametrize(
    "schema",
    [
        Schema(AVRO, b"{"),
        Schema(NATIVE, b"{}"),
        Schema(NATIVE, b"["),
        Schema(KEY_VALUE, b""),
        Schema(KEY_VALUE, b"\0\0\0\x09x"),
        pair(Schema(KEY_VALUE, b""), Schema(STRING, b"")),
        pair(Schema(STRING, b""), Schema(AVRO, b"?")),
    ],
)
def test_what_is_none_of_its_type(schema: Schema) -> None:
    with pytest.raises(Refused):
        compatibility.validate(schema)


def test_what_gets_one_version() -> None:
    assert compatibility.same(avro("a"), Schema(AVRO, json.dumps(json.loads(avro("a").data), indent=4).encode()))
    assert not compatibility.same(Schema(STRING, b""), Schema(STRING, b"null"))
    assert not compatibility.same(Schema(STRING, b""), Schema(5, b""))

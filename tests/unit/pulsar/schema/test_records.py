"""Records as dataclasses: definitions to the byte, values there and back, evolution."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from mqclient.errors import ConfigError, ProtocolError
from mqclient.pulsar.schema.records import Avro, Float, Int, Json, definition_of


class Color(Enum):
    RED = 1
    BLUE = 2


@dataclass
class R:
    a: str | None = None
    b: Int | None = None


@dataclass
class R2:
    a: str | None = None
    b: Int | None = None
    z: str | None = None


@dataclass
class Inner:
    __namespace__ = "org.shop"
    name: str


@dataclass
class Full:
    flag: bool
    small: Int
    big: int
    half: Float
    whole: float
    blob: bytes
    color: Color
    again: Color
    inner: Inner
    others: list[Inner]
    counts: dict[str, int]
    maybe: Inner | None = None
    tags: list[str] = field(default_factory=list)


FULL = Full(
    True, -1, 1 << 40, 0.5, 0.1, b"b", Color.BLUE, Color.RED, Inner("x"), [Inner("y")], {"n": -3}, Inner("z"), ["t"]
)


def test_the_text_of_the_official_client() -> None:
    """As recorded in the vectors `schema_avro_json_string`: what it wrote for R(a=String(), b=Integer())."""
    recorded = (
        '{\n "type": "record",\n "name": "R",\n "fields": [\n  {\n   "name": "a",\n   "type": [\n'
        '    "null",\n    "string"\n   ]\n  },\n  {\n   "name": "b",\n   "type": [\n'
        '    "null",\n    "int"\n   ]\n  }\n ]\n}'
    )
    assert Avro(R).info.data == Json(R).info.data == recorded.encode()
    assert (Avro(R).info.name, Json(R).info.type) == ("AVRO", 2)


def test_the_bytes_of_the_official_client() -> None:
    assert Avro(R).encode(R("x", 7)) == b"\x02\x02x\x02\x0e"
    assert Avro(R2).encode(R2("y", 8, "q")) == b"\x02\x02y\x02\x10\x02\x02q"
    assert Json(R).decode(b'{\n "a": "x",\n "b": 7\n}') == R("x", 7)


@pytest.mark.parametrize("kind", [Avro, Json])
def test_everything_there_and_back(kind: Any) -> None:
    schema = kind(Full)
    assert schema.decode(schema.encode(FULL)) == FULL
    assert type(schema.decode(schema.encode(FULL)).color) is Color


def test_definitions() -> None:
    found = definition_of(Full)
    by_name = {member["name"]: member["type"] for member in found["fields"]}
    assert by_name["color"] == {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}
    assert (by_name["again"], by_name["maybe"]) == ("Color", ["null", "Inner"])
    assert by_name["inner"] == {
        "type": "record", "name": "Inner", "namespace": "org.shop", "fields": [{"name": "name", "type": "string"}]
    }  # fmt: skip
    assert by_name["others"] == {"type": "array", "items": "Inner"}
    assert by_name["counts"] == {"type": "map", "values": "long"}
    with_defaults = definition_of(R, defaults=True)
    assert list(with_defaults["fields"][0]) == ["name", "default", "type"]


def test_what_another_version_wrote() -> None:
    old, new = Avro(R), Avro(R2)
    assert new.decode(old.encode(R("x", 7)), old.info) == R2("x", 7, None)
    assert old.decode(new.encode(R2("y", 8, "q")), new.info) == R("y", 8)


def test_a_definition_that_is_given() -> None:
    text = '{"type":"record","name":"J","fields":[{"name":"a","type":["null","string"],"default":null}]}'
    schema: Any = Avro(definition=text, properties={"__alwaysAllowNull": "true"})
    assert schema.info.data == text.encode()
    assert schema.decode(schema.encode({"a": "x"})) == {"a": "x"}
    assert schema.decode(schema.encode({})) == {"a": None}
    assert Json(definition=json.loads(text)).decode(b'{"a": 1}') == {"a": 1}


def test_mistakes() -> None:
    @dataclass
    class Odd:
        a: complex

    wrong: Any
    for wrong in (Odd, int):
        with pytest.raises(ConfigError):
            Avro(wrong)
    with pytest.raises(ConfigError):
        Avro()
    schema: Any = Avro(R)
    with pytest.raises(TypeError, match="R is needed, not dict"):
        schema.encode({"a": "x"})
    with pytest.raises(TypeError, match=r"b: str is none of null, int"):
        schema.encode(R("x", "7"))  # type: ignore[arg-type]
    for schema in (Avro(R), Json(R)):
        with pytest.raises(ProtocolError):
            schema.decode(b"\xff{")
    with pytest.raises(ProtocolError):
        Json(R).decode(b"[1]")

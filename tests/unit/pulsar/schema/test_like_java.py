"""Definitions as Java's client writes them, against what it wrote."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar.schema.like_java import java_text
from mqclient.pulsar.schema.records import Avro, Float, Int, Json
from tests.support.tree import ROOT

CASES = json.loads((ROOT / "tests/vectors/definitions.json").read_text())["cases"]
TEXTS = {(case["class"], case["null"]): case["text"] for case in CASES}


class Color(Enum):
    __namespace__ = "Define"
    RED = 1
    BLUE = 2


@dataclass
class Plain:
    __namespace__ = "Define"
    b: Int | None = None
    a: str | None = None


@dataclass
class Inner:
    __namespace__ = "Define"
    name: str | None = None


@dataclass
class Full:
    __namespace__ = "Define"
    flag: bool
    small: Int
    big: int
    half: Float
    whole: float
    blob: bytes | None = None
    color: Color | None = None
    again: Color | None = None
    inner: Inner | None = None
    others: list[Inner] | None = None
    counts: dict[str, int] | None = None
    maybe: Inner | None = None
    tags: list[str] | None = None


@dataclass
class Named:
    """As Inner where nothing may be null."""

    __namespace__ = "Define"
    name: str


@dataclass
class Strict:
    __namespace__ = "Define"
    flag: bool
    small: Int
    big: int
    half: Float
    whole: float
    blob: bytes
    color: Color
    again: Color
    inner: Named
    others: list[Named]
    counts: dict[str, int]
    maybe: Named
    tags: list[str] = field(default_factory=list)


@dataclass
class Defaults:
    __namespace__ = "Define"
    text: str = "x"
    none: str | None = None
    five: Int = 5


for alike, own in (("Inner", Named), ("Full", Strict)):
    own.__name__ = alike


@pytest.mark.parametrize(
    ("cls", "null"), [(Plain, True), (Inner, True), (Full, True), (Named, False), (Strict, False), (Defaults, False)]
)
def test_the_text_of_java(cls: type, null: bool) -> None:
    expected = TEXTS[cls.__name__, null]
    assert java_text(cls) == expected
    kind: Any
    for kind in (Avro, Json):
        assert kind(cls, like="java").info.data == expected.encode()


def test_values_go_by_the_order_of_names() -> None:
    schema = Avro(Plain, like="java")
    assert schema.encode(Plain(7, "x")) == b"\x02\x02x\x02\x0e"
    assert schema.decode(schema.encode(Plain(7, "x"))) == Plain(7, "x")
    full = Full(True, -1, 1 << 40, 0.5, 0.1, b"b", Color.BLUE, None, Inner("x"), [Inner("y")], {"n": -3}, None, ["t"])
    assert Avro(Full, like="java").decode(Avro(Full, like="java").encode(full)) == full


def test_names_of_other_namespaces_are_said_in_full() -> None:
    class Elsewhere(Enum):
        __namespace__ = "org.far"
        ONE = 1

    @dataclass
    class Here:
        one: Elsewhere = Elsewhere.ONE
        two: Elsewhere | None = None

    Here.__annotations__ = {"one": Elsewhere, "two": Elsewhere | None}
    found = json.loads(java_text(Here))
    assert found == {
        "type": "record",
        "name": "Here",
        "fields": [
            {
                "name": "one",
                "type": {"type": "enum", "name": "Elsewhere", "namespace": "org.far", "symbols": ["ONE"]},
                "default": "ONE",
            },
            {"name": "two", "type": ["null", "org.far.Elsewhere"], "default": None},
        ],
    }


def test_mistakes() -> None:
    @dataclass
    class Odd:
        a: complex

    with pytest.raises(ConfigError, match="no form in Avro"):
        java_text(Odd)
    with pytest.raises(ConfigError, match="'python' or 'java'"):
        Avro(Plain, like="go")

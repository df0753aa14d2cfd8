"""Avro schemas: the table below was asked of a real Pulsar 4.2.4, pair by pair."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqclient.broker.pulsar.avro import DEEPEST, InvalidSchema, can_read, parse, same


def record(*fields: Any, name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def of(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def symbols(*given: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(given), **more}


def a(kind: Any) -> dict[str, Any]:
    return record(of("a", kind))


INNER = record(of("x", "int"), name="I")
OTHER = record(of("x", "int"), name="J")
FIXED = {"type": "fixed", "name": "X", "size": 4}
TABLE: dict[str, tuple[Any, Any, bool]] = {
    "the same": (a("int"), a("int"), True),
    "another name": (a("int"), record(of("a", "int"), name="X"), True),
    "another namespace": (record(of("a", "int"), namespace="x"), record(of("a", "int"), namespace="y"), True),
    "wider": (a("int"), a("long"), True),
    "narrower": (a("long"), a("int"), False),
    "text as bytes": (a("string"), a("bytes"), True),
    "new without default": (a("int"), record(of("a", "int"), of("b", "int")), False),
    "new with default": (a("int"), record(of("a", "int"), of("b", "int", default=1)), True),
    "new, nullable, without default": (a("int"), record(of("a", "int"), of("b", ["null", "int"])), False),
    "gone": (record(of("a", "int"), of("b", "int")), a("int"), True),
    "fewer symbols": (a(symbols("x", "y")), a(symbols("x")), True),
    "more symbols": (a(symbols("x")), a(symbols("x", "y")), True),
    "an enum's name": (a(symbols("x")), a(symbols("x", name="G")), False),
    "a wider union": (a("int"), a(["null", "int"]), True),
    "a narrower union": (a(["null", "int"]), a("int"), False),
    "a union of wider": (a(["null", "int"]), a(["null", "long"]), True),
    "a union in another order": (a(["null", "int"]), a(["int", "null"]), True),
    "a nested name": (a(INNER), a(OTHER), True),
    "a nested name in a union": (a(["null", INNER]), a(["null", OTHER]), True),
    "an array of wider": (a({"type": "array", "items": "int"}), a({"type": "array", "items": "long"}), True),
    "a map of others": (a({"type": "map", "values": "int"}), a({"type": "map", "values": "string"}), False),
    "a fixed size": (a(FIXED), a({**FIXED, "size": 5}), False),
    "a fixed name": (a(FIXED), a({**FIXED, "name": "Y"}), False),
    "a field's alias": (a("int"), record(of("b", "int", aliases=["a"])), True),
    "itself inside": (
        record(of("n", ["null", "R"])),
        record(of("n", ["null", "R"]), of("v", "int", default=0)),
        True,
    ),
    "a logical type": (a("long"), a({"type": "long", "logicalType": "timestamp-millis"}), True),
    "no record": ("int", "long", True),
}


@pytest.mark.parametrize("case", TABLE)
def test_the_table(case: str) -> None:
    written, read, expected = TABLE[case]
    assert can_read(parse(json.dumps(read).encode()), parse(json.dumps(written).encode())) is expected


def test_what_differs_deep_inside_of_itself() -> None:
    old = parse(json.dumps(record(of("n", ["null", "R"]), of("v", "long"))).encode())
    new = parse(json.dumps(record(of("n", ["null", "R"]), of("v", "int"))).encode())
    assert (can_read(old, new), can_read(new, old)) == (True, False)


def test_sameness_is_of_the_meaning() -> None:
    given = record(
        of("a", ["null", INNER], default=None), of("b", {"type": "array", "items": "I"}), of("r", ["null", "R"])
    )
    other = {"fields": given["fields"], "doc": "a text", "name": "R", "type": "record"}
    one = parse(json.dumps(given).encode())
    assert same(one, parse(json.dumps(other, indent=3).encode()))
    for changed in (
        record(*given["fields"][:2]),
        record(*given["fields"], name="S"),
        record(of("a", ["null", INNER]), *given["fields"][1:]),
        record(of("a", ["null", OTHER], default=None), of("b", "int"), of("r", "int")),
    ):
        assert not same(one, parse(json.dumps(changed).replace('"R"', f'"{changed["name"]}"').encode()))
    assert not same(parse(b'{"type": "array", "items": "int"}'), parse(b'{"type": "array", "items": "long"}'))


@pytest.mark.parametrize(
    "given",
    [
        "{",
        "3",
        "{}",
        '"nobody"',
        '[["null"]]',
        '{"type": "array"}',
        '{"type": "record", "fields": []}',
        '{"type": "record", "name": "R"}',
        '{"type": "record", "name": "R", "fields": [3]}',
        '{"type": "record", "name": "R", "fields": [{"name": "b", "type": "int", "default": "x"}]}',
        '{"type": "record", "name": "R", "fields": [{"name": "b", "type": {"type": "fixed", "name": "R", "size": 1}}]}',
        "[" * 100_000,
        '{"type":' * (DEEPEST + 2) + '"int"' + "}" * (DEEPEST + 2),
    ],
)
def test_what_is_no_schema(given: str) -> None:
    with pytest.raises(InvalidSchema):
        parse(given.encode())


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        ("int", 3),
        ("double", 1),
        ("boolean", True),
        ("string", "x"),
        ("null", None),
        (["null", "int"], 7),
        ({"type": "array", "items": "int"}, []),
        ({"type": "map", "values": "int"}, {}),
        (INNER, {"x": 1}),
        (symbols("x"), "x"),
    ],
)
def test_defaults(kind: Any, default: Any) -> None:
    assert parse(json.dumps(record(of("a", kind, default=default))).encode()).fields[0].has_default


def test_names_in_namespaces() -> None:
    inner = {"type": "fixed", "name": "X", "size": 4}
    given = record(of("a", inner), of("b", "X"), of("c", "n.X"), namespace="n")
    assert {field.type.name for field in parse(json.dumps(given).encode()).fields} == {"n.X"}
    assert parse(json.dumps({**inner, "name": "m.X"}).encode()).name == "m.X"

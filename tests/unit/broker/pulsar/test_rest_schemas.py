"""Schemas over HTTP; statuses as a real Pulsar 4.2.4 gave them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.pulsar_world import PulsarWorld

PLACE = "schemas/public/default/t"


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def avro(*fields: str, kind: str = "AVRO") -> dict[str, Any]:
    shape = {"type": "record", "name": "R", "fields": [{"name": name, "type": "int"} for name in fields]}
    return {"type": kind, "schema": json.dumps(shape), "properties": {"a": "b"}}


def test_adding_and_asking(world: PulsarWorld) -> None:
    assert world.rest("GET", f"{PLACE}/schema") == 404
    assert world.rest("GET", f"{PLACE}/schemas") == 404
    assert world.rest("POST", f"{PLACE}/schema", avro("a")) == {"version": {"version": 0}}
    told = world.rest("GET", f"{PLACE}/schema")
    assert (told["version"], told["type"], told["properties"]) == (0, "AVRO", {"a": "b"})
    assert json.loads(told["data"])["name"] == "R"
    assert world.rest("GET", f"{PLACE}/schema/0") == told
    assert world.rest("GET", f"{PLACE}/schema/7") == 404
    assert world.rest("GET", f"{PLACE}/schema/x") == 400
    assert world.rest("GET", f"{PLACE}/schemas") == {"getSchemaResponses": [told]}
    assert world.rest("POST", f"{PLACE}/version", avro("a")) == {"version": 0}
    assert world.rest("POST", f"{PLACE}/version", avro("zz")) == {"version": -1}


def test_trying(world: PulsarWorld) -> None:
    world.rest("PUT", "namespaces/public/default/schemaCompatibilityStrategy", "BACKWARD")
    world.rest("POST", f"{PLACE}/schema", avro("a"))
    fine = {"schemaCompatibilityStrategy": "BACKWARD", "compatibility": True}
    assert world.rest("POST", f"{PLACE}/compatibility", avro()) == fine
    assert world.rest("POST", f"{PLACE}/compatibility", avro("a", "b")) == 409
    assert world.rest("POST", f"{PLACE}/schema", avro("a", kind="JSON")) == 409
    assert world.rest("PUT", "namespaces/public/default/schemaCompatibilityStrategy", "SOMETIMES") == 400


def test_deleting(world: PulsarWorld) -> None:
    assert world.rest("DELETE", f"{PLACE}/schema") == 404
    world.rest("POST", f"{PLACE}/schema", avro("a"))
    assert world.rest("DELETE", f"{PLACE}/schema") == {"version": 1}
    assert world.rest("GET", f"{PLACE}/schema") == 404
    assert world.rest("POST", f"{PLACE}/schema", {"type": "STRING", "schema": ""}) == {"version": {"version": 2}}
    assert world.rest("GET", f"{PLACE}/schema")["type"] == "STRING"


def test_keys_and_values(world: PulsarWorld) -> None:
    names = {"key.schema.type": "STRING", "value.schema.type": "AVRO", "kv.encoding.type": "INLINE"}
    halves = {"key": "", "value": json.loads(avro("a")["schema"])}
    given = {"type": "KEY_VALUE", "schema": json.dumps(halves), "properties": names}
    assert world.rest("POST", f"{PLACE}/schema", given) == {"version": {"version": 0}}
    assert json.loads(world.rest("GET", f"{PLACE}/schema")["data"]) == halves


def test_what_is_no_schema(world: PulsarWorld) -> None:
    assert world.rest("POST", f"{PLACE}/schema", {"type": "NOPE", "schema": ""}) == 422
    assert world.rest("POST", f"{PLACE}/schema", {"type": "AVRO", "schema": "{"}) == 409
    assert world.rest("POST", f"{PLACE}/schema", {"type": "KEY_VALUE", "schema": "[]"}) == 422

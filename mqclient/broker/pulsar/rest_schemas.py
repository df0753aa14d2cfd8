"""Schemas over HTTP: asking, adding, deleting, trying."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

from mqclient.broker.pulsar import compatibility
from mqclient.broker.pulsar.rest_call import Call, RestError
from mqclient.broker.pulsar.schema import TYPES, Schema
from mqclient.pulsar.names import TopicName

PLACE = "admin/v2/schemas/{tenant}/{namespace}/{topic}"


def latest(call: Call) -> Any:
    return _found(call, None)


def one(call: Call) -> Any:
    text = call.parts["version"]
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise RestError(400, f"a version is a number, not {text!r}")
    return _found(call, int(text))


def _found(call: Call, version: int | None) -> Any:
    found = call.topics.schemas.get(_name(call), version)
    if found is None:
        raise RestError(404, "Schema not found")
    return _told(*found)


def _told(version: int, schema: Schema) -> dict[str, Any]:
    data = schema.text
    if schema.type == compatibility.KEY_VALUE:
        key, value = compatibility.halves(schema)
        data = json.dumps({"key": _as_json(key), "value": _as_json(value)})
    return {
        "version": version,
        "type": schema.type_name,
        "timestamp": schema.stored_at,
        "data": data,
        "properties": schema.properties,
    }


def _as_json(half: Schema) -> Any:
    return json.loads(half.data) if half.type in compatibility.BY_AVRO else half.text


def every(call: Call) -> Any:
    found = call.topics.schemas.versions(_name(call))
    told = [_told(number, schema) for number, schema in enumerate(found) if not schema.deleted]
    if not told:
        raise RestError(404, "Schema not found")
    return {"getSchemaResponses": told}


def add(call: Call) -> Any:
    return {"version": {"version": call.topics.schemas.add(_name(call), _given(call), by_client=False)}}


def delete(call: Call) -> Any:
    name = _name(call)
    if not call.topics.schemas.living(name):
        raise RestError(404, "Schema not found")
    return {"version": call.topics.schemas.delete(name)}


def version(call: Call) -> Any:
    found = call.topics.schemas.version_of(_name(call), _given(call))
    return {"version": -1 if found is None else found}


def try_it(call: Call) -> Any:
    schemas, name, schema = call.topics.schemas, _name(call), _given(call)
    strategy = schemas.strategy(name)
    compatibility.check(schema, schemas.living(name), strategy)
    return {"schemaCompatibilityStrategy": strategy, "compatibility": True}


def _name(call: Call) -> TopicName:
    return call.topics.check(f"persistent://{call.namespace}/{call.parts['topic']}")


def _given(call: Call) -> Schema:
    given = call.object()
    numbers = {name: number for number, name in TYPES.items()} | {"BYTES": 0}
    kind, text = numbers.get(str(given.get("type"))), given.get("schema", "")
    if kind is None or not isinstance(text, str):
        raise RestError(422, f"a schema has a type, one of {', '.join(TYPES.values())}, and a text")
    data = text.encode()
    properties = {str(key): str(value) for key, value in (given.get("properties") or {}).items()}
    if kind == compatibility.KEY_VALUE:
        halves = json.loads(text)
        if not isinstance(halves, dict) or not {"key", "value"} <= set(halves):
            raise RestError(422, "a key-value schema's text has a key and a value")
        texts = [half if isinstance(half, str) else json.dumps(half) for half in (halves["key"], halves["value"])]
        data = b"".join(struct.pack(">i", len(half.encode())) + half.encode() for half in texts)
    schema = Schema(kind, data, properties)
    compatibility.validate(schema)
    return schema


ROUTES: dict[str, Callable[[Call], Any]] = {
    f"GET {PLACE}/schema": latest,
    f"GET {PLACE}/schema/{{version}}": one,
    f"GET {PLACE}/schemas": every,
    f"POST {PLACE}/schema": add,
    f"DELETE {PLACE}/schema": delete,
    f"POST {PLACE}/version": version,
    f"POST {PLACE}/compatibility": try_it,
}

"""One schema, from the protocol's message."""

from __future__ import annotations

from mqclient import _schema
from mqclient.broker.pulsar.schema import TYPES, Schema


def test_of_a_message() -> None:
    given = _schema.message("Schema")(name="x", type=4, schema_data=b"{}\xff", properties=[{"key": "a", "value": "b"}])
    schema = Schema.of(given)
    assert (schema.type_name, schema.text, schema.properties) == ("AVRO", "{}\ufffd", {"a": "b"})
    assert Schema(99, b"").type_name == "99"


def test_the_names_are_those_of_the_protocol() -> None:
    wire = {name.lower(): number for name, number in _schema.enum("Schema.Type").items()}
    for number, name in TYPES.items():
        assert wire[name.replace("_", "").lower().replace("boolean", "bool")] == number

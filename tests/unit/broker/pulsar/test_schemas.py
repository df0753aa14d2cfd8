"""Schemas of topics, frame by frame: versions, producers, consumers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqclient.broker.pulsar import schemas
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.schema import Schema
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.names import TopicName
from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def raw(world: PulsarWorld) -> RawClient:
    return RawClient(world)


def avro(*fields: str, **more: Any) -> dict[str, Any]:
    shape = {"type": "record", "name": "R", "fields": [{"name": name, "type": "int", **more} for name in fields]}
    return {"name": "AVRO", "type": 4, "schema_data": json.dumps(shape).encode()}


TEXT = {"name": "String", "type": 1, "schema_data": b""}


def make(raw: RawClient, producer_id: int, schema: Any = None, topic: str = "t") -> Any:
    given = {} if schema is None else {"schema": schema}
    return raw.ask("PRODUCER", topic=topic, producer_id=producer_id, **given)[1]


def test_versions(raw: RawClient) -> None:
    assert make(raw, 1).schema_version == b""
    assert make(raw, 2, avro("a")).schema_version == bytes(8)
    assert make(raw, 3, avro("a")).schema_version == bytes(8)
    assert make(raw, 4, avro("a", "b")).error == ServerError.IncompatibleSchema
    assert 4 not in raw.session.producers
    assert make(raw, 5, avro("a", "b", default=0)).schema_version == bytes([0] * 7 + [1])
    assert make(raw, 6).schema_version == b""
    raw.world.rest("PUT", "namespaces/public/default/schemaCompatibilityStrategy", "ALWAYS_COMPATIBLE")
    assert make(raw, 7, TEXT).schema_version == bytes([0] * 7 + [2])
    assert make(raw, 8, avro("a")).schema_version == bytes(8)


def test_partitions_share_them(raw: RawClient) -> None:
    raw.world.rest("PUT", "persistent/public/default/t/partitions", 2)
    make(raw, 1, avro("a"), "t-partition-0")
    assert make(raw, 2, TEXT, "t-partition-1").error == ServerError.IncompatibleSchema
    told = raw.ask("GET_SCHEMA", topic="t")[1]
    assert (told.schema.name, told.schema.type, told.schema_version) == ("public/default/t", 4, bytes(8))
    raw.world.rest("DELETE", "persistent/public/default/t/partitions", force="true")
    assert raw.ask("GET_SCHEMA", topic="t")[1].error_code == ServerError.TopicNotFound


def test_asking(raw: RawClient) -> None:
    assert raw.ask("GET_SCHEMA", topic="t")[1].error_code == ServerError.TopicNotFound
    make(raw, 1, {**TEXT, "properties": [{"key": "k", "value": "v"}]})
    told = raw.ask("GET_SCHEMA", topic="t")[1]
    assert [(pair.key, pair.value) for pair in told.schema.properties] == [("k", "v")]
    assert raw.ask("GET_SCHEMA", topic="t", schema_version=bytes(8))[1].schema_version == bytes(8)
    assert raw.ask("GET_SCHEMA", topic="t", schema_version=bytes([0] * 7 + [1]))[1].error_code == 11
    assert raw.ask("GET_SCHEMA", topic="t", schema_version=b"\xff" * 8)[1].error_code == ServerError.TopicNotFound
    assert raw.ask("GET_SCHEMA", topic="t", schema_version=b"")[1].error_code == ServerError.IncompatibleSchema
    assert raw.ask("GET_SCHEMA", topic="a/b")[1].error_code == ServerError.InvalidTopicName


def test_asking_or_making(raw: RawClient) -> None:
    asked = {"topic": "t", "schema": TEXT}
    assert raw.ask("GET_OR_CREATE_SCHEMA", **asked)[1].error_code == ServerError.TopicNotFound
    make(raw, 1)
    for _ in range(2):
        assert raw.ask("GET_OR_CREATE_SCHEMA", **asked)[1].schema_version == bytes(8)
    refused = raw.ask("GET_OR_CREATE_SCHEMA", topic="t", schema=avro("a"))[1]
    assert (refused.error_code, refused.HasField("schema_version")) == (ServerError.IncompatibleSchema, False)


def test_consumers(raw: RawClient) -> None:
    assert raw.subscribe(1, schema=avro("a"))[0] == "SUCCESS"
    assert raw.ask("GET_SCHEMA", topic="t")[1].schema_version == bytes(8)
    assert raw.subscribe(2, subscription="b", schema=TEXT)[1].error == ServerError.IncompatibleSchema
    assert raw.subscribe(3, subscription="c", schema=avro())[0] == "SUCCESS"
    refused = raw.subscribe(4, subscription="d", schema=avro("a", "b"))[1]
    assert (refused.error, "strategy BACKWARD" in refused.message) == (ServerError.IncompatibleSchema, True)
    assert (
        raw.subscribe(5, subscription="e", schema={"name": "AutoConsume", "type": 21, "schema_data": b""})[0]
        == "SUCCESS"
    )
    assert len(raw.world.door.topics.schemas.versions(TopicName.parse("t"))) == 1


def test_a_consumer_on_a_topic_in_use_without_schema(raw: RawClient) -> None:
    raw.produce([b"x"])
    assert raw.subscribe(schema=TEXT)[1].message == "Topic does not have schema to check"


def test_policies(raw: RawClient) -> None:
    make(raw, 1, avro("a", default=0))
    raw.world.rest("POST", "namespaces/public/default/isAllowAutoUpdateSchema", False)
    assert "auto updating is disabled" in make(raw, 2, avro("a", "b", default=0)).message
    raw.world.rest("POST", "namespaces/public/default/isAllowAutoUpdateSchema", True)
    assert make(raw, 3, avro("a", "b", default=0)).schema_version[-1] == 1
    raw.world.rest("POST", "persistent/public/default/t/schemaValidationEnforced", True)
    assert make(raw, 4).error == ServerError.IncompatibleSchema
    assert make(raw, 5, topic="other").schema_version == b""


def test_there_is_an_end(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "MOST", 1)
    name, kept = TopicName.parse("t"), world.door.topics.schemas
    kept.add(name, Schema(1, b""))
    with pytest.raises(Refused):
        kept.add(name, Schema(1, b"null"))

"""Schemas over the embedded broker and the real one: values there and back, versions, what the broker refuses."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto

from mqclient.errors import ConfigError
from mqclient.pulsar import aio, schema
from mqclient.pulsar.codes import BrokerError, ServerError
from tests.support.pulsar_cluster import PulsarCluster


@dataclass
class Order:
    number: int
    shop: str | None = None


@dataclass
class Later:
    number: int
    shop: str | None = None
    note: str | None = None


@dataclass
class Other:
    number: str


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (schema.STRING, "text"),
        (schema.INT64, 1 << 40),
        (schema.Json(Order), Order(7, "north")),
        (schema.Avro(Order), Order(7)),
        (schema.ProtobufNative(DescriptorProto), DescriptorProto(name="x")),
        (schema.KeyValue(schema.STRING, schema.Avro(Order)), ("k", Order(1))),
        (schema.KeyValue(schema.STRING, schema.INT32, "separated"), ("k", 5)),
        (schema.BYTES, b"x"),
    ],
    ids=["string", "int64", "json", "avro", "protobuf", "inline", "separated", "bytes"],
)
async def test_values_there_and_back(pulsar: PulsarCluster, topic: str, impl: str, kind: Any, value: Any) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing", schema=kind) as consumer:
            async with client.producer(topic, schema=kind) as producer:
                await producer.send(value)
                await producer.send_many([value, value])
            for _ in range(3):
                message = await consumer.receive(60)
                assert message.value == value
                assert (message.schema_version == b"\0" * 8) == (kind is not schema.BYTES)
                await consumer.ack(message)


async def test_what_another_version_wrote(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    old, new = schema.Avro(Order, defaults=True), schema.Avro(Later, defaults=True)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.reader(topic, start="earliest", schema=new) as reader:
            async with client.producer(topic, schema=new) as producer:
                await producer.send(Later(2, "south", "soon"))
            async with client.producer(topic, schema=old) as producer:
                await producer.send(Order(1, "north"))
            first, second = await reader.receive(60), await reader.receive(60)
            assert (first.value, second.value) == (Later(2, "south", "soon"), Later(1, "north", None))
            assert first.schema_version != second.schema_version


async def test_several_schemas_of_one_producer(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """The topic's schema goes on while a producer is open; readers of either version, and of whatever it is."""
    old, new = schema.Avro(Order, defaults=True), schema.Avro(Later, defaults=True)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, schema=old) as producer:
            later = producer.with_schema(new)
            await producer.send(Order(1, "north"))
            await later.send(Later(2, "south", "soon"))
            assert all(one.ok for one in await later.send_many([Later(3), Later(4)]))
            await producer.send(Order(5))
            with pytest.raises(BrokerError) as caught:
                await producer.with_schema(schema.Avro(Other)).send(Other("6"))
            assert caught.value.code == ServerError.IncompatibleSchema
            await later.send(Later(6))
        seen = [1, 2, 3, 4, 5, 6]
        async with client.reader(topic, start="earliest", schema=new) as reader:
            messages = [await reader.receive(60) for _ in seen]
            assert [message.value.number for message in messages] == seen
            assert messages[1].value == Later(2, "south", "soon")
            versions = [message.schema_version for message in messages]
            assert versions[0] == versions[4] != versions[1] == versions[2] == versions[5]
        async with client.reader(topic, start="earliest", schema=old) as reader:
            assert [(await reader.receive(60)).value.number for _ in seen] == seen
        async with client.reader(topic, start="earliest", schema=schema.AUTO_CONSUME) as reader:
            assert (await reader.receive(60)).value == {"number": 1, "shop": "north"}
            assert (await reader.receive(60)).value == {"number": 2, "shop": "south", "note": "soon"}


async def test_whatever_a_topic_has(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, schema=schema.Avro(Order)) as producer:
            await producer.send(Order(7, "north"))
        async with client.reader(topic, start="earliest", schema=schema.AUTO_CONSUME) as reader:
            assert (await reader.receive(60)).value == {"number": 7, "shop": "north"}


async def test_a_definition_that_does_not_fit(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, schema=schema.Avro(Order)):
            with pytest.raises(BrokerError) as caught:
                await client.producer(topic, schema=schema.Avro(Other), timeout=10)
            assert caught.value.code == ServerError.IncompatibleSchema
            with pytest.raises(BrokerError) as caught:
                await client.consumer(topic, "billing", schema=schema.Avro(Other), timeout=10)
            assert caught.value.code == ServerError.IncompatibleSchema


async def test_mistakes_name_the_cure(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        with pytest.raises(ConfigError, match="for consumers"):
            await client.producer(topic, schema=schema.AUTO_CONSUME)
        async with client.producer(topic, schema=schema.Avro(Order)) as producer:
            with pytest.raises(TypeError, match="Order is needed"):
                await producer.send({"number": 1})  # type: ignore[arg-type]
        async with client.producer(topic) as producer:
            with pytest.raises(TypeError, match="schema"):
                await producer.send("text")


async def test_a_null_value_and_no_schema(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.reader(topic, start="earliest") as reader, client.producer(topic) as producer:
            await producer.send(None)
            await producer.send(b"x")
            assert ((await reader.receive(60)).value, (await reader.receive(60)).value) == (None, b"x")

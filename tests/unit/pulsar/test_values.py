"""Definitions of what was written: asked once, in order, errors where they belong, permits right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mqclient.pulsar import schema
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.schema.base import SchemaInfo, SchemaType
from tests.support.pulsar_world import PulsarWorld

VERSION = b"\0" * 8


@dataclass
class Order:
    number: int


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def with_version(world: PulsarWorld, producer: Any, version: bytes | None = VERSION) -> Any:
    """As if the broker had answered PRODUCER with this version."""
    producer.framer.schema_version = version
    return world.sender(producer)


def consumer(world: PulsarWorld, kind: Any, topic: str = "t", **options: Any) -> Any:
    return world.consumer(world.client(), topic, "s", schema=kind, start="earliest", **options)


def test_values_of_a_fixed_kind_ask_nobody(world: PulsarWorld) -> None:
    made = consumer(world, schema.STRING)
    sender: Any = world.sender(world.producer(world.client(), "t", schema=schema.STRING))
    sender.send("text")
    assert world.face(made).receive(5).value == "text"
    assert len(made.values) == 0


def test_versions_are_asked_for_once_and_entries_stay_in_order(world: PulsarWorld) -> None:
    made = consumer(world, schema.Avro(Order))
    sender: Any = world.sender(world.producer(world.client(), "t", schema=schema.Avro(Order), batching=False))
    world.control.delay("GET_SCHEMA", 1.0)
    sender.send_many([Order(number) for number in range(5)])
    world.world.advance(0.5)
    assert (len(made.values), len(made.mailbox)) == (5, 0)
    messages = [world.face(made).receive(5) for _ in range(5)]
    assert [message.value for message in messages] == [Order(number) for number in range(5)]
    world.settled(made)


def test_a_version_that_is_not_there_is_an_error_of_the_value(world: PulsarWorld) -> None:
    made = consumer(world, schema.Avro(Order))
    world.control.answer("GET_SCHEMA", ServerError.TopicNotFound, "no such version")
    sender = with_version(world, world.producer(world.client(), "t"), b"\0" * 7 + b"\x09")
    sender.send(b"\x02")
    message = world.face(made).receive(5)
    with pytest.raises(BrokerError, match="no such version"):
        message.value  # noqa: B018
    assert message.body == b"\x02"
    world.settled(made)


def test_a_lost_connection_while_it_is_asked_for(world: PulsarWorld) -> None:
    made = consumer(world, schema.Avro(Order))
    sender: Any = world.sender(world.producer(world.client(), "t", schema=schema.Avro(Order)))
    world.control.delay("GET_SCHEMA", 5.0)
    sender.send(Order(1))
    world.world.advance(0.5)
    assert len(made.values) == 1
    world.cut()
    assert world.face(made).receive(60).value == Order(1)
    world.settled(made)


def test_a_seek_drops_what_waits(world: PulsarWorld) -> None:
    made = consumer(world, schema.Avro(Order))
    sender: Any = world.sender(world.producer(world.client(), "t", schema=schema.Avro(Order)))
    world.control.delay("GET_SCHEMA", 2.0)
    sender.send(Order(1))
    world.world.advance(0.1)
    with made.client.driver.enter():
        made.redeliver()
    assert world.face(made).receive(60).value == Order(1)
    world.settled(made)


def test_the_wire_s_form() -> None:
    from mqclient import _schema
    from mqclient.pulsar import requests

    info = SchemaInfo("String", SchemaType.STRING, b"d", {"k": "v"})
    wire = _schema.message("Schema")(**(requests.schema_fields(info) or {}))
    assert requests.schema_info(wire) == info
    assert requests.schema_fields(SchemaInfo("BYTES", None)) is None

"""How producers, consumers and readers come to be: patience where it helps, a clear end where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError, DeadlineError
from mqclient.pulsar.codes import BrokerError, ServerError
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def test_a_broker_that_is_not_ready_is_asked_again(world: PulsarWorld) -> None:
    world.control.answer("PARTITIONED_METADATA", ServerError.ServiceNotReady, "soon", times=2)
    world.control.answer("LOOKUP", ServerError.ServiceNotReady, "soon", times=2)
    world.control.answer("PRODUCER", ServerError.ServiceNotReady, "soon", times=2)
    producer = world.producer(world.client(), "t")
    assert producer.diagnose()["state"] == "attached"
    assert 1000.5 < world.world.mono < 1003


@pytest.mark.parametrize("request_name", ["PARTITIONED_METADATA", "LOOKUP", "SUBSCRIBE"])
def test_a_refusal_is_told_at_once(world: PulsarWorld, request_name: str) -> None:
    world.control.answer(request_name, ServerError.AuthorizationError, "not you", times=100)
    client = world.client()
    with pytest.raises(BrokerError, match="not you"):
        world.consumer(client, "t", "s")
    assert world.world.mono < 1001
    assert not client._members


def test_the_operation_has_a_deadline(world: PulsarWorld) -> None:
    world.control.drop("LOOKUP", times=100)
    with pytest.raises(DeadlineError):
        world.producer(world.client(operation_timeout=3), "t")
    assert world.world.mono == pytest.approx(1003, abs=0.2)


def test_unknown_namespaces_and_names(world: PulsarWorld) -> None:
    client = world.client()
    with pytest.raises(BrokerError) as caught:
        world.producer(client, "nobody/there/t")
    assert caught.value.code == ServerError.TopicNotFound
    with pytest.raises(ConfigError, match="topic"):
        world.producer(client, "a/b")
    with pytest.raises(ConfigError, match="a subscription has a name"):
        world.consumer(client, "t", "")


def test_a_reader_keeps_nothing(world: PulsarWorld) -> None:
    client = world.client()
    reader = world.reader(client, "t", "earliest")
    assert (reader.options.durable, reader.options.type) == (False, "exclusive")
    subscriptions = world.door.topics.make("t").subscriptions
    assert list(subscriptions) == [reader.subscription]
    world.face(reader).close()
    assert not subscriptions


def test_unsubscribing(world: PulsarWorld) -> None:
    client = world.client()
    first = world.consumer(client, "t", "s", type="shared")
    second = world.consumer(client, "t", "s", type="shared")
    with pytest.raises(BrokerError):
        world.face(first).unsubscribe()
    world.face(second).unsubscribe(force=True)
    assert "s" not in world.door.topics.make("t").subscriptions

"""The administration as a whole: what is routed where, and how refusals are told."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar.http import Request
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def test_health(world: PulsarWorld) -> None:
    assert world.door.rest.answer(Request("GET", ("status.html",))).content == b"OK"
    assert world.rest("GET", "brokers/health") == b"OK"
    assert world.rest("GET", "clusters") == ["standalone"]


def test_refusals(world: PulsarWorld) -> None:
    assert world.rest("GET", "functions/public/default") == 501
    assert world.rest("GET", "a/b/c/d/e/f/g/h") == 501
    assert world.rest("POST", "clusters") == 405
    broken = Request("PUT", ("admin", "v2", "persistent", "public", "default", "t", "partitions"), body=b"{")
    assert world.door.rest.answer(broken).status == 400
    assert world.rest("PUT", "persistent/public/default/t/partitions", "many") == 400
    assert world.rest("PUT", "persistent/public/default/t/partitions", 0) == 406
    assert world.rest("PUT", "memory/public/default/t") == 501
    answer = world.door.rest.answer(Request("HEAD", ("admin", "v2", "clusters")))
    assert answer.status == 200


def test_a_lookup(world: PulsarWorld) -> None:
    place = ("lookup", "v2", "topic", "persistent", "public", "default", "orders/eu")
    told = world.door.rest.answer(Request("GET", place))
    assert told.status == 412  # a local name has no slash
    told = world.door.rest.answer(Request("GET", (*place[:-1], "orders")))
    assert (told.content["brokerUrl"], told.content["httpUrl"]) == ("pulsar://broker:6650", "http://broker:8080")
    assert {"brokerUrlTls", "brokerUrlSsl"} <= set(told.content)

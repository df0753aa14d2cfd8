"""How topics end."""

from __future__ import annotations

from typing import Any

from mqclient.broker.pulsar import life
from tests.support.pulsar_world import PulsarWorld, RawClient


def test_moved_closed_deleted(codec: Any) -> None:
    world = PulsarWorld(codec)
    raw = RawClient(world)
    raw.produce([b"a"])
    raw.subscribe()
    raw.subscribe(1, subscription="reader", durable=False)
    topic = world.door.topics.make("t")
    raw.events.clear()
    life.unload(topic)
    world.world.run()
    assert sorted(name for name, _ in raw.events) == ["CLOSE_CONSUMER", "CLOSE_CONSUMER", "CLOSE_PRODUCER"]
    assert (raw.session.producers, raw.session.consumers) == ({}, {})
    assert list(topic.subscriptions) == ["s", "reader"]
    life.terminate(topic)
    assert topic.terminated
    life.delete(world.door.topics, topic)
    assert (world.door.topics.get("t"), topic.subscriptions) == (None, {})

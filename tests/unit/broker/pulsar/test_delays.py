"""Entries that wait for their time: alone, and through a subscription."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar.delays import Delays
from tests.support.pulsar_world import PulsarWorld, RawClient


def send(raw: RawClient, body: bytes, deliver_at: int | None) -> None:
    metadata = raw.codec.encode_metadata("p", 0, raw.world.world.wall_ms, deliver_at=deliver_at)
    raw.write(raw.codec.encode_send(1, 0, metadata, body))


@pytest.fixture
def raw(codec: Any) -> RawClient:
    raw = RawClient(PulsarWorld(codec))
    raw.ask("PRODUCER", topic="t", producer_id=1)
    return raw


def bodies(raw: RawClient) -> list[bytes]:
    found = [bytes(entry.payload) for entry in raw.entries()]
    raw.events.clear()
    return found


@pytest.mark.parametrize("kind", [1, 3])
def test_in_time(raw: RawClient, kind: int) -> None:
    now = raw.world.world.wall_ms
    raw.subscribe(subType=kind)
    raw.flow(100)
    for body, delay in ((b"late", 3000), (b"soon", 1500), (b"past", -5)):
        send(raw, body, now + delay)
    send(raw, b"now", None)
    assert bodies(raw) == [b"past", b"now"]
    raw.world.world.advance(1.4)
    assert bodies(raw) == []
    raw.world.world.advance(0.2)
    assert bodies(raw) == [b"soon"]
    raw.world.world.advance(1.5)
    assert bodies(raw) == [b"late"]


@pytest.mark.parametrize("kind", [0, 2])
def test_not_for_one_active_consumer(raw: RawClient, kind: int) -> None:
    raw.subscribe(subType=kind)
    raw.flow(100)
    raw.events.clear()
    send(raw, b"x", raw.world.world.wall_ms + 9999)
    assert bodies(raw) == [b"x"]


def test_whoever_comes_later_waits_too(raw: RawClient) -> None:
    raw.subscribe(subType=1)
    raw.flow(100)
    send(raw, b"x", raw.world.world.wall_ms + 1000)
    raw.ask("CLOSE_CONSUMER", consumer_id=0)
    raw.world.world.advance(0.5)
    raw.subscribe(subType=1)
    assert raw.flow(100) == []
    raw.world.world.advance(0.6)
    assert bodies(raw) == [b"x"]
    raw.ask("CLOSE_CONSUMER", consumer_id=0)
    raw.subscribe(subType=1)
    assert [entry.redelivery_count for entry in raw.flow(1)] == [0]


def test_the_alarm_follows_the_first(codec: Any) -> None:
    world = PulsarWorld(codec)
    clock, calls = world.house.clock, []
    delays = Delays(lambda: calls.append(len(delays)))
    delays.add(1, clock.wall_ms() + 2000, clock)
    delays.add(2, clock.wall_ms() + 1000, clock)
    world.world.advance(1.1)
    assert (calls, delays.take(clock), len(delays)) == ([2], [2], 1)
    delays.clear()
    world.world.advance(2)
    assert calls == [2]

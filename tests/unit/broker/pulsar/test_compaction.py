"""How compactions are run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqclient.broker.pulsar import compaction
from tests.support.pulsar_world import PulsarWorld, RawClient

T = "persistent/public/default/t"


def test_over_rest(codec: Any) -> None:
    world = PulsarWorld(codec)
    world.rest("PUT", f"{T}/partitions", 2)
    part = f"{T}-partition-1"
    assert world.rest("GET", f"{part}/compaction") == {"status": "NOT_RUN", "lastError": ""}
    assert world.rest("GET", f"{T}/compaction") == 405
    RawClient(world).produce([b"keyless"], topic="t-partition-1")
    world.rest("PUT", f"{T}/compaction")
    assert world.rest("GET", f"{part}/compaction")["status"] == "SUCCESS"
    assert world.rest("PUT", "persistent/public/default/nobody/compaction") == 404


def test_one_at_a_time(codec: Any) -> None:
    world = PulsarWorld(codec)
    topic = world.door.topics.make("t")
    waiting: list[Callable[[], None]] = []
    assert topic.compaction.start(topic, codec, waiting.append)
    assert topic.compaction.status == "RUNNING"
    assert not topic.compaction.start(topic, codec, waiting.append)
    assert world.rest("PUT", f"{T}/compaction") == 409
    while waiting:
        waiting.pop()()
    assert topic.compaction.status == "SUCCESS"
    assert topic.compaction.start(topic, codec, waiting.append)


def test_one_that_fails(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Any:
        yield from ()
        raise ZeroDivisionError

    monkeypatch.setattr(compaction, "compact", fail)
    world = PulsarWorld(codec)
    world.rest("PUT", T)
    world.rest("PUT", f"{T}/compaction")
    assert world.rest("GET", f"{T}/compaction") == {"status": "ERROR", "lastError": "ZeroDivisionError"}

"""A queue that finds its size: small for who is slow or memory is short, large for who keeps up."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.adaptive import Adaptive
from mqclient.pulsar.permits import Permits
from tests.support.pulsar_world import PulsarWorld, single


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def window(consumer: Any) -> int:
    size: int = consumer.permits.diagnose()["window"]
    return size


def test_it_grows_while_receives_find_nothing(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", receiver_queue=100, queue_memory=1 << 20)
    assert window(consumer) == 1
    world.sender(world.producer(client, "t", batching=False)).send_many([b"x" * 100] * 400)
    face = world.face(consumer)
    sizes = []
    for _ in range(400):
        face.receive(1)
        sizes.append(window(consumer))
    assert sizes == sorted(sizes)
    assert sizes[-1] == 100
    world.settled(consumer)
    with pytest.raises(Exception, match="ran out"):
        face.receive(1)  # nothing there: that is no reason to grow
    assert window(consumer) == 100


def test_memory_limits_it(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", receiver_queue=1000, queue_memory=10_000)
    sender = world.sender(world.producer(client, "t", batching=False))
    sender.send_many([b"x" * 100] * 900)
    face, sizes = world.face(consumer), []
    for _ in range(900):
        face.receive(1)
        sizes.append(window(consumer))
    settled = sizes[-1]
    assert 30 < settled <= max(sizes) <= 75  # never was more asked for than there is memory for
    sender.send_many([b"x" * 2000] * 100)
    world.world.run()
    assert window(consumer) < settled / 2
    for _ in range(100):
        face.receive(1)
    world.settled(consumer)


def test_children_share_the_memory(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, ["a", "b"], "s", receiver_queue=1000, queue_memory=10_000)
    world.sender(world.producer(client, "a", batching=False)).send_many([b"x" * 100] * 300)
    face = world.face(consumer)
    for _ in range(300):
        face.receive(1)
    sizes = {child.topic.local: window(child) for child in single(consumer)}
    assert 15 < sizes["a"] <= 38
    assert sizes["b"] == 1


def test_small_numbers(codec: Any) -> None:
    permits = Permits(codec, 1, lambda _: None)
    adaptive = Adaptive(permits, 1, 100)
    permits.open(1)
    assert permits.arrive(1, 1)
    assert adaptive.on_wait() is None  # as large as it may be
    assert adaptive.on_entry(1000, 0) is None  # as small as it can be

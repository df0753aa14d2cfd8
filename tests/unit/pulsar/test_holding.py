"""Submitted entries that are written together: in order, none forgotten, and for how long at most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqclient.core.link import Link
from mqclient.pulsar import holding
from mqclient.pulsar.outgoing import prepare
from mqclient.pulsar.producer import ProducerEngine
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


Opened = Callable[..., tuple[ProducerEngine, list[int]]]


@pytest.fixture
def opened(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """A producer of entries that are not batches, and how many frames each of its writes has from now on."""

    def open_it(latency: float = 0.0001, **options: Any) -> tuple[ProducerEngine, list[int]]:
        producer = world.producer(world.client(), "t", batching=False, **options)
        writes: list[int] = []
        write = Link.write

        def noted(link: Link, *frames: bytes) -> None:
            writes.append(sum(map(how_many, frames)))
            write(link, *frames)

        monkeypatch.setattr(Link, "write", noted)
        world.world.latency = latency
        return producer, writes

    return open_it


def how_many(buffer: bytes) -> int:
    """Frames, one behind the other."""
    count = at = 0
    while at < len(buffer):
        at += 4 + int.from_bytes(buffer[at : at + 4], "big")
        count += 1
    return count


def submit(producer: ProducerEngine, body: bytes) -> Any:
    with producer.client.driver.enter():
        return producer.submit(prepare(body))


def bodies(world: PulsarWorld) -> list[bytes]:
    codec, log = world.impl.pulsar, world.door.topics.make("t").log
    entries = [codec.Entry.from_stored(log.record(number)) for number in range(log.next)]
    return [message.body for entry in entries for message in codec.decode_messages(entry)]


def test_the_first_leaves_at_once_and_the_others_with_its_receipt(world: PulsarWorld, opened: Opened) -> None:
    producer, writes = opened()
    futures = [submit(producer, b"%d" % number) for number in range(10)]
    assert writes == [1]
    world.world.advance(0.01)
    assert writes == [1, 9]
    assert [future.result().entry for future in futures] == list(range(10))
    assert bodies(world) == [b"%d" % number for number in range(10)]


def test_a_broker_that_takes_its_time_delays_nothing_for_long(world: PulsarWorld, opened: Opened) -> None:
    producer, writes = opened(5.0, linger=0.02)
    submit(producer, b"0")
    submit(producer, b"1")
    world.world.advance(0.01)
    assert writes == [1]
    world.world.advance(0.02)
    assert writes == [1, 1]


def test_whoever_goes_on_submitting_writes_them(world: PulsarWorld, opened: Opened) -> None:
    producer, writes = opened(5.0, linger=1.0)
    for number in range(4):
        submit(producer, b"%d" % number)
    world.world.advance(2 * holding.SECONDS)
    submit(producer, b"4")
    assert writes == [1, 4]
    submit(producer, bytes(holding.MOST))
    assert writes == [1, 4, 1]


def test_a_send_takes_them_along_in_order(world: PulsarWorld, opened: Opened) -> None:
    producer, writes = opened()
    submit(producer, b"0")
    submit(producer, b"1")
    with producer.client.driver.enter():
        slot = producer.send(prepare(b"2"))
    assert writes == [1, 2]
    assert world.world.result(slot).entry == 2
    assert bodies(world) == [b"0", b"1", b"2"]


def test_flushing_writes_them(world: PulsarWorld, opened: Opened) -> None:
    producer, writes = opened(5.0, linger=60.0)
    submit(producer, b"0")
    submit(producer, b"1")
    with producer.client.driver.enter():
        producer.flush()
    assert writes == [1, 1]


def test_held_when_the_connection_breaks_they_are_sent_once(world: PulsarWorld, opened: Opened) -> None:
    producer, _ = opened(linger=60.0)
    futures = [submit(producer, b"%d" % number) for number in range(3)]
    world.cut()
    world.world.advance(5)
    assert all(future.done() for future in futures)
    assert bodies(world)[-3:] == [b"0", b"1", b"2"]
    assert bodies(world).count(b"2") == 1


def test_at_the_end_no_alarm_is_left(world: PulsarWorld, opened: Opened) -> None:
    producer, _ = opened(5.0, linger=60.0)
    futures = [submit(producer, b"%d" % number) for number in range(3)]
    world.steps(producer.client, producer.close_steps)
    assert all(future.done() for future in futures)
    assert len(producer._held) == 0


def test_those_that_no_train_takes_are_held_as_well(world: PulsarWorld, opened: Opened) -> None:
    """Properties make an entry of its own."""
    producer, writes = opened(5.0, linger=0.02)
    with producer.client.driver.enter():
        for number in range(4):
            producer.submit(prepare(b"%d" % number, None, {"n": "1"}))
    assert writes == [1]
    world.world.advance(0.03)
    assert writes == [1, 3]
    with producer.client.driver.enter():
        producer.submit(prepare(b"4", None, {"n": "1"}))
        producer.submit(prepare(bytes(holding.MOST), None, {"n": "1"}))
    assert writes == [1, 3, 2]
    world.world.advance(6)
    assert bodies(world)[:5] == [b"0", b"1", b"2", b"3", b"4"]

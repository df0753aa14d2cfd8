"""Readers that hand out whole entries: nothing lost at the ends, and every permit accounted for."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar import opening, sync
from mqclient.pulsar.consumer import ConsumerEngine
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def opened(world: PulsarWorld, start: Any = "earliest", **options: Any) -> tuple[ConsumerEngine, sync.Reader]:
    engine = world.reader(world.client(), "t", start, **{"by_batch": True, **options})
    return engine, sync.Reader(engine.client.driver, engine)  # type: ignore[arg-type]


def batch_of(reader: sync.Reader) -> list[bytes] | None:
    batch = reader.receive_batch(1)
    return None if batch is None else [message.body for message in batch]


def test_entries_come_whole_and_their_permits_go_back(world: PulsarWorld) -> None:
    producer = world.sender(world.producer(world.client(), "t", batch_max_messages=4))
    engine, reader = opened(world, receiver_queue=10)
    for _ in range(20):
        producer.send_many([b"0", b"1", b"2", b"3", b"4"])
        assert [batch_of(reader), batch_of(reader)] == [[b"0", b"1", b"2", b"3"], [b"4"]]
    assert batch_of(reader) is None
    world.settled(engine)


def test_iteration_ends_with_the_reader(world: PulsarWorld) -> None:
    world.sender(world.producer(world.client(), "t")).send_many([b"0", b"1"])
    _, reader = opened(world)
    batches = reader.batches()
    assert len(next(batches)) == 2
    reader.close()
    assert list(batches) == []


def test_the_entry_of_the_start_comes_whole_unless_nothing_of_it_is_meant(world: PulsarWorld) -> None:
    ids = world.sender(world.producer(world.client(), "t", batch_max_messages=3)).send_many(
        [b"%d" % n for n in range(6)]
    )
    assert batch_of(opened(world, ids[1])[1]) == [b"0", b"1", b"2"]
    whole = type(ids[1])(ids[1].ledger, ids[1].entry)
    engine, reader = opened(world, whole)
    assert batch_of(reader) == [b"3", b"4", b"5"]
    world.settled(engine)
    assert batch_of(opened(world, whole, start_inclusive=True)[1]) == [b"0", b"1", b"2"]


def test_after_a_lost_connection_it_goes_on_behind_the_last_entry(world: PulsarWorld) -> None:
    world.sender(world.producer(world.client(), "t", batch_max_messages=2)).send_many([b"%d" % n for n in range(6)])
    engine, reader = opened(world, receiver_queue=1000)
    assert batch_of(reader) == [b"0", b"1"]
    world.cut()
    world.world.advance(5)
    assert [batch_of(reader), batch_of(reader), batch_of(reader)] == [[b"2", b"3"], [b"4", b"5"], None]
    world.settled(engine)


def test_batches_need_the_option(world: PulsarWorld) -> None:
    _, reader = opened(world, by_batch=False)
    with pytest.raises(ConfigError, match="by_batch=True"):
        reader.receive_batch()
    with pytest.raises(ConfigError, match="by_batch=True"):
        next(reader.batches())


def test_the_partitions_of_a_topic(world: PulsarWorld) -> None:
    client = world.client()
    assert world.do(client, lambda: opening.partitions(client, "t", None)) == ["persistent://public/default/t"]


def test_what_was_taken_is_told_when_it_is_half_a_window(world: PulsarWorld) -> None:
    """Of each entry a reader would tell the broker twice, a system call each: that cost as much as reading it."""
    producer = world.sender(world.producer(world.client(), "t", batch_max_messages=4))
    engine, reader = opened(world, receiver_queue=100)
    there = world.at_broker(engine)
    producer.send_many([b"%d" % number for number in range(100)])
    for taken in range(1, 13):
        assert batch_of(reader) is not None
        assert engine.diagnose()["untold"] == 4 * taken
        assert there.flows == [100]
    assert batch_of(reader) == [b"48", b"49", b"50", b"51"]
    world.settled(engine)
    assert (engine.diagnose()["untold"], there.flows) == (0, [100, 52])


def test_many_small_entries_are_told_before_half_a_window(world: PulsarWorld) -> None:
    producer = world.sender(world.producer(world.client(), "t", batch_max_messages=2))
    engine, reader = opened(world, receiver_queue=1000)
    producer.send_many([b"%d" % number for number in range(200)])
    untold = []
    for _ in range(100):
        assert batch_of(reader) is not None
        untold.append(engine.diagnose()["untold"])
    assert max(untold) == 62
    world.settled(engine)


def test_a_window_that_shrinks_is_told_in_its_halves(world: PulsarWorld) -> None:
    producer = world.sender(world.producer(world.client(), "t", batch_max_messages=1))
    engine, reader = opened(world, receiver_queue=40)
    with engine.client.driver.enter():
        engine.intake.resize(4)
    for number in range(50):
        producer.send_many([b"%d" % number])
        assert batch_of(reader) == [b"%d" % number]
        assert engine.diagnose()["untold"] < 2
    world.settled(engine)

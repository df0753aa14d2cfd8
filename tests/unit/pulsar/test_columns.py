"""Rows of Arrow columns become entries: every row once, in order among other messages, within the memory limit."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.errors import ClosedError, ConfigError
from mqclient.pulsar.columns import Rows, prepare_rows
from mqclient.pulsar.producer import ProducerEngine
from tests.support.pulsar_world import PulsarWorld

pa: Any = pytest.importorskip("pyarrow")


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def rows(start: int, stop: int, **more: Any) -> Any:
    return pa.RecordBatch.from_pydict({"body": [b"%d" % number for number in range(start, stop)], **more})


def submit(producer: ProducerEngine, batch: Any) -> Slot[list[Rows]]:
    with producer.client.driver.enter():
        return producer.send_rows(*prepare_rows(batch, None))


def read(world: PulsarWorld) -> list[Any]:
    return world.face(world.reader(world.client(), "t", "earliest")).receive_many(100_000, timeout=1)


def test_rows_have_their_ids_keys_and_properties(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batch_max_messages=4)
    maps = pa.array(
        [[("a", str(number))] if number % 2 else [] for number in range(10)], pa.map_(pa.string(), pa.string())
    )
    batch = rows(0, 10, key=[f"k{number}" for number in range(10)], properties=maps, event_time=list(range(10)))
    slot = submit(producer, batch)
    world.world.run()
    outcome = slot.result()
    assert [(part.start, part.stop, part.ok) for part in outcome] == [(0, 4, True), (4, 8, True), (8, 10, True)]
    found = read(world)
    assert [message.body for message in found] == [b"%d" % number for number in range(10)]
    assert [message.message_id for message in found[::4]] == [part.outcome for part in outcome]
    assert [(message.key, message.event_time, message.sequence_id) for message in found] == [
        (f"k{number}", number, number) for number in range(10)
    ]
    assert [message.properties for message in found[:2]] == [{}, {"a": "1"}]


def test_rows_keep_their_place_among_messages(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    with producer.client.driver.enter():
        producer.submit((b"before", None, None, 0, None, -1, False))
        slot = producer.send_rows(*prepare_rows(rows(0, 3), None))
        producer.submit((b"after", None, None, 0, None, -1, False))
    world.world.run()
    assert slot.done
    assert [message.body for message in read(world)] == [b"before", b"0", b"1", b"2", b"after"]
    assert [message.sequence_id for message in read(world)] == [0, 1, 2, 3, 4]


def test_the_memory_limit_holds_them_back(world: PulsarWorld) -> None:
    client = world.client(memory_limit=1000)
    producer = world.producer(client, "t", batch_max_messages=10, batch_max_bytes=400)
    slots = [submit(producer, rows(start, start + 50)) for start in (0, 50)]
    assert client.budget.bytes <= 1000
    world.world.run()
    assert all(part.ok for slot in slots for part in slot.result())
    assert sorted(int(message.body) for message in read(world)) == list(range(100))
    assert client.budget.bytes == 0


def test_what_cannot_be_sent(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching=False)
    assert isinstance(submit(producer, rows(0, 1)).error, ConfigError)
    with pytest.raises(ConfigError, match="body is needed"):
        prepare_rows(rows(0, 1), {"key": "body"})
    with pytest.raises(ConfigError, match=r"not \['tag'\]"):
        prepare_rows(rows(0, 1), {"body": "body", "tag": "body"})


def test_the_end_of_the_producer_is_told_for_every_row(world: PulsarWorld) -> None:
    client = world.client(memory_limit=500)
    producer = world.producer(client, "t", batch_max_messages=10, batch_max_bytes=400)
    with client.driver.enter():
        slot = producer.send_rows(*prepare_rows(rows(0, 100), None))
        producer.abandon(ClosedError("gone"))
    world.world.run()
    outcome = slot.result()
    assert [part.start for part in outcome] == [0, *(part.stop for part in outcome[:-1])]
    assert outcome[-1].stop == 100
    assert not any(part.ok for part in outcome)
    assert isinstance(submit(producer, rows(0, 1)).error, ClosedError)

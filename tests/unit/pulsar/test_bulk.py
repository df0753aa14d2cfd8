"""Bulk sends: in order, across entries and waits, with what was never taken in its place."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import MQError
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.columns import prepare_rows
from mqclient.pulsar.outgoing import prepare_many, results
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    made = PulsarWorld(codec)
    made.world.latency = 0.001
    return made


def test_one_by_one_where_it_must_be(world: PulsarWorld) -> None:
    producer = world.producer(world.client(memory_limit=2000), "t", batch_max_bytes=500)
    items = prepare_many(
        [b"%03d" % n + bytes(97) if n % 3 else {"body": b"%03d" % n, "sequence_id": n} for n in range(60)]
    )
    ids = results(world.do(producer.client, lambda: producer.send_many(items)))
    assert len(set(ids)) == 60
    assert sorted(ids) == ids
    assert producer.published == 59


def test_rows_wait_for_room_and_tell_what_was_not_taken(world: PulsarWorld) -> None:
    pa = pytest.importorskip("pyarrow")
    producer = world.producer(world.client(memory_limit=500), "t", batch_max_bytes=400)
    world.control.answer("SEND", ServerError.TopicTerminatedError, "the end", skip=1)
    columns, rows = prepare_rows(pa.RecordBatch.from_pydict({"body": [bytes(100)] * 20}), None)
    found = world.do(producer.client, lambda: producer.send_rows(columns, rows))
    assert [part.start for part in found[1:]] == [part.stop for part in found[:-1]]
    assert (found[0].ok, found[-1].stop) == (True, 20)
    assert isinstance(found[-1].outcome, BrokerError)
    slot = world.ask(producer.client, lambda: producer.send_rows(columns, rows))
    assert isinstance(slot.error, MQError)


def test_messages_never_taken(world: PulsarWorld) -> None:
    producer = world.producer(world.client(memory_limit=500), "t", batch_max_bytes=400)
    world.control.answer("SEND", ServerError.TopicTerminatedError, "the end", skip=1)
    found = results(world.do(producer.client, lambda: producer.send_many([bytes(100)] * 20)))
    assert [isinstance(one, BrokerError) for one in found] == [False] * 3 + [True] * 17
    slot = world.ask(producer.client, lambda: producer.send_many([b"x"]))
    assert isinstance(slot.error, MQError)

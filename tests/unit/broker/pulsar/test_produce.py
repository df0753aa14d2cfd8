"""SEND, frame by frame."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient import _schema
from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def raw(world: PulsarWorld) -> RawClient:
    return RawClient(world)


def frame(raw: RawClient, sequence_id: int, producer_id: int = 1, **options: Any) -> bytes:
    metadata = raw.codec.encode_metadata("p", sequence_id, 1)
    sent: bytes = raw.codec.encode_send(producer_id, sequence_id, metadata, b"body", **options)
    return sent


def test_receipts_in_order(raw: RawClient) -> None:
    name, made = raw.ask("PRODUCER", topic="t", producer_id=1)
    assert (name, made.last_sequence_id, made.producer_ready) == ("PRODUCER_SUCCESS", -1, True)
    raw.events.clear()
    raw.write(frame(raw, 5) + frame(raw, 6))
    ledger = raw.session.topics.make("t").ledger
    assert [event[1:5] for event in raw.events] == [(1, 5, ledger, 0), (1, 6, ledger, 1)]


def test_stored_as_sent(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1)
    sent = frame(raw, 5)
    raw.write(sent)
    raw.subscribe()
    raw.flow(1)
    assert sent.endswith(bytes(world.door.topics.make("t").log.record(0)))
    assert raw.entries()[0].stored == bytes(world.door.topics.make("t").log.record(0))


def test_a_send_for_nobody_ends_the_connection(raw: RawClient) -> None:
    raw.write(frame(raw, 1))
    assert not raw.open


def test_a_send_for_somebody_just_closed_is_late(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1)
    raw.ask("CLOSE_PRODUCER", producer_id=1)
    raw.write(frame(raw, 1))
    assert raw.open
    assert world.door.topics.make("t").end == 0
    world.world.advance(29)
    raw.write(raw.codec.PONG_FRAME)
    world.world.advance(2)
    raw.write(frame(raw, 1))
    assert not raw.open


def test_bad_bytes_and_transactions_are_refused_entry_by_entry(raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1)
    raw.events.clear()
    raw.write(frame(raw, 1)[:-1] + b"!")
    raw.write(frame(raw, 2, txn=(0, 1)))
    raw.write(frame(raw, 3))
    refused = [(told.sequence_id, told.error) for name, told in raw.events[:2]]
    assert refused == [(1, ServerError.ChecksumError), (2, ServerError.NotAllowedError)]
    assert raw.events[2][2] == 3


def test_scripted_errors(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1)
    world.control.answer("SEND", ServerError.TopicTerminatedError, "the end")
    raw.events.clear()
    raw.write(frame(raw, 1))
    assert [(told.sequence_id, told.message) for _, told in raw.events] == [(1, "the end")]


def test_what_was_stored_is_not_stored_again(world: PulsarWorld, raw: RawClient) -> None:
    world.rest("POST", "namespaces/public/default/deduplication", True)
    raw.ask("PRODUCER", topic="t", producer_id=1, producer_name="dd")
    raw.events.clear()
    for number in (1, 1, 2, 0):
        raw.write(frame(raw, number))
    raw.write(frame(raw, 3, highest_sequence_id=7))
    raw.write(frame(raw, 7))
    assert [event[2:5] for event in raw.events] == [
        (1, 1, 0),
        (1, -1, -1),
        (2, 1, 1),
        (0, -1, -1),
        (3, 1, 2),
        (7, -1, -1),
    ]
    raw.ask("CLOSE_PRODUCER", producer_id=1)
    assert raw.ask("PRODUCER", topic="t", producer_id=2, producer_name="dd")[1].last_sequence_id == 7
    assert raw.ask("PRODUCER", topic="t", producer_id=3, producer_name="other")[1].last_sequence_id == -1
    world.rest("POST", "namespaces/public/default/deduplication", False)
    raw.write(frame(raw, 7, 2))
    assert raw.events[-1][3:5] == (1, 3)


def test_of_chunks_the_last_decides(world: PulsarWorld, raw: RawClient) -> None:
    world.rest("POST", "namespaces/public/default/deduplication", True)
    raw.ask("PRODUCER", topic="t", producer_id=1, producer_name="dd")
    raw.events.clear()
    for sequence_id in (0, 0):
        for chunk in (0, 1):
            metadata = raw.codec.encode_metadata("dd", sequence_id, 1, uuid="dd-0", num_chunks=2, chunk_id=chunk)
            raw.write(raw.codec.encode_send(1, sequence_id, metadata, b"part", is_chunk=True))
    assert [event[4] for event in raw.events] == [0, 1, 2, -1]


def test_for_a_transaction(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1)
    txn = world.door.topics.transactions.begin(0, 60_000)
    raw.events.clear()
    raw.write(frame(raw, 1, txn=txn))
    world.door.topics.transactions.get(txn).topics.add("persistent://public/default/t")
    raw.write(frame(raw, 2, txn=txn))
    assert [raw.events[0][0], raw.events[1][2]] == ["SEND_ERROR", 2]
    assert world.door.topics.make("t").readable == 0


def test_what_is_not_kept(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="non-persistent://public/default/t", producer_id=1)
    raw.events.clear()
    raw.write(frame(raw, 1))
    assert raw.events[0][3:5] == (0, 0)
    assert world.door.topics.make("non-persistent://public/default/t").end == 0


@pytest.mark.parametrize("number", [2**31 - 1, 900_000])
def test_a_batch_that_cannot_be(world: PulsarWorld, raw: RawClient, number: int) -> None:
    """Its number of messages would be a number of bits, at each delivery."""
    raw.ask("PRODUCER", topic="t", producer_id=1)
    raw.events.clear()
    metadata: Any = _schema.message("MessageMetadata")(producer_name="p", sequence_id=0, publish_time=1)
    metadata.num_messages_in_batch = number
    raw.write(raw.codec.encode_send(1, 0, metadata.SerializeToString(), b"x"))
    assert [(name, told.error) for name, told in raw.events] == [("SEND_ERROR", ServerError.NotAllowedError)]
    assert world.door.topics.make("t").end == 0

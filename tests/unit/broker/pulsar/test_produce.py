"""PRODUCER and SEND, frame by frame."""

from __future__ import annotations

from typing import Any

import pytest

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


def test_the_same_id_again(world: PulsarWorld, raw: RawClient) -> None:
    name = raw.ask("PRODUCER", topic="t", producer_id=1)[1].producer_name
    assert raw.ask("PRODUCER", topic="t", producer_id=1)[1].producer_name == name
    world.control.delay("PRODUCER", 1.0)
    assert raw.ask("PRODUCER", topic="t", producer_id=2) is None
    assert raw.ask("PRODUCER", topic="t", producer_id=2)[1].error == ServerError.ServiceNotReady
    world.world.advance(2)
    assert raw.events[-1][0] == "PRODUCER_SUCCESS"


def test_closed_or_lost_while_in_progress(world: PulsarWorld, raw: RawClient) -> None:
    for leave in (lambda: raw.ask("CLOSE_PRODUCER", producer_id=1), raw.lose):
        world.control.delay("PRODUCER", 1.0)
        raw.ask("PRODUCER", topic="t", producer_id=1)
        leave()
        world.world.advance(2)
        assert world.door.topics.get("t") is None


def test_a_refusal_after_a_delay(world: PulsarWorld, raw: RawClient) -> None:
    world.control.delay("PRODUCER", 1.0)
    raw.ask("PRODUCER", topic="a/b/c", producer_id=1)
    world.world.advance(2)
    assert raw.events[-1][1].error == ServerError.TopicNotFound


def test_names(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1, producer_name="mine")
    other = RawClient(world)
    assert other.ask("PRODUCER", topic="t", producer_id=1, producer_name="mine")[1].error == ServerError.ProducerBusy
    assert other.ask("PRODUCER", topic="u", producer_id=1, producer_name="mine")[0] == "PRODUCER_SUCCESS"
    raw.lose()
    assert other.ask("PRODUCER", topic="t", producer_id=2, producer_name="mine")[0] == "PRODUCER_SUCCESS"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"producer_access_mode": 1}, ServerError.NotAllowedError),
        ({"schema": {"name": "x", "schema_data": b"", "type": 1}}, ServerError.NotAllowedError),
        ({"txn_enabled": True}, ServerError.NotAllowedError),
        ({"topic": "non-persistent://public/default/t"}, ServerError.NotAllowedError),
    ],
)
def test_refusals(raw: RawClient, fields: dict[str, Any], code: ServerError) -> None:
    assert raw.ask("PRODUCER", **{"topic": "t", "producer_id": 1, **fields})[1].error == code
    assert raw.session.producers == {}


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

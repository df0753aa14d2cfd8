"""SEEK and GET_LAST_MESSAGE_ID, frame by frame."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def raw(codec: Any) -> RawClient:
    return RawClient(PulsarWorld(codec))


def position(raw: RawClient, entry: int, **fields: Any) -> dict[str, Any]:
    return {"ledgerId": raw.session.topics.make("t").ledger, "entryId": entry, **fields}


def seek(raw: RawClient, **fields: Any) -> list[Any]:
    """SEEK, then the subscription anew; what comes."""
    raw.events.clear()
    assert raw.ask("SEEK", consumer_id=0, **fields)[0] == "SUCCESS"
    assert [name for name, _ in raw.events] == ["CLOSE_CONSUMER", "SUCCESS"]
    raw.subscribe()
    return [(entry.entry, entry.ack_set) for entry in raw.flow(100)]


@pytest.mark.parametrize("durable", [True, False])
def test_to_an_id(raw: RawClient, durable: bool) -> None:
    raw.produce([b"x"], [b"x"], [b"x"])
    raw.subscribe(durable=durable)
    raw.flow(100)
    raw.ask("SEEK", consumer_id=0, message_id=position(raw, 1))
    raw.subscribe(durable=durable)
    assert [entry.entry for entry in raw.flow(100)] == [1, 2]


def test_to_the_ends_and_beyond(raw: RawClient) -> None:
    raw.produce([b"x"], [b"x"], [b"x"])
    raw.subscribe()
    everything = [(0, None), (1, None), (2, None)]
    assert seek(raw, message_id={"ledgerId": 2**64 - 1, "entryId": 2**64 - 1}) == everything
    assert seek(raw, message_id={"ledgerId": 2**63 - 1, "entryId": 2**63 - 1}) == []
    assert seek(raw, message_id=position(raw, 99)) == []
    assert seek(raw, message_id={"ledgerId": 0, "entryId": 7}) == everything


def test_into_a_batch(raw: RawClient) -> None:
    raw.produce([b"x"] * 4, [b"x"])
    raw.subscribe()
    assert seek(raw, message_id=position(raw, 0, ack_set=[0b1100])) == [(0, (0b1100,)), (1, None)]


def test_to_a_time(raw: RawClient) -> None:
    world = raw.world.world
    start = world.wall_ms
    raw.produce([b"x"])
    world.advance(10)
    raw.produce([b"x"])
    raw.subscribe()
    assert seek(raw, message_publish_time=start + 5000) == [(1, None)]
    assert seek(raw, message_publish_time=start) == [(0, None), (1, None)]
    assert seek(raw, message_publish_time=start + 50000) == []


def test_all_consumers_are_closed(raw: RawClient) -> None:
    raw.produce([b"x"])
    other = RawClient(raw.world)
    raw.subscribe(subType=1)
    other.subscribe(subType=1)
    raw.ask("SEEK", consumer_id=0, message_publish_time=0)
    raw.world.world.run()
    assert other.events[-1][0] == "CLOSE_CONSUMER"
    assert other.session.consumers == {}


def test_refusals(raw: RawClient) -> None:
    assert raw.ask("SEEK", consumer_id=0, message_publish_time=0)[1].error == ServerError.MetadataError
    assert raw.ask("GET_LAST_MESSAGE_ID", consumer_id=0)[1].error == ServerError.MetadataError
    raw.subscribe()
    assert raw.ask("SEEK", consumer_id=0)[1].error == ServerError.MetadataError


def test_the_last_message(raw: RawClient) -> None:
    raw.subscribe()
    last = raw.ask("GET_LAST_MESSAGE_ID", consumer_id=0)[1].last_message_id
    assert (last.ledgerId, last.entryId) == (2**64 - 1, 2**64 - 1)
    raw.produce([b"x"])
    last = raw.ask("GET_LAST_MESSAGE_ID", consumer_id=0)[1].last_message_id
    assert (last.entryId, last.batch_index) == (0, -1)
    raw.produce([b"x"] * 3)
    reply = raw.ask("GET_LAST_MESSAGE_ID", consumer_id=0)[1]
    assert (reply.last_message_id.entryId, reply.last_message_id.batch_index) == (1, 2)
    assert reply.consumer_mark_delete_position.entryId == 2**64 - 1

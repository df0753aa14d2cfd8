"""Non-persistent topics, as recorded: receipts and messages 0:0, nothing kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.pulsar_world import PulsarWorld, RawClient

TOPIC = "non-persistent://public/default/t"


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def receipt(raw: RawClient) -> tuple[int, int]:
    found: tuple[int, int] = next(event[3:5] for event in raw.events if event[0] == raw.codec.SEND_RECEIPT)
    return found


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_who_is_here_gets_it(world: PulsarWorld, kind: int) -> None:
    producer, consumer = RawClient(world), RawClient(world)
    consumer.subscribe(topic=TOPIC, subType=kind)
    consumer.flow(2)
    producer.produce([b"a"], topic=TOPIC)
    assert receipt(producer) == (0, 0)
    producer.produce([b"b", b"c"], [b"missed"], topic=TOPIC)
    assert [(entry.ledger, entry.entry) for entry in consumer.entries()] == [(0, 0), (0, 0)]
    assert consumer.consumer.permits == -1
    consumer.flow(10)
    assert consumer.entries() == []
    consumer.write(consumer.codec.encode_ack(0, [(0, 0)]))
    producer.produce([b"d"], topic=TOPIC)
    assert [bytes(entry.payload) for entry in consumer.entries()] == [b"d"]


def test_nobody_is_here(world: PulsarWorld) -> None:
    producer, consumer = RawClient(world), RawClient(world)
    for kind in (0, 1, 3):
        consumer.subscribe(topic=TOPIC, subscription=str(kind), subType=kind)
        consumer.ask("CLOSE_CONSUMER", consumer_id=0)
    producer.produce([b"a"], topic=TOPIC)
    assert receipt(producer) == (0, 0)
    consumer.subscribe(topic=TOPIC)
    assert consumer.flow(10) == []
    told = consumer.ask("GET_LAST_MESSAGE_ID", consumer_id=0)[1]
    assert told.last_message_id.entryId == 2**64 - 1
    assert world.rest("GET", "namespaces/public/default/topics", mode="NON_PERSISTENT") == [TOPIC]
    assert world.rest("GET", "non-persistent/public/default/t/stats")["msgInCounter"] == 1


def test_in_turn(world: PulsarWorld) -> None:
    producer, clients = RawClient(world), [RawClient(world) for _ in range(2)]
    for client in clients:
        client.subscribe(topic=TOPIC, subType=1)
        client.flow(10)
        client.events.clear()
    producer.produce(*([b"x"] for _ in range(6)), topic=TOPIC)
    assert [len(client.entries()) for client in clients] == [3, 3]

"""Acknowledgements in transactions: which places are told, and what happens to what waits here."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError, LinkError, TransactionError
from mqclient.pulsar import sync, transactions, txn_acks
from mqclient.pulsar.transactions import Transaction
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def begin(world: PulsarWorld, client: Any) -> Any:
    driver: Any = client.driver
    engine: Transaction = world.do(client, lambda: transactions.begin(client, 60.0, None))
    return sync.Transaction(driver, engine)


def consumer(world: PulsarWorld, **options: Any) -> Any:
    return world.consumer(world.client(), "t", "s", start="earliest", **options)


def send(world: PulsarWorld, count: int, **options: Any) -> None:
    world.sender(world.producer(world.client(), "t", **options)).send_many([b"%d" % number for number in range(count)])


def test_places(world: PulsarWorld) -> None:
    make = world.impl.pulsar.MessageId
    ids = [make(1, 7, -1, 0, 3), make(1, 8), make(1, 7, -1, 2, 3), make(2, 0, -1, 0, 1), make(1, 8, -1, 0, 2)]
    assert txn_acks._places(ids) == [(1, 8), (1, 7, [2], 3), (2, 0, None, 1)]
    assert txn_acks._places([make(1, 1, -1, 64, 66)]) == [(1, 1, [-1, 2], 66)]
    assert txn_acks._up_to(make(1, 7, -1, 0, 3)) == (1, 7, [6], 3)
    assert txn_acks._up_to(make(1, 7, -1, 2, 3)) == txn_acks._up_to(make(1, 7)) == (1, 7)


def test_a_batch_in_two_transactions(world: PulsarWorld) -> None:
    send(world, 4)
    made = consumer(world, type="shared")
    face = world.face(made)
    messages = [face.receive(5) for _ in range(4)]
    first, second = begin(world, made.client), begin(world, made.client)
    face.ack(messages[:2], txn=first)
    face.ack(messages[2], txn=second)
    first.commit()
    second.abort()
    world.world.run()
    again = face.receive_many(10, 5)
    assert [message.body for message in again] == [b"2", b"3"]
    world.settled(made)


def test_what_waits_here_comes_again_in_order(world: PulsarWorld) -> None:
    send(world, 6, batching=False)
    made = consumer(world)
    face = world.face(made)
    txn = begin(world, made.client)
    face.ack_cumulative([face.receive(5) for _ in range(3)][-1], txn=txn)
    txn.abort()
    world.world.run()
    assert [face.receive(5).body for _ in range(6)] == [b"%d" % number for number in range(6)]
    assert not made.mailbox.take()
    world.settled(made)


def test_messages_in_parts(world: PulsarWorld) -> None:
    world.sender(world.producer(world.client(), "t", batching=False, chunking=True, chunk_size=300)).send(bytes(900))
    made = consumer(world, type="shared")
    face = world.face(made)
    with begin(world, made.client) as txn:
        face.ack(face.receive(5), txn=txn)
    assert not world.at_broker(made).pending
    world.settled(made)


def test_the_ack_timeout_does_not_bring_it_back(world: PulsarWorld) -> None:
    send(world, 2)
    made = consumer(world, type="shared", ack_timeout=10.0)
    face = world.face(made)
    messages = face.receive_many(2, 5)
    with begin(world, made.client) as txn:
        face.ack(messages, txn=txn)
    world.world.advance(30)
    assert not face.receive_many(2, 0.1)
    ordered = world.consumer(world.client(), "t", "ordered", start="earliest", ack_timeout=10.0)
    again = world.face(ordered)
    with begin(world, ordered.client) as txn:
        again.ack_cumulative(again.receive_many(2, 5)[-1], txn=txn)
    world.world.advance(30)
    assert not again.receive_many(2, 0.1)


def test_of_many_topics(world: PulsarWorld) -> None:
    client = world.client()
    many = world.multi(client, ["a", "b"], "s", start="earliest")
    for topic in "ab":
        world.sender(world.producer(world.client(), topic)).send(topic.encode())
    face = world.face(many)
    with begin(world, client) as txn:
        face.ack([face.receive(5), face.receive(5)], txn=txn)
        face.ack([], txn=txn)


def test_refused(world: PulsarWorld) -> None:
    send(world, 1)
    made = consumer(world, type="shared")
    face = world.face(made)
    message = face.receive(5)
    txn = begin(world, made.client)
    with pytest.raises(ConfigError, match="message by message"):
        face.ack_cumulative(message, txn=txn)
    reader: Any = world.reader(made.client, "t", "earliest")
    with pytest.raises(ConfigError, match="a reader acknowledges nothing"):
        world.do(made.client, lambda: txn_acks.ack_in(reader, txn.engine, [message], False))
    txn.commit()
    with pytest.raises(TransactionError, match="has ended: committed"):
        face.ack(message, txn=txn)


def test_without_a_connection(world: PulsarWorld) -> None:
    send(world, 1)
    made = consumer(world, type="shared")
    face = world.face(made)
    message = face.receive(5)
    txn = begin(world, made.client)
    world.do(made.client, lambda: txn.engine.enlist("persistent://public/default/t", "s"))
    world.cut()
    world.world.run()
    with pytest.raises(LinkError, match="the acknowledgement was not sent"):
        face.ack(message, txn=txn)
    with pytest.raises(TransactionError, match="something in it failed"):
        txn.commit()

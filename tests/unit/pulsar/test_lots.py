"""What messages of one entry share: transactions and versions of the schema, told to the broker first, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.errors import DeadlineError, MQError
from mqclient.pulsar import sync, transactions
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.outgoing import prepare
from mqclient.pulsar.schema import BYTES, INT32, STRING, Avro
from tests.support.pulsar_world import PulsarWorld


@dataclass
class Order:
    number: int


@dataclass
class Later:
    number: int
    shop: str | None = None


OLD, NEW = Avro(Order, defaults=True), Avro(Later, defaults=True)
Stored = list[tuple[Any, list[bytes]]]


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def stored(world: PulsarWorld) -> Stored:
    """Of each entry the version of its schema (None: none), and the bodies."""
    log, codec = world.door.topics.make("t").log, world.impl.pulsar
    entries = [codec.Entry.from_stored(log.record(number)) for number in range(log.next)]
    found: Stored = []
    for entry in entries:
        version = None if not entry.schema_version else int.from_bytes(entry.schema_version, "big")
        found.append((version, [message.body for message in codec.decode_messages(entry)]))
    return found


def transaction(world: PulsarWorld, client: Any) -> Any:
    engine = world.do(client, lambda: transactions.begin(client, 60.0, None))
    return sync.Transaction(client.driver, engine)


def test_one_transaction_is_one_batch(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    sender, txn = world.sender(producer), transaction(world, client)
    sender.send(b"0", txn=txn)
    outcomes = sender.send_many([b"%d" % number for number in range(1, 5)], txn=txn)
    assert [(one.entry, one.batch_index, one.batch_size) for one in outcomes] == [(1, at, 4) for at in range(4)]
    txn.commit()
    assert world.take(world.reader(client, "t", "earliest")) == [b"%d" % number for number in range(5)]


@pytest.mark.parametrize("batching", [True, False, "key"])
def test_lots_do_not_share_entries_and_stay_in_order(world: PulsarWorld, batching: Any) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=batching)
    sender, first, second = world.sender(producer), transaction(world, client), transaction(world, client)
    for txn in (first, second):
        sender.send(b"known", txn=txn)
    with client.driver.enter():
        for body, txn in ((b"1", None), (b"2", first), (b"3", first), (b"4", second), (b"5", None)):
            producer.submit(prepare(body, txn=txn))
    world.world.run()
    bodies = [bodies for _, bodies in stored(world)][2:]
    want = [[b"1"], [b"2", b"3"], [b"4"], [b"5"]]
    if batching == "key":
        want = [[b"1", b"5"], [b"2", b"3"], [b"4"]]
    assert bodies == (want if batching else [[b"%d" % number] for number in range(1, 6)])
    first.commit()
    second.abort()
    taken = [b"known", b"1", b"2", b"3", b"5"] if batching != "key" else [b"known", b"1", b"5", b"2", b"3"]
    assert world.take(world.reader(client, "t", "earliest")) == taken


def test_the_batch_of_a_transaction_waits_for_nobody_else(world: PulsarWorld) -> None:
    """A run that goes through the builder in bulk comes after what gathers for a transaction."""
    client = world.client()
    producer = world.producer(client, "t")
    sender, txn = world.sender(producer), transaction(world, client)
    sender.send(b"known", txn=txn)
    slots: list[Slot[Any]] = []
    with client.driver.enter():
        slots.append(producer.send(prepare(b"1", txn=txn)))
        slots.append(producer.send_many([b"2", b"3"]))
        slots.append(producer.send(prepare(b"4", txn=txn)))
    for slot in slots:
        world.world.result(slot)
    assert [bodies for _, bodies in stored(world)][1:] == [[b"1"], [b"2", b"3"], [b"4"]]
    txn.abort()


def test_another_schema_has_its_version(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", schema=OLD)
    sender = world.sender(producer)
    later = sender.with_schema(NEW)
    sender.send(Order(1))
    later.send(Later(2, "north"))
    sender.send(Order(3))
    sender.with_schema(BYTES).send(b"4")
    sender.with_schema(Avro(Order, defaults=True)).send(Order(5))
    later.send_many([Later(6), Later(7)])
    assert [version for version, _ in stored(world)] == [0, 1, 0, None, 0, 1]
    assert [len(bodies) for _, bodies in stored(world)] == [1, 1, 1, 1, 1, 2]
    assert world.control.count("GET_OR_CREATE_SCHEMA") == 1


def test_whoever_comes_while_a_schema_is_asked_for_waits(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching=False)
    client, sender = producer.client, world.sender(producer)
    world.control.delay("GET_OR_CREATE_SCHEMA", 1.0, times=2)
    old, new = sender.with_schema(OLD), sender.with_schema(NEW)
    made = [sender._prepare(b"0"), old._prepare(Order(1)), sender._prepare(b"2"), new._prepare(Later(3))]
    made += [sender._prepare(b"4"), old._prepare(Order(5))]
    slots = [world.ask(client, lambda one=one: producer.send(one)) for one in made]  # type: ignore[misc]
    world.world.run()
    assert [slot.done for slot in slots] == [True] + [False] * 5
    world.world.advance(3)
    assert [slot.result().entry for slot in slots] == list(range(6))
    assert [version for version, _ in stored(world)] == [None, 0, None, 1, None, 0]


def test_a_schema_that_does_not_fit_is_that_message_s_trouble(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", schema=STRING)
    sender = world.sender(producer)
    with pytest.raises(BrokerError) as caught:
        sender.with_schema(INT32).send(7)
    assert caught.value.code == ServerError.IncompatibleSchema
    sender.send("next")
    assert stored(world) == [(0, [b"next"])]


def test_a_connection_that_is_lost_meanwhile(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    sender = world.sender(producer)
    world.control.cut("GET_OR_CREATE_SCHEMA")
    assert sender.with_schema(OLD).send(Order(1)).entry == 0
    short = world.producer(world.client(operation_timeout=2.0), "t")
    world.control.drop("GET_OR_CREATE_SCHEMA", times=100)
    with pytest.raises(MQError) as caught:
        world.sender(short).with_schema(NEW).send(Later(1))
    assert isinstance(caught.value, DeadlineError)
    assert world.sender(short).send(b"next").entry == 1


def test_a_transaction_and_a_schema(world: PulsarWorld) -> None:
    client = world.client()
    sender = world.sender(world.producer(client, "t", schema=OLD))
    txn = transaction(world, client)
    sender.with_schema(NEW).send_many([Later(1), Later(2)], txn=txn)
    txn.commit()
    assert next(version for version, _ in stored(world)) == 1

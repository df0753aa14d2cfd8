"""Transactions, frame by frame, as recorded in java_txn_*: nothing is seen before the end."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar import transactions
from mqclient.broker.pulsar.transactions import ASSIGN
from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient

COMMIT, ABORT = 0, 1


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def raw(world: PulsarWorld) -> RawClient:
    return RawClient(world)


def begin(raw: RawClient, *topics: str, ttl: int = 60_000) -> tuple[int, int]:
    told = raw.ask("NEW_TXN", txn_ttl_millis=ttl, tc_id=0)[1]
    txn = told.txnid_most_bits, told.txnid_least_bits
    if topics:
        assert not named(raw, "ADD_PARTITION_TO_TXN", txn, partitions=topics).HasField("error")
    return txn


def named(raw: RawClient, kind: str, txn: tuple[int, int], **fields: Any) -> Any:
    told = raw.ask(kind, txnid_most_bits=txn[0], txnid_least_bits=txn[1], **fields)[1]
    assert (told.txnid_most_bits, told.txnid_least_bits) == txn
    return told


def end(raw: RawClient, txn: tuple[int, int], action: int) -> Any:
    return named(raw, "END_TXN", txn, txn_action=action)


def send(raw: RawClient, body: bytes, txn: tuple[int, int] | None = None, topic: str = "t", number: int = 0) -> Any:
    producer_id = hash(topic) % 1000
    if producer_id not in raw.session.producers:
        raw.ask("PRODUCER", topic=topic, producer_id=producer_id, txn_enabled=True)
    raw.events.clear()
    metadata = raw.codec.encode_metadata("p", number, 1, txn=txn)
    raw.write(raw.codec.encode_send(producer_id, number, metadata, body, txn=txn))
    return raw.events[0]


def bodies(raw: RawClient) -> list[bytes]:
    found = [bytes(entry.payload) for entry in raw.entries()]
    raw.events.clear()
    return found


def consume(world: PulsarWorld, kind: int = 0) -> RawClient:
    consumer = RawClient(world)
    consumer.subscribe(subType=kind)
    consumer.flow(100)
    return consumer


def test_finding_a_coordinator(raw: RawClient) -> None:
    assert raw.ask("PARTITIONED_METADATA", topic=ASSIGN)[1].partitions == 1
    assert raw.ask("LOOKUP", topic=f"{ASSIGN}-partition-0")[1].response == 1
    assert not raw.ask("TC_CLIENT_CONNECT_REQUEST", tc_id=0)[1].HasField("error")
    refused = raw.ask("TC_CLIENT_CONNECT_REQUEST", tc_id=7)[1]
    assert refused.error == ServerError.TransactionCoordinatorNotFound
    assert raw.ask("NEW_TXN", tc_id=7)[1].error == ServerError.TransactionCoordinatorNotFound
    assert [begin(raw), begin(raw)] == [(0, 0), (0, 1)]


def test_switched_off(codec: Any) -> None:
    raw = RawClient(PulsarWorld(codec, transactionCoordinatorEnabled="false"))
    assert raw.ask("NEW_TXN", tc_id=0)[1].error == ServerError.TransactionCoordinatorNotFound


def test_seen_when_committed(world: PulsarWorld, raw: RawClient) -> None:
    consumer = consume(world)
    txn = begin(raw, "t")
    send(raw, b"before")
    assert bodies(consumer) == [b"before"]
    assert send(raw, b"inside", txn)[4] == 1
    send(raw, b"behind")
    assert bodies(consumer) == []
    assert consumer.ask("GET_LAST_MESSAGE_ID", consumer_id=0)[1].last_message_id.entryId == 0
    consumer.events.clear()
    assert not end(raw, txn, COMMIT).HasField("error")
    assert bodies(consumer) == [b"inside", b"behind"]
    assert send(raw, b"after")[4] == 4  # the marker was 3
    assert bodies(consumer) == [b"after"]


def test_never_seen_when_aborted(world: PulsarWorld, raw: RawClient) -> None:
    consumer = consume(world, 1)
    txn = begin(raw, "t", "u")
    send(raw, b"inside", txn)
    send(raw, b"there", txn, "u")
    send(raw, b"behind")
    end(raw, txn, ABORT)
    assert bodies(consumer) == [b"behind"]
    assert consumer.ask("GET_LAST_MESSAGE_ID", consumer_id=0)[1].last_message_id.entryId == 1
    late = consume(world)
    assert late.session.consumers == {}  # another type: refused
    late.subscribe(subscription="late")
    assert [bytes(entry.payload) for entry in late.flow(10)] == [b"behind"]
    subscription = world.door.topics.make("t").subscriptions["late"]
    late.write(late.codec.encode_ack(0, [(late.entries()[0].ledger, 1)]))
    late.flow(1)
    assert subscription.backlog == 0


def test_two_at_once(world: PulsarWorld, raw: RawClient) -> None:
    consumer = consume(world)
    one, two = begin(raw, "t"), begin(raw, "t")
    send(raw, b"one", one)
    send(raw, b"two", two)
    end(raw, two, COMMIT)
    assert bodies(consumer) == []
    end(raw, one, ABORT)
    assert bodies(consumer) == [b"two"]


def test_one_that_takes_too_long_is_aborted(world: PulsarWorld, raw: RawClient) -> None:
    consumer = consume(world)
    txn = begin(raw, "t", ttl=1000)
    send(raw, b"inside", txn)
    send(raw, b"behind")
    world.world.advance(1.1)
    assert bodies(consumer) == [b"behind"]
    assert end(raw, txn, COMMIT).error == ServerError.TransactionNotFound
    assert named(raw, "ADD_PARTITION_TO_TXN", txn, partitions=["t"]).error == ServerError.TransactionNotFound
    name, refused = send(raw, b"late", txn)
    assert (name, refused.error) == ("SEND_ERROR", ServerError.NotAllowedError)


def test_what_was_not_added(world: PulsarWorld, raw: RawClient) -> None:
    txn = begin(raw)
    name, refused = send(raw, b"x", txn)
    assert (name, refused.error) == ("SEND_ERROR", ServerError.NotAllowedError)
    assert named(raw, "ADD_PARTITION_TO_TXN", txn, partitions=["a/b/c"]).error == ServerError.TopicNotFound
    wanted = [{"topic": "t", "subscription": "nobody"}]
    refused = named(raw, "ADD_SUBSCRIPTION_TO_TXN", txn, subscription=wanted)
    assert refused.error == ServerError.SubscriptionNotFound
    consumer = consume(world)
    assert ack(consumer, txn, [0]).error == ServerError.InvalidTxnStatus


def ack(consumer: RawClient, txn: tuple[int, int], entries: Any, *, cumulative: bool = False) -> Any:
    ledger = consumer.session.topics.make("t").ledger
    ids = [(ledger, *(one if isinstance(one, tuple) else (one,))) for one in entries]
    consumer.events.clear()
    consumer.write(consumer.codec.encode_ack(0, ids, txn=txn, request_id=77, cumulative=cumulative))
    return next(told for name, told in consumer.events if name == "ACK_RESPONSE")


def join(raw: RawClient, txn: tuple[int, int]) -> None:
    told = named(raw, "ADD_SUBSCRIPTION_TO_TXN", txn, subscription=[{"topic": "t", "subscription": "s"}])
    assert not told.HasField("error")


def test_acknowledged_when_committed(world: PulsarWorld, raw: RawClient) -> None:
    consumer = consume(world, 1)
    raw.produce([b"a"], [b"b", b"c"])
    one, two = begin(raw), begin(raw)
    join(raw, one)
    join(raw, two)
    assert not ack(consumer, one, [0]).HasField("error")
    assert ack(consumer, two, [0]).error == ServerError.TransactionConflict
    assert not ack(consumer, one, [(1, [0b10])]).HasField("error")
    assert not ack(consumer, two, [(1, [0b01])]).HasField("error")
    assert ack(consumer, two, [(1, [0])]).error == ServerError.TransactionConflict
    subscription = world.door.topics.make("t").subscriptions["s"]
    assert (subscription.backlog, consumer.consumer.unacked) == (2, 3)
    end(raw, one, COMMIT)
    assert (subscription.backlog, consumer.consumer.unacked) == (1, 1)
    end(raw, two, COMMIT)
    assert (subscription.backlog, consumer.consumer.unacked) == (0, 0)


def test_comes_again_when_aborted(world: PulsarWorld, raw: RawClient) -> None:
    consumer = consume(world, 1)
    raw.produce([b"a"], [b"b"])
    txn = begin(raw)
    join(raw, txn)
    ack(consumer, txn, [0])
    consumer.tell("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=0)
    assert [entry.entry for entry in consumer.entries()] == [1]
    consumer.events.clear()
    end(raw, txn, ABORT)
    assert [(entry.entry, entry.redelivery_count) for entry in consumer.entries()] == [(0, 1)]


def test_comes_to_another_when_aborted(world: PulsarWorld, raw: RawClient) -> None:
    consumer, other = consume(world, 1), consume(world, 1)
    raw.produce([b"a"])
    owner, left = (consumer, other) if consumer.entries() else (other, consumer)
    txn = begin(raw)
    join(raw, txn)
    ack(owner, txn, [0])
    left.events.clear()
    owner.lose()
    assert left.entries() == []
    end(raw, txn, ABORT)
    assert bodies(left) == [b"a"]


def test_comes_once_when_aborted_while_nobody_is_there(world: PulsarWorld, raw: RawClient) -> None:
    consumer = consume(world, kind=1)
    raw.produce([b"a"], [b"b"])
    world.world.run()
    txn = begin(raw)
    join(raw, txn)
    ack(consumer, txn, [0])
    consumer.lose()
    end(raw, txn, ABORT)
    assert bodies(consume(world, kind=1)) == [b"a", b"b"]


def test_everything_up_to(world: PulsarWorld, raw: RawClient) -> None:
    consumer = consume(world)
    raw.produce([b"a"], [b"b"], [b"c"])
    one, two = begin(raw), begin(raw)
    join(raw, one)
    join(raw, two)
    assert not ack(consumer, one, [1], cumulative=True).HasField("error")
    assert ack(consumer, two, [2], cumulative=True).error == ServerError.TransactionConflict
    consumer.events.clear()
    end(raw, one, ABORT)
    assert bodies(consumer) == [b"a", b"b", b"c"]
    assert not ack(consumer, two, [1], cumulative=True).HasField("error")
    end(raw, two, COMMIT)
    assert consumer.consumer.subscription.cursor.mark == 1


def test_there_is_an_end(raw: RawClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MOST", 1)
    begin(raw)
    assert raw.ask("NEW_TXN", tc_id=0)[1].error == ServerError.TooManyRequests


def test_a_topic_that_is_gone_holds_nothing_up(world: PulsarWorld, raw: RawClient) -> None:
    txn = begin(raw, "t")
    raw.subscribe()
    join(raw, txn)
    world.rest("DELETE", "persistent/public/default/t", force="true")
    assert not end(raw, txn, COMMIT).HasField("error")

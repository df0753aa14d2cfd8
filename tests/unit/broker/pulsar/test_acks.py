"""ACK and REDELIVER at the broker: receipts, and what is ignored."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def raw(codec: Any) -> RawClient:
    return RawClient(PulsarWorld(codec))


def ack(raw: RawClient, ids: list[Any], consumer_id: int = 0, **options: Any) -> Any:
    raw.events.clear()
    raw.write(raw.codec.encode_ack(consumer_id, ids, request_id=99, **options))
    [(name, told)] = raw.events
    assert (name, told.request_id, told.consumer_id) == ("ACK_RESPONSE", 99, consumer_id)
    return told


def test_receipts(raw: RawClient) -> None:
    raw.produce([b"0"], [b"1"])
    raw.subscribe()
    ledger = raw.session.topics.make("t").ledger
    assert not ack(raw, [(ledger, 0), (ledger, 1)]).HasField("error")
    assert raw.consumer.subscription.backlog == 0
    assert ack(raw, [(ledger, 0)], consumer_id=7).error == ServerError.ConsumerNotFound
    assert ack(raw, [(ledger, 0)], txn=(0, 1)).error == ServerError.TransactionNotFound


def test_cumulative_is_not_for_shared(raw: RawClient) -> None:
    raw.produce([b"0"])
    raw.subscribe(subType=1)
    ledger = raw.session.topics.make("t").ledger
    assert not ack(raw, [(ledger, 0)], cumulative=True).HasField("error")  # ignored, as by a real broker
    assert raw.consumer.subscription.backlog == 1


def test_ids_that_mean_nothing_here_change_nothing(raw: RawClient) -> None:
    raw.produce([b"0"])
    raw.subscribe(subType=1)
    raw.flow(5)
    ledger = raw.session.topics.make("t").ledger
    for message_id in ((ledger + 1, 0), (ledger, 5), (-1, -1)):
        ack(raw, [message_id])
    assert raw.consumer.subscription.backlog == 1
    raw.tell("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=5)
    raw.tell("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=0, message_ids=[{"ledgerId": ledger + 1, "entryId": 0}])
    assert raw.entries() == []


def test_an_entry_named_twice_comes_again_once(raw: RawClient) -> None:
    raw.produce([b"0"], [b"1"])
    raw.subscribe(subType=1)
    raw.flow(5)
    at = {"ledgerId": raw.session.topics.make("t").ledger, "entryId": 1}
    raw.events.clear()
    raw.tell("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=0, message_ids=[at, at])
    assert [(entry.entry, entry.redelivery_count) for entry in raw.entries()] == [(1, 1)]


def test_for_a_transaction(raw: RawClient) -> None:
    """Registered first, then held, then in conflict with another."""
    raw.produce([b"a"], [b"b", b"c"])
    raw.subscribe()
    raw.flow(10)
    transactions = raw.world.door.topics.transactions
    one, two = transactions.begin(0, 60_000), transactions.begin(0, 60_000)
    ledger = raw.world.door.topics.make("t").ledger
    assert ack(raw, [(ledger, 0)], txn=one).error == ServerError.InvalidTxnStatus
    for txn in (one, two):
        transactions.get(txn).subscriptions.add(("persistent://public/default/t", "s"))
    assert not ack(raw, [(ledger, 0), (ledger, 99), (ledger + 1, 0)], txn=one).HasField("error")
    assert ack(raw, [(ledger, 0)], txn=two).error == ServerError.TransactionConflict
    assert not ack(raw, [(ledger, 1, [0b10])], txn=two).HasField("error")
    assert not ack(raw, [(ledger, 1)], txn=one, cumulative=True).HasField("error")
    assert raw.consumer.subscription.pending_acks.held(1) == 0b01

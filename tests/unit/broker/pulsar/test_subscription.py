"""The broker's half of the account of permits, and who gets what."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.pulsar_world import PulsarWorld, RawClient

SHARED, FAILOVER, KEY_SHARED = 1, 2, 3


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec, maxUnackedMessagesPerConsumer=10)


@pytest.fixture
def raw(world: PulsarWorld) -> RawClient:
    return RawClient(world)


def ids(entries: list[Any]) -> list[int]:
    return [entry.entry for entry in entries]


def ack(raw: RawClient, *given: Any, **options: Any) -> None:
    ledger = raw.session.topics.make("t").ledger
    acked = [(ledger, *(one if isinstance(one, tuple) else (one,))) for one in given]
    raw.events.clear()
    raw.write(raw.codec.encode_ack(0, acked, **options))


def test_a_permit_is_a_message_and_an_entry_is_not_split(raw: RawClient) -> None:
    raw.produce([b"x"] * 5, [b"x"] * 5, [b"x"])
    raw.subscribe()
    assert ids(raw.flow(1)) == [0]
    assert raw.consumer.permits == -4
    assert ids(raw.flow(4)) == []
    assert ids(raw.flow(1)) == [1]
    assert ids(raw.flow(4)) == []
    assert ids(raw.flow(1)) == [2]
    assert raw.consumer.permits == 0


def test_what_is_acknowledged_of_a_batch_is_not_charged(world: PulsarWorld, raw: RawClient) -> None:
    raw.produce([b"x"] * 5)
    raw.subscribe(subType=SHARED)
    raw.flow(10)
    ack(raw, (0, (0b10010,)))
    assert (raw.consumer.unacked, raw.consumer.permits) == (2, 5)
    other = RawClient(world)
    other.subscribe(subType=SHARED)
    raw.lose()
    [entry] = other.flow(10)
    assert (entry.ack_set, entry.charged, other.consumer.permits, other.consumer.unacked) == ((0b10010,), 2, 8, 2)


def test_flow_while_blocked_is_set_aside(raw: RawClient) -> None:
    raw.produce(*[[b"x"]] * 40)
    raw.subscribe(subType=SHARED)
    assert len(raw.flow(30)) == 10
    consumer = raw.consumer
    assert (consumer.blocked, consumer.permits, consumer.unacked) == (True, 20, 10)
    assert raw.flow(7) == []
    assert (consumer.permits, consumer.aside) == (20, 7)
    ack(raw, 0, 1, 2, 3)
    assert (consumer.blocked, raw.entries()) == (True, [])
    ack(raw, 4)
    assert len(raw.entries()) == 5
    assert (consumer.permits, consumer.aside, consumer.unacked, consumer.blocked) == (22, 0, 10, True)


def test_redelivery_unblocks_and_counts(raw: RawClient) -> None:
    raw.produce(*[[b"x"]] * 12)
    raw.subscribe(subType=SHARED)
    raw.flow(100)
    raw.flow(5)
    ledger = raw.session.topics.make("t").ledger
    raw.tell("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=0, message_ids=[{"ledgerId": ledger, "entryId": 3}])
    assert [(entry.entry, entry.redelivery_count) for entry in raw.entries()] == [(3, 1)]
    raw.tell("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=0)
    counts = {entry.entry: entry.redelivery_count for entry in raw.entries()}
    assert counts == {entry: 2 if entry == 3 else 1 for entry in range(10)}
    assert raw.consumer.permits + raw.consumer.aside == 105 - 10 - 1 - 10


def test_an_active_consumer_that_asks_again_gets_what_is_not_acknowledged(raw: RawClient) -> None:
    raw.produce(*[[b"x"]] * 4)
    raw.subscribe(consumer_epoch=0)
    raw.flow(100)
    ack(raw, 1)
    raw.tell("REDELIVER_UNACKNOWLEDGED_MESSAGES", consumer_id=0, consumer_epoch=3)
    assert [(entry.entry, entry.redelivery_count, entry.consumer_epoch) for entry in raw.entries()] == [
        (0, 0, 3),
        (2, 0, 3),
        (3, 0, 3),
    ]


def test_shared_is_in_turn_by_priority(world: PulsarWorld, raw: RawClient) -> None:
    low = RawClient(world)
    low.subscribe(subType=SHARED, priority_level=1)
    raw.subscribe(subType=SHARED)
    second = RawClient(world)
    second.subscribe(subType=SHARED)
    low.flow(100)
    raw.flow(5)
    second.flow(5)
    raw.produce(*[[b"x"]] * 13)
    assert [len(client.entries()) for client in (second, low)] == [5, 3]
    assert raw.consumer.delivered == 5


def test_an_acknowledgement_by_another_relieves_the_owner(world: PulsarWorld, raw: RawClient) -> None:
    raw.produce([b"x"], [b"x"])
    raw.subscribe(subType=SHARED)
    raw.flow(5)
    other = RawClient(world)
    other.subscribe(subType=SHARED)
    ack(other, 0)
    assert (raw.consumer.unacked, list(raw.consumer.pending)) == (1, [1])


def test_cumulative(raw: RawClient) -> None:
    raw.produce([b"x"] * 4, [b"x"] * 4, [b"x"])
    raw.subscribe()
    raw.flow(100)
    ack(raw, (1, (0b1100,)), cumulative=True)
    cursor = raw.consumer.subscription.cursor
    assert (cursor.mark, cursor.remaining(1, 4), raw.consumer.subscription.backlog) == (0, 0b1100, 2)
    ack(raw, 1, cumulative=True)
    assert (cursor.mark, raw.consumer.subscription.backlog) == (1, 1)


def test_failover_goes_by_priority_and_ring(world: PulsarWorld, raw: RawClient) -> None:
    """On a topic without partitions the ring decides: as a real 4.2.4 chose for "fo1", "a" < "b" < "c" there."""
    raw.produce([b"0"], [b"1"], topic="fo1")
    raw.subscribe(subType=FAILOVER, consumer_name="a", topic="fo1")
    raw.flow(10)
    first = RawClient(world)
    first.subscribe(subType=FAILOVER, consumer_name="b", topic="fo1")
    told = [(name, told.is_active) for name, told in raw.events[-1:]]
    assert told == [("ACTIVE_CONSUMER_CHANGE", False)]
    assert ids(first.flow(10)) == [0, 1]  # what is not acknowledged, again
    later = RawClient(world)
    later.subscribe(subType=FAILOVER, consumer_name="c", topic="fo1")
    assert [told.is_active for name, told in later.events if name == "ACTIVE_CONSUMER_CHANGE"] == [False]
    urgent = RawClient(world)
    urgent.subscribe(subType=FAILOVER, consumer_name="x", priority_level=-1, topic="fo1")
    assert [told.is_active for name, told in urgent.events if name == "ACTIVE_CONSUMER_CHANGE"] == [True]
    urgent.lose()
    first.lose()
    later.lose()
    assert raw.consumer.subscription.active is raw.consumer


def test_of_partitions_the_number_decides(world: PulsarWorld) -> None:
    clients = [RawClient(world) for _ in range(3)]
    for name, client in zip("cab", clients, strict=True):
        client.subscribe(subType=FAILOVER, consumer_name=name, topic="t-partition-4")
    active = clients[0].consumer.subscription.active
    assert active is not None
    assert active.name == "b"


def test_the_whole_subscription_has_a_limit(codec: Any) -> None:
    world = PulsarWorld(codec, maxUnackedMessagesPerSubscription=4)
    one, two = RawClient(world), RawClient(world)
    for client in (one, two):
        client.subscribe(subType=SHARED)
        client.flow(100)
    one.produce(*([b"x"] for _ in range(10)))
    taken = ids(one.entries()) + ids(two.entries())
    subscription = one.consumer.subscription
    assert (len(taken), subscription.unacked, subscription.blocked) == (4, 4, True)
    for client in (one, two):
        client.events.clear()
    ack(one, *taken[:2])
    assert (one.entries() + two.entries(), subscription.blocked) == ([], True)
    ack(one, taken[2])
    assert len(one.entries() + two.entries()) == 3
    two.lose()
    assert subscription.unacked == one.consumer.unacked


def test_parts_of_a_message_go_to_one_consumer(world: PulsarWorld) -> None:
    clients = [RawClient(world) for _ in range(2)]
    for client in clients:
        client.subscribe(subType=SHARED)
    raw = clients[0]
    raw.ask("PRODUCER", topic="t", producer_id=9)
    for message in range(3):
        for part in range(30):
            named = {"uuid": f"m{message}", "num_chunks": 30, "chunk_id": part, "total_chunk_size": 30}
            metadata = raw.codec.encode_metadata("raw", message, 1, **named)
            raw.write(raw.codec.encode_send(9, message, metadata, b"x", is_chunk=True))
    limitless = [client.consumer for client in clients]
    for consumer in limitless:
        consumer.limit = 0
    for client in clients:
        client.events.clear()
    for _ in range(20):
        for client in clients:
            client.write(client.codec.encode_flow(0, 7))
    took = [{entry.uuid for entry in client.entries()} for client in clients]
    assert took[0] | took[1] == {"m0", "m1", "m2"}
    assert not took[0] & took[1]
    assert sum(len(client.entries()) for client in clients) == 90


def test_a_key_waits_while_its_former_owner_has_some_of_it(world: PulsarWorld) -> None:
    one, two = RawClient(world), RawClient(world)
    one.subscribe(subType=KEY_SHARED, consumer_name="a")
    keyed(one, "k", 2)
    assert ids(one.flow(1)) == [0]
    two.subscribe(subType=KEY_SHARED, consumer_name="b")
    two.flow(100)
    one.flow(100)
    owners = [client for client in (one, two) if len(client.consumer.pending) > (client is one)]
    assert owners == [one] or owners == []  # never the other one before entry 0 is acknowledged
    assert 1 not in two.consumer.pending
    ack(one, 0)
    world.world.run()
    assert 1 in (*one.consumer.pending, *two.consumer.pending)


def keyed(raw: RawClient, key: str, count: int, b64: bool = False) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=900)
    for number in range(count):
        metadata = raw.codec.encode_metadata("raw", number, 1, partition_key=key, key_b64=b64 or None)
        raw.write(raw.codec.encode_send(900, number, metadata, b"x"))


def test_keys_given_as_bytes_are_hashed_as_bytes(world: PulsarWorld, raw: RawClient) -> None:
    raw.subscribe(subType=KEY_SHARED)
    keyed(raw, "k", 1)
    keyed(raw, "aw==", 1, b64=True)
    raw.flow(10)
    subscription = raw.consumer.subscription
    assert subscription._key_hash(0) == subscription._key_hash(1)


def test_a_slow_reader_of_bytes_gets_nothing_more(raw: RawClient) -> None:
    raw.subscribe()
    raw.flow(100)
    raw.session.pause_writing()
    raw.produce([b"0"], [b"1"])
    assert raw.consumer.delivered == 0
    raw.session.resume_writing()
    raw.world.world.run()
    assert raw.consumer.delivered == 2


def test_what_a_transaction_acknowledged(world: PulsarWorld, raw: RawClient) -> None:
    raw.produce([b"a"], [b"b"], [b"c"])
    raw.subscribe(subType=SHARED)
    raw.flow(10)
    subscription = raw.consumer.subscription
    for txn, entry in (((0, 1), 0), ((0, 2), 1)):
        subscription.pending_acks.add(txn, entry, 1, 1)
    subscription.redeliver(raw.consumer, None, None)
    raw.events.clear()
    world.world.run()
    assert ids(raw.entries()) == [2]
    subscription.end_txn((0, 1), True)
    subscription.end_txn((0, 2), False)
    world.world.run()
    assert (ids(raw.entries()), subscription.backlog) == ([2, 1], 2)


def test_what_a_transaction_acknowledged_for_one_consumer(world: PulsarWorld, raw: RawClient) -> None:
    raw.produce([b"a"], [b"b"])
    raw.subscribe()
    raw.flow(10)
    subscription = raw.consumer.subscription
    subscription.pending_acks.add_up_to((0, 1), 0, None, -1)
    subscription.end_txn((0, 1), False)
    raw.events.clear()
    world.world.run()
    assert ids(raw.entries()) == [0, 1]
    subscription.pending_acks.add_up_to((0, 1), 0, None, -1)
    subscription.end_txn((0, 1), True)
    assert subscription.cursor.mark == 0


def test_what_is_not_due_or_not_to_be_seen(world: PulsarWorld, raw: RawClient) -> None:
    topic = world.door.topics.make("t")
    raw.produce([b"a"], [b"b"], [b"c"])
    topic.hidden[1] = True
    topic.delays[0] = world.world.wall_ms + 1000
    raw.subscribe(subType=SHARED)
    assert ids(raw.flow(10)) == [2]
    raw.events.clear()
    world.world.advance(1.1)
    assert ids(raw.entries()) == [0]


def test_the_end_of_a_terminated_topic(world: PulsarWorld, raw: RawClient) -> None:
    raw.produce([b"a"])
    raw.subscribe()
    raw.flow(10)
    world.door.topics.make("t").terminated = True
    ack(raw, 0)
    assert [name for name, *_ in raw.events] == ["REACHED_END_OF_TOPIC"]


def test_another_is_active_after_a_delay(codec: Any) -> None:
    """As recorded in failover_active_change: who joins is told at once, everybody when it is done."""
    world = PulsarWorld(codec, activeConsumerFailoverDelayTimeMillis=1000)
    one, two = RawClient(world), RawClient(world)
    one.produce([b"0"], topic="fo4")
    one.subscribe(subType=FAILOVER, consumer_name="a", topic="fo4")
    assert one.flow(10) == []
    two.subscribe(subType=FAILOVER, consumer_name="b", topic="fo4")
    assert [told.is_active for name, told in two.events if name == "ACTIVE_CONSUMER_CHANGE"] == [False]
    two.events.clear()
    world.world.advance(1.1)
    assert [event[0] for event in one.events] == ["ACTIVE_CONSUMER_CHANGE", one.codec.MESSAGE]
    assert [told.is_active for _, told in two.events] == [False]
    two.flow(10)
    one.lose()
    assert two.events == []
    world.world.advance(1.1)
    assert ids(two.entries()) == [0]
    two.lose()
    three = RawClient(world)
    three.subscribe(subType=FAILOVER, topic="fo4")
    three.lose()
    world.world.advance(2)
    assert three.entries() == []


def test_a_key_that_is_no_base64(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1)
    for key in ("abc", "!!!!", "YWJj"):
        metadata = raw.codec.encode_metadata("p", 0, 1, partition_key=key, key_b64=True)
        raw.write(raw.codec.encode_send(1, 0, metadata, b"x"))
    raw.subscribe(subType=KEY_SHARED)
    assert ids(raw.flow(10)) == [0, 1, 2]

"""Submitted entries that leave together: who joins, outcomes one by one, what becomes of them when all goes wrong."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from mqclient.errors import DeadlineError, LinkError, MQError
from mqclient.pulsar import holding
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.outgoing import prepare
from mqclient.pulsar.producer import ProducerEngine
from mqclient.pulsar.schema import STRING
from mqclient.pulsar.train import Train
from tests.support.fake_driver import FakeDriver
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


Opened = Callable[..., ProducerEngine]


@pytest.fixture
def opened(world: PulsarWorld) -> Opened:
    def open_it(latency: float = 0.0001, **options: Any) -> ProducerEngine:
        producer = world.producer(world.client(), "t", batching=False, **options)
        world.world.latency = latency
        return producer

    return open_it


def submit(producer: ProducerEngine, *bodies: bytes, **said: Any) -> list[Any]:
    """As the face does."""
    futures = []
    for body in bodies:
        message = prepare(body, **said)
        future = producer.board(message)
        if future is None:
            with producer.client.driver.enter():
                future = producer.submit(message)
        futures.append(future)
    return futures


def numbers(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(start, count)]


def bodies(world: PulsarWorld) -> list[bytes]:
    codec, log = world.impl.pulsar, world.door.topics.make("t").log
    entries = [codec.Entry.from_stored(log.record(number)) for number in range(log.next)]
    return [message.body for entry in entries for message in codec.decode_messages(entry)]


def riding(futures: list[Any]) -> list[bool]:
    return [isinstance(future.batch, Train) for future in futures]


def test_those_behind_the_first_join_and_have_outcomes_of_their_own(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    futures = submit(producer, *numbers(5))
    assert riding(futures) == [False] + [True] * 4
    assert producer.diagnose()["pending"] == 5
    assert not any(future.done() for future in futures)
    assert [future.result().entry for future in futures] == list(range(5))
    assert futures[3].result() == world.impl.pulsar.MessageId(futures[3].result().ledger, 3)
    assert bodies(world) == numbers(5)
    assert producer.published == 4
    shown = producer.diagnose()
    assert (shown["messages"], shown["batches"], shown["pending"]) == (5, 5, 0)
    assert (producer.client.budget.bytes, producer.client.budget.items) == (0, 0)


def test_keys_and_times_ride_along_and_other_things_keep_their_turn(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    futures = submit(producer, b"0", b"1")
    futures += submit(producer, b"2", key="k", event_time=7, ordering_key=b"o")
    futures += submit(producer, b"3", properties={"a": "b"})
    futures += submit(producer, b"4", sequence_id=9)
    futures += submit(producer, b"5")
    assert riding(futures) == [False, True, True, False, False, True]
    world.world.advance(0.1)
    assert bodies(world) == numbers(6)
    log, codec = world.door.topics.make("t").log, world.impl.pulsar
    entries = [codec.Entry.from_stored(log.record(number)) for number in range(6)]
    assert (entries[2].partition_key, entries[2].event_time, entries[2].ordering_key) == ("k", 7, b"o")
    assert [entry.sequence_id for entry in entries] == [0, 1, 2, 3, 9, 10]


def test_a_train_ends_after_a_moment_or_when_it_is_full(world: PulsarWorld, opened: Opened) -> None:
    producer = opened(5.0, linger=60.0)
    first = submit(producer, *numbers(3))
    world.world.advance(2 * holding.SECONDS)
    second = submit(producer, b"3", b"4")
    assert riding(second) == [False, True]  # who comes too late takes the others along
    third = submit(producer, bytes(holding.MOST // 2), bytes(holding.MOST // 2), bytes(holding.MOST))
    assert riding(third) == [True, False, True]
    assert third[0].batch is second[1].batch
    world.world.advance(60)
    assert all(future.done() for future in [*first, *second, *third])
    assert producer.client.budget.bytes == 0


@pytest.mark.parametrize("options", [{"max_pending": 9}, {"compression": "zlib"}, {"chunking": True}], ids=str)
def test_where_each_message_is_looked_at_none_rides(world: PulsarWorld, opened: Opened, options: Any) -> None:
    producer = opened(**options)
    futures = submit(producer, *numbers(3))
    assert riding(futures) == [False] * 3
    world.world.advance(0.1)
    assert bodies(world) == numbers(3)


def test_without_room_they_do_not_ride(world: PulsarWorld) -> None:
    client = world.client(memory_limit=1000)
    producer = world.producer(client, "t", batching=False)
    world.world.latency = 1.0
    futures = submit(producer, b"0", b"1")
    assert riding(futures) == [False, False]


def test_too_large_is_refused_in_its_place(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    futures = submit(producer, b"0", b"1", bytes(producer.limit), b"2")
    world.world.advance(0.1)
    with pytest.raises(MQError, match="the broker takes"):
        futures[2].result()
    assert [futures[index].result().entry for index in (0, 1, 3)] == [0, 1, 2]
    assert producer.client.budget.bytes == 0


def test_callbacks_come_once_with_the_very_future(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    told: list[Any] = []
    futures = submit(producer, *numbers(4))
    futures[1].add_done_callback(lambda future: 1 / 0)
    for future in futures[1:3]:
        future.add_done_callback(told.append)
    world.world.advance(0.1)
    futures[3].add_done_callback(told.append)
    world.world.advance(0.1)
    assert told == futures[1:4]


def test_waiting_ends_with_its_own_outcome(world: PulsarWorld, opened: Opened) -> None:
    producer = opened(1.0, linger=0.01)
    futures = submit(producer, *numbers(3))
    with pytest.raises(DeadlineError):
        futures[2].result(0.5)
    assert futures[2].result(10).entry == 2
    aio = world.producer(world.client(blocking=False), "u", batching=False)
    stuck = submit(aio, *numbers(2))
    with pytest.raises(MQError, match="await"):
        stuck[1].result(1)


def test_flush_and_close_wait_for_the_last_one(world: PulsarWorld, opened: Opened) -> None:
    producer = opened(0.5, linger=60.0)
    futures = submit(producer, *numbers(3))
    with producer.client.driver.enter():
        slot = producer.flush()
    assert not slot.done
    world.world.result(slot)
    assert all(future.done() for future in futures)
    more = submit(producer, *numbers(3))
    world.steps(producer.client, producer.close_steps)
    assert [future.result().entry for future in more] == [3, 4, 5]
    with producer.client.driver.enter(), pytest.raises(MQError, match="closed"):
        producer.submit(prepare(b"late"))


def test_a_cut_connection_sends_the_rest_again_in_order(world: PulsarWorld, opened: Opened) -> None:
    producer = opened(0.001, linger=0.002)
    futures = submit(producer, *numbers(3))
    world.cut()
    futures += submit(producer, *numbers(6, 3))
    world.world.advance(5)
    assert all(future.exception() is None for future in futures)
    assert list(dict.fromkeys(bodies(world))) == numbers(6)
    assert producer.published == 5
    assert (producer.client.budget.bytes, producer.client.budget.items) == (0, 0)


def test_what_was_stored_before_the_cut_is_not_sent_again(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    futures = submit(producer, *numbers(3))
    train = futures[1].batch
    with producer.client.driver.enter():
        producer.uncouple()
        producer._held.take()
        connection = producer.attachment.connection
        assert connection is not None
        events = [(world.impl.pulsar.SEND_RECEIPT, producer.producer_id, number, 7, number, -1) for number in (0, 1)]
        assert producer.on_receipts(events, 0) == 1
        assert producer.on_receipts(events, 1) == 1
    assert (train.settled, train.count, futures[1].result().ledger) == (1, 1, 7)
    world.cut()
    world.world.advance(5)
    assert bodies(world) == [b"0", b"2"]  # the others never left
    assert futures[2].result().entry >= 0
    assert train.done


def receipt(world: PulsarWorld, producer: ProducerEngine, sequence_id: int, ledger: int, entry: int) -> int:
    with producer.client.driver.enter():
        return producer.on_receipts(
            [(world.impl.pulsar.SEND_RECEIPT, producer.producer_id, sequence_id, ledger, entry, -1)], 0
        )


def test_a_receipt_out_of_order_sends_anew(world: PulsarWorld, opened: Opened) -> None:
    producer = opened(0.5, linger=60.0)
    futures = submit(producer, *numbers(4))
    world.world.advance(0.1)
    receipt(world, producer, 0, 7, 0)
    receipt(world, producer, 2, 7, 2)  # of the train the second
    world.world.advance(10)
    assert all(future.exception() is None for future in futures)
    assert producer.counts["resent"] == 3


def test_known_and_late_receipts(world: PulsarWorld, opened: Opened) -> None:
    producer = opened(50.0, linger=60.0)
    futures = submit(producer, *numbers(4))
    receipt(world, producer, 0, 7, 0)
    receipt(world, producer, 2, -1, -1)  # ahead of its turn
    assert not futures[2].done()
    receipt(world, producer, 1, 7, 1)
    assert [future.done() for future in futures] == [True] * 3 + [False]
    assert futures[2].result().ledger == -1
    receipt(world, producer, 1, 7, 1)
    assert producer.counts["late"] == 1
    receipt(world, producer, 3, 7, 3)
    assert futures[3].result().entry == 3
    assert (producer.client.budget.bytes, producer.client.budget.items) == (0, 0)


def test_an_error_of_one_is_its_own(world: PulsarWorld, opened: Opened) -> None:
    producer = opened(50.0, linger=60.0)
    futures = submit(producer, *numbers(4))
    receipt(world, producer, 0, 7, 0)
    with producer.client.driver.enter():
        producer.on_send_error(1, BrokerError(ServerError.ChecksumError, "bits", remote="b"))
    receipt(world, producer, 2, 7, 1)
    assert isinstance(futures[1].exception(), BrokerError)
    assert futures[2].result().entry == 1
    assert not futures[3].done()
    with producer.client.driver.enter():
        producer.abandon(LinkError("gone"))
    assert isinstance(futures[3].exception(), LinkError)


def test_the_send_timeout_ends_all_of_it(world: PulsarWorld, opened: Opened) -> None:
    producer = opened(100.0, send_timeout=2.0, linger=60.0)
    futures = submit(producer, *numbers(3))
    world.world.advance(3)
    assert all(isinstance(future.exception(), DeadlineError) for future in futures)
    assert producer.client.budget.bytes <= holding.MOST
    with producer.client.driver.enter():
        producer.uncouple()
    assert (producer.client.budget.bytes, producer.client.budget.items) == (0, 0)


def test_partitions_have_trains_of_their_own(world: PulsarWorld) -> None:
    world.door.topics.partition(TopicName.parse("p"), 2)
    producer: Any = world.producer(world.client(), "p", batching=False)
    world.world.latency = 0.001
    futures = submit(producer, *numbers(8))
    assert riding(futures) == [False] * 2 + [True] * 6
    world.world.advance(0.1)
    assert sorted(future.result().partition for future in futures) == [0] * 4 + [1] * 4


# ---- what gathers in a batch is joined in the same way


@pytest.fixture
def batching(world: PulsarWorld) -> Opened:
    def open_it(latency: float = 0.001, **options: Any) -> ProducerEngine:
        producer = world.producer(world.client(), "t", **options)
        world.world.latency = latency
        return producer

    return open_it


def test_who_joins_a_batch_needs_no_entry(world: PulsarWorld, batching: Opened) -> None:
    producer = batching()
    futures = submit(producer, *numbers(2))
    boarded = [producer.board(prepare(body)) for body in numbers(5, 2)]
    assert None not in boarded
    assert producer.diagnose()["gathering"] == 4
    futures += boarded
    assert producer.board(prepare(b"odd", properties={"a": "b"})) is None
    assert producer.board(prepare(b"own", sequence_id=77)) is None
    world.world.advance(0.1)
    assert bodies(world) == numbers(5)
    assert [future.result().batch_index for future in futures] == [0, 0, 1, 2, 3]
    assert producer.published == 4
    assert producer.board(prepare(b"late")) is None


def test_who_submits_by_the_face_joins_without_an_entry(world: PulsarWorld, batching: Opened) -> None:
    producer = batching()
    face, driver = world.sender(producer), producer.client.driver
    assert isinstance(driver, FakeDriver)
    futures = [face.submit(body) for body in numbers(2)]
    before = driver.entries
    futures += [face.submit(body, key="k", event_time=5, ordering_key=b"o") for body in numbers(5, 2)]
    assert driver.entries == before
    futures.append(face.submit(b"5", properties={"a": "b"}))
    assert driver.entries > before  # that had to be looked at
    futures.append(face.submit(b"6"))
    world.world.advance(0.1)
    assert bodies(world) == numbers(7)
    assert [future.result().batch_index for future in futures] == [0, *range(6)]
    assert producer.published == 6


class Stamp:
    """A hook that puts something into each message."""

    def before_send(self, message: Any) -> dict[str, str]:
        return {"stamp": "1"}


@pytest.mark.parametrize(
    "options",
    [{"schema": STRING}, {"hooks": [Stamp()]}, {"batching": False}, {"batching": "key"}],
    ids=["schema", "hooks", "alone", "by key"],
)
def test_where_a_message_has_to_be_looked_at_there_is_no_door(
    world: PulsarWorld, batching: Opened, options: Any
) -> None:
    producer = batching(**options)
    face = world.sender(producer)
    value: Any = "value" if "schema" in options else b"value"
    futures = [face.submit(value) for _ in range(3)]
    assert producer.door(producer.prepare)(b"x", *[None] * 2, 0, *[None] * 6) is None
    world.world.advance(0.1)
    assert [future.result().entry >= 0 for future in futures] == [True] * 3
    assert bodies(world) == [b"value"] * 3


def test_joining_stops_where_something_is_to_be_decided(world: PulsarWorld, batching: Opened) -> None:
    producer = batching(batch_max_messages=4)
    submit(producer, *numbers(4))
    assert producer.board(prepare(b"4")) is None  # the one that makes it full takes the long way
    futures = submit(producer, *numbers(9, 4))
    futures += submit(producer, b"9", properties={"a": "b"}, sequence_id=20)
    futures += submit(producer, b"10")
    with producer.client.driver.enter():
        slot = producer.send(prepare(b"11"))
    world.world.advance(0.1)
    assert bodies(world) == numbers(12)
    assert slot.done
    log, codec = world.door.topics.make("t").log, world.impl.pulsar
    entries = [codec.Entry.from_stored(log.record(number)) for number in range(log.next)]
    found = [message.sequence_id for entry in entries for message in codec.decode_messages(entry)]
    assert found == [*range(9), 20, 21, 22]


@pytest.mark.parametrize("options", [{"max_pending": 9}, {"batching": "key"}], ids=str)
def test_where_each_message_is_counted_none_joins(world: PulsarWorld, batching: Opened, options: Any) -> None:
    producer = batching(**options)
    submit(producer, *numbers(3))
    assert producer.board(prepare(b"3")) is None


def test_nobody_joins_past_those_who_wait(world: PulsarWorld) -> None:
    client = world.client(memory_limit=200_000)
    producer = world.producer(client, "t")
    world.world.latency = 0.001
    submit(producer, *numbers(2))
    assert producer.board(prepare(b"2")) is not None
    with client.driver.enter():
        slot = producer.send(prepare(bytes(131_000)))
    assert producer.board(prepare(b"3")) is None
    world.world.result(slot)
    world.world.advance(0.1)
    assert bodies(world)[:3] == numbers(3)


def test_partitions_are_joined_where_the_last_one_went(world: PulsarWorld) -> None:
    world.door.topics.partition(TopicName.parse("p"), 2)
    producer: Any = world.producer(world.client(), "p")
    world.world.latency = 0.001
    futures = submit(producer, *numbers(2))
    futures.append(producer.board(prepare(b"2")) or submit(producer, b"2")[0])
    assert producer.board(prepare(b"3", "key")) is None
    world.world.advance(0.1)
    assert all(future.exception() is None for future in futures)


def test_threads_that_join_lose_nothing(codec: Any) -> None:
    """One step natively, a lock in the twin: sequence ids and indexes stay together."""
    train = codec.pulsar.EntryTrain(1, "p", 100, 0, 1 << 20, 1 << 20)
    builder = codec.pulsar.BatchBuilder(100_000, 1 << 24)
    token = builder.open(0)
    found: list[list[tuple[int, int]]] = []

    def work() -> None:
        mine = [(train.add(prepare(b"x")), builder.join(prepare(b"x"), token)) for _ in range(500)]
        found.append(mine)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a for mine in found for a, _ in mine) == list(range(2000))
    assert sorted(b for mine in found for _, b in mine) == list(range(2000))
    assert (builder.shut(), train.following) == (2000, 2100)

"""Messages that are sent at once and waited for: who joins, and what becomes of them when something unusual happens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.errors import DeadlineError, LinkError, MQError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.flight import Flight
from mqclient.pulsar.outgoing import prepare
from mqclient.pulsar.producer import ProducerEngine
from mqclient.pulsar.train import Train
from tests.support.pulsar_world import PulsarWorld
from tests.unit.pulsar.test_train import bodies, numbers

Opened = Callable[..., ProducerEngine]


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def opened(world: PulsarWorld) -> Opened:
    def open_it(latency: float = 0.001, **options: Any) -> ProducerEngine:
        producer = world.producer(world.client(), "t", batching=False, **options)
        world.world.latency = latency
        return producer

    return open_it


def send(producer: ProducerEngine, *sent: bytes, **said: Any) -> list[Slot[Any]]:
    slots = []
    for body in sent:
        with producer.client.driver.enter():
            slots.append(producer.send(prepare(body, **said)))
    return slots


def kinds(producer: ProducerEngine) -> list[type]:
    return [type(one) for one in producer.pending]


def settled(producer: ProducerEngine) -> bool:
    """Nothing is on its way, and nothing holds room."""
    budget = producer.client.budget
    return (len(producer.pending), budget.bytes, budget.items) == (0, 0, 0)


def test_each_is_written_at_once_and_has_its_id(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    slots = send(producer, *numbers(5))
    assert kinds(producer) == [Flight]
    shown = producer.diagnose()
    assert (shown["pending"], shown["messages"], shown["batches"]) == (5, 5, 5)
    assert (producer.client.budget.bytes, producer.client.budget.items) == (5, 5)
    world.world.advance(0.01)
    assert [slot.result().entry for slot in slots] == list(range(5))
    assert bodies(world) == numbers(5)
    assert producer.published == 4
    assert settled(producer)
    assert world.do(producer.client, producer.flush) is None


def test_one_flight_serves_somebody_who_sends_again_and_again(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    first = send(producer, b"0")
    (flight,) = producer.pending
    world.world.advance(0.01)
    second = send(producer, b"1", key="k")
    assert list(producer.pending) == [flight]
    world.world.advance(0.01)
    assert [slot.result().entry for slot in first + second] == [0, 1]
    assert settled(producer)


def test_what_is_no_plain_message_takes_the_long_way_in_order(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    slots = send(producer, b"0") + send(producer, b"1", properties={"a": "b"}) + send(producer, b"2")
    slots += send(producer, b"3", sequence_id=70) + send(producer, b"4")
    assert kinds(producer) == [Flight, Batch, Flight, Batch, Flight]
    world.world.advance(0.01)
    assert [slot.result().entry for slot in slots] == list(range(5))
    assert bodies(world) == numbers(5)
    assert producer.published == 71
    with producer.client.driver.enter():
        empty = producer.send(prepare(None))
        large = producer.send(prepare(bytes(producer.limit)))
    world.world.advance(0.01)
    assert empty.result().entry == 5
    assert isinstance(large.error, MQError)
    assert settled(producer)


@pytest.mark.parametrize(("key", "event_time"), [("\ud800", 0), (None, 1 << 70)])
def test_what_cannot_be_written_is_told_and_leaves_nothing(
    world: PulsarWorld, opened: Opened, key: str | None, event_time: int
) -> None:
    """Faces refuse it before."""
    producer = opened()
    slots = send(producer, b"0")
    with producer.client.driver.enter():
        wrong = producer.send((b"1", key, None, event_time, None, -1, False))
    slots += send(producer, b"2")
    world.world.advance(0.01)
    assert isinstance(wrong.error, MQError)
    assert [slot.result().entry for slot in slots] == [0, 1]
    assert settled(producer)


def test_those_who_submit_and_those_who_wait_keep_their_order(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    slots = send(producer, b"0")
    with producer.client.driver.enter():
        future = producer.submit(prepare(b"1"))
    assert kinds(producer) == [Flight, Train]
    slots += send(producer, b"2")
    assert kinds(producer) == [Flight, Train, Flight]
    world.world.advance(0.01)
    assert future is not None
    assert [slots[0].result().entry, future.result().entry, slots[1].result().entry] == [0, 1, 2]
    assert bodies(world) == numbers(3)
    assert settled(producer)


def test_a_lost_connection_sends_them_again(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    slots = send(producer, *numbers(2))
    world.cut()
    world.world.advance(0.001)
    assert not producer.attachment.attached
    slots += send(producer, b"2")  # nobody can say yet whether the first ones are stored
    assert kinds(producer) == [Flight, Batch]
    world.world.advance(5)
    assert all(slot.done and slot.error is None for slot in slots)
    assert list(dict.fromkeys(bodies(world))) == numbers(3)
    assert producer.counts["resent"] == 3
    assert settled(producer)
    (again,) = send(producer, b"3")
    assert kinds(producer) == [Flight]
    world.world.advance(0.01)
    assert again.result()


def test_each_has_its_own_deadline(world: PulsarWorld, opened: Opened) -> None:
    producer = opened(100.0, send_timeout=1.0)
    first = send(producer, b"0")
    world.world.advance(0.6)
    second = send(producer, b"1")
    world.world.advance(0.5)
    assert isinstance(first[0].error, DeadlineError)
    assert (second[0].done, kinds(producer)) == (False, [Batch])
    third = send(producer, b"2")
    assert kinds(producer) == [Batch, Batch], "nobody joins a flight that fell apart"
    world.world.advance(0.6)
    assert isinstance(second[0].error, DeadlineError)
    assert not third[0].done
    world.world.advance(0.5)
    assert isinstance(third[0].error, DeadlineError)
    assert settled(producer)


def test_an_end_fails_all_of_them(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    slots = send(producer, *numbers(3))
    with producer.client.driver.enter():
        producer.abandon(MQError("over"))
    assert [str(slot.error) for slot in slots] == ["over"] * 3
    assert settled(producer)


def test_without_room_they_wait_their_turn(world: PulsarWorld) -> None:
    producer = world.producer(world.client(memory_limit=10), "t", batching=False)
    world.world.latency = 0.001
    slots = send(producer, b"0" * 8, b"1" * 8, b"2")
    assert producer.diagnose()["pending"] == 1
    world.world.advance(0.1)
    assert [slot.result().entry for slot in slots] == [0, 1, 2]
    assert settled(producer)


def test_a_flush_waits_for_the_last_one(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    slots = send(producer, *numbers(2))
    with producer.client.driver.enter():
        flushed = producer.flush()
    seen = [flushed.done]
    world.world.advance(0.01)
    assert [*seen, flushed.done] == [False, True]
    assert [slot.result().entry for slot in slots] == [0, 1]
    assert settled(producer)


@pytest.mark.parametrize("options", [{"max_pending": 10}, {"compression": "zlib"}, {"chunking": True}])
def test_where_each_is_looked_at_by_itself_there_is_none(world: PulsarWorld, opened: Opened, options: Any) -> None:
    producer = opened(**options)
    (slot,) = send(producer, b"0")
    assert kinds(producer) == [Batch]
    world.world.advance(0.01)
    assert slot.result()
    assert settled(producer)


class Lane:
    """As the native one, of which the world's driver has no use."""

    def __init__(self) -> None:
        self.opened = False
        self.published = -1
        self.number = 0
        self.left: list[bytes] = []

    def open(self, flight: Any, passage: Any, number: int) -> bool:
        assert (flight.count, passage) == (0, "a passage")
        self.opened, self.number = True, number
        return True

    def shut(self, deadline: float) -> tuple[int, int, list[bytes]]:
        self.opened = False
        return self.number + 3, 3, self.left


def test_the_lane_opens_for_who_sends_alone_and_counts_when_it_is_shut(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    flights: Any = producer._flights
    lane = flights._lane = Lane()
    flights._passage = lambda link, company: None if company else "a passage"
    for _ in range(7):
        send(producer, b"x")
        world.world.advance(0.01)
    assert not lane.opened
    send(producer, b"x")
    world.world.advance(0.01)
    assert (lane.opened, lane.number) == (True, 8)
    lane.published = 10  # three went that way
    assert producer.published == 10
    shown = producer.diagnose()
    assert (shown["messages"], shown["batches"], shown["last_sequence_id"], lane.opened) == (11, 11, 10, False)
    (slot,) = send(producer, b"y")
    assert producer.pending.head.sequence_id == 11
    world.world.advance(0.01)
    assert slot.done
    assert settled(producer)


def test_what_is_on_its_way_in_the_lane_is_one_of_the_pending_ones(world: PulsarWorld, opened: Opened) -> None:
    producer = opened()
    flights: Any = producer._flights
    send(producer, b"x")
    world.world.advance(0.01)
    lane = flights._lane = Lane()
    lane.opened = True
    waits: Slot[Any] = Slot()
    lane.left = [flights._flight.add(prepare(b"yy"), 1, 0, 99.0, waits)]
    flights._give_up()
    assert (kinds(producer), producer.client.budget.bytes, producer.client.budget.items) == ([Flight], 2, 1)
    world.world.advance(0.01)
    assert waits.done, "what nobody had written is written"
    assert bodies(world) == [b"x", b"yy"]
    assert settled(producer)


@pytest.mark.parametrize("ends", ["the connection", "the broker closed it"])
def test_what_was_left_to_be_written_goes_to_the_next_connection_alone(
    world: PulsarWorld, opened: Opened, ends: str
) -> None:
    producer = opened()
    flights: Any = producer._flights
    send(producer, b"x")
    world.world.advance(0.01)
    lane = flights._lane = Lane()
    lane.opened, lane.number = True, -1
    waits: Slot[Any] = Slot()
    lane.left = [flights._flight.add(prepare(b"yy"), 1, 0, 99.0, waits)]
    link, connection = flights._flight.link, producer.attachment.connection
    assert connection is not None
    with producer.client.driver.enter():
        if ends == "the connection":
            producer.on_lost(connection, LinkError("gone"))
        else:
            producer.on_closed_by_broker(connection, None)
        assert lane.left[0] not in link.outbox
    world.world.advance(5)
    assert waits.done
    assert bodies(world) == [b"x", b"yy"]
    assert producer.counts["resent"] == 1
    assert settled(producer)


@pytest.mark.parametrize(
    ("seconds", "consumes", "opens"), [(0.0005, False, True), (0.002, False, False), (0.0005, True, False)]
)
def test_the_lane_opens_for_several_that_send_all_the_time(
    world: PulsarWorld, opened: Opened, seconds: float, consumes: bool, opens: bool
) -> None:
    producer = opened(latency=seconds)
    if consumes:
        world.consumer(producer.client, "t", "s")
    flights: Any = producer._flights
    lane = flights._lane = Lane()
    asked: list[bool] = []

    def passage(link: Any, company: bool) -> str:
        asked.append(company)
        return "a passage"

    flights._passage = passage
    for _ in range(32):
        assert asked == []
        send(producer, b"x", b"y")
        world.world.advance(4 * seconds)
        assert producer.idle
    assert (lane.opened, asked) == (opens, [True] if opens else [])
    send(producer, b"x", b"y")
    assert not lane.opened, "somebody went the long way"
    world.world.advance(4 * seconds)
    assert not lane.opened, "they are counted anew"
    world.world.advance(1)
    assert lane.shut(0) == (lane.number + 3, 3, [])

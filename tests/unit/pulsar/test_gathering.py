"""What gathers: when it is sealed, what goes alone, room by bytes and by count."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.pulsar.columns import prepare_rows
from mqclient.pulsar.outgoing import prepare, results
from mqclient.pulsar.producer import ProducerEngine
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def many(world: PulsarWorld, producer: ProducerEngine, items: list[Any]) -> list[Any]:
    return results(world.do(producer.client, lambda: producer.send_many(items)))


def entries(world: PulsarWorld, topic: str = "t") -> list[Any]:
    log = world.door.topics.make(topic).log
    return [world.impl.pulsar.Entry.from_stored(log.record(number)) for number in range(log.next)]


def stored(world: PulsarWorld) -> list[list[tuple[int, bytes]]]:
    decode = world.impl.pulsar.decode_messages
    return [[(one.sequence_id, one.body) for one in decode(entry)] for entry in entries(world)]


def test_a_run_and_single_ones_share_batches(world: PulsarWorld) -> None:
    world.world.latency = 0.001
    producer = world.producer(world.client(), "t", batch_max_messages=5, linger=0.5)
    slots: list[Slot[Any]] = [world.ask(producer.client, lambda: producer.send(prepare(b"first")))]
    world.world.run()
    slots.append(world.ask(producer.client, lambda: producer.send(prepare(b"1"))))
    slots.append(world.ask(producer.client, lambda: producer.send_many([b"2", b"3"])))
    assert producer._gathering.count == 3
    slots.append(world.ask(producer.client, lambda: producer.send_many([prepare(b"4"), b"5", b"6"])))
    for slot in slots:
        world.world.result(slot)
    assert [len(entry) for entry in stored(world)] == [1, 5, 1]


def test_one_s_own_sequence_ids(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    with producer.client.driver.enter():
        for number in (5, 9, 7, 8):
            producer.submit(prepare(b"%d" % number, sequence_id=number))
        producer.submit(prepare(b"next"))
    world.world.run()
    assert stored(world) == [[(5, b"5"), (9, b"9")], [(7, b"7"), (8, b"8"), (9, b"next")]]
    assert entries(world)[0].highest_sequence_id == 9
    assert producer.published == 9


def test_delayed_ones_go_alone(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t")
    with producer.client.driver.enter():
        for item in (prepare(b"a"), prepare(b"b", deliver_after=2.0), prepare(b"c", deliver_at=77)):
            producer.submit(item)
        producer.submit(prepare(b"d", replicate_to=[]))
    world.world.run()
    assert stored(world) == [[(0, b"a")], [(1, b"b")], [(2, b"c")], [(3, b"d")]]
    assert [entry.batched for entry in entries(world)] == [True, False, False, False]
    assert [entry.deliver_at for entry in entries(world)] == [None, entries(world)[1].published_at + 2000, 77, None]


@pytest.mark.parametrize("batching", [True, False])
def test_the_window_of_messages(world: PulsarWorld, batching: bool) -> None:
    world.world.latency = 0.001
    producer = world.producer(world.client(), "t", max_pending=7, batching=batching, linger=60.0)
    window = producer._gathering.window
    slots: list[Slot[Any]] = [world.ask(producer.client, lambda: producer.send(prepare(b"x"))) for _ in range(20)]
    assert window.items == 7
    many_slot: Slot[Any] = world.ask(producer.client, lambda: producer.send_many([b"x"] * 50))
    slots.append(many_slot)
    slots.append(world.ask(producer.client, lambda: producer.send(prepare(b"y", deliver_after=1))))
    for slot in slots:
        world.world.result(slot)
    assert (window.items, window.waiting, producer.client.budget.items) == (0, 0, 0)
    assert sum(map(len, stored(world))) == 71
    assert max(map(len, stored(world))) <= 7


def test_rows_and_the_window(world: PulsarWorld) -> None:
    pa = pytest.importorskip("pyarrow")
    producer = world.producer(world.client(), "t", max_pending=10)
    columns, rows = prepare_rows(pa.RecordBatch.from_pydict({"body": [b"%d" % number for number in range(35)]}), None)
    found = world.do(producer.client, lambda: producer.send_rows(columns, rows))
    assert [(part.start, part.stop) for part in found] == [(0, 10), (10, 20), (20, 30), (30, 35)]
    assert producer._gathering.window.items == 0
    assert entries(world)[0].highest_sequence_id == 9


def test_rows_behind_what_gathers(world: PulsarWorld) -> None:
    pa = pytest.importorskip("pyarrow")
    producer = world.producer(world.client(memory_limit=300_000), "t")
    columns, rows = prepare_rows(pa.RecordBatch.from_pydict({"body": [b"row"]}), None)
    with producer.client.driver.enter():
        producer.submit(prepare(b"before"))
        slot = producer.send_rows(columns, rows)
    world.world.result(slot)
    assert [[body for _, body in entry] for entry in stored(world)] == [[b"before"], [b"row"]]
    slot = world.ask(producer.client, lambda: producer.send_rows({"body": (None, bytes(4), b"")}, 3))
    assert isinstance(slot.error, ConfigError)
    assert (producer.client.budget.items, producer._gathering.window.items) == (0, 0)


def test_room_is_given_back_by_what_fails(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", max_pending=3)
    ids = many(world, producer, [b"a", bytes(6 << 20), b"c"])
    assert [isinstance(one, MQError) for one in ids] == [False, True, False]
    assert (producer.client.budget.bytes, producer._gathering.window.items) == (0, 0)


@pytest.mark.parametrize("options", [{}, {"batching": False}, {"batching": "key"}], ids=["batches", "alone", "key"])
@pytest.mark.parametrize("most", [0, 5])
def test_what_cannot_be_written_leaves_nothing(world: PulsarWorld, options: dict[str, Any], most: int) -> None:
    """Half of a surrogate pair is no UTF-8. Faces refuse it; in a mapping that changes only the builder notices."""
    producer = world.producer(world.client(), "t", max_pending=most, **options)
    properties = {"name": "fine"}
    bad = prepare(b"bad", properties=properties)
    properties["name"] = "\ud800"

    def nothing_is_held() -> None:
        world.world.run()
        assert (producer.client.budget.bytes, producer.client.budget.items) == (0, 0)
        assert producer._gathering.window.items == 0
        assert producer.unsettled == 0

    refused = pytest.raises((UnicodeEncodeError, ConfigError), match="surrogates not allowed")
    for _ in range(10):
        with refused:
            world.sender(producer).send(b"bad", properties=properties)
        with refused, producer.client.driver.enter():
            future = producer.submit(bad)
            raise future.exception()  # type: ignore[misc, union-attr]
        nothing_is_held()
    assert entries(world) == []
    if options.get("batching") is False:
        found = many(world, producer, [prepare(b"first", "k"), bad])
        assert [one.ok for one in found] == [True, False]
    else:
        with refused:
            many(world, producer, [prepare(b"first", "k"), bad, prepare(b"third", "k")])
    nothing_is_held()
    assert all(one.ok for one in many(world, producer, [prepare(b"a", "k"), prepare(b"b", "k")]))
    with producer.client.driver.enter():
        future = producer.submit(prepare(b"joined", "k"))
        with suppress(UnicodeEncodeError):
            producer.submit(bad)
    world.world.run()
    assert future is not None
    assert future.result().ok
    nothing_is_held()
    got = [one for entry in stored(world) for one in entry]
    assert [body for _, body in got] == [b"first", b"a", b"b", b"joined"]
    assert sorted({number for number, _ in got}) == [number for number, _ in got]
    assert all(stored(world))  # no entry of nothing


@pytest.mark.parametrize("options", [{}, {"batching": False}, {"batching": "key"}], ids=["batches", "alone", "key"])
def test_an_entry_that_cannot_be_written_fails_all_that_are_in_it(
    world: PulsarWorld, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    producer = world.producer(world.client(), "t", max_pending=10, batch_max_messages=3, **options)

    def frame(*given: Any) -> None:
        raise OSError("a compression that fails")

    monkeypatch.setattr(type(producer.framer), "frame", frame)
    monkeypatch.setattr(type(producer.framer), "frame_alone", frame)
    futures: list[Any]
    with producer.client.driver.enter():
        futures = [producer.submit(prepare(b"%d" % number, "k")) for number in range(3)]
    world.world.run()
    assert all("cannot be written: OSError" in str(future.exception()) for future in futures)
    assert (producer.client.budget.bytes, producer.client.budget.items) == (0, 0)
    assert producer._gathering.window.items == 0
    monkeypatch.undo()
    assert world.send(producer, b"after")[0].ok


def test_who_waits_for_a_closed_one(world: PulsarWorld) -> None:
    world.world.latency = 0.001
    producer = world.producer(world.client(), "t", max_pending=1, batching=False)
    world.control.drop("SEND", times=10)
    slots = [world.ask(producer.client, lambda: producer.send(prepare(b"x"))) for _ in range(3)]
    with producer.client.driver.enter():
        producer.abandon(ClosedError("closed"))
    world.world.run()
    assert {type(slot.error) for slot in slots} == {ClosedError}
    assert (producer.client.budget.items, producer._gathering.window.items) == (0, 0)


class Txn:
    """A transaction as the gathering sees it: who takes part, and what is under way."""

    id = (1, 2)

    def __init__(self) -> None:
        self.joined: dict[str, Slot[None]] = {}
        self.running = 0
        self.errors: list[Any] = []
        self.over: MQError | None = None

    def check(self, client: Any) -> None:
        if self.over is not None:
            raise self.over

    def enlisted(self, topic: str) -> bool:
        return topic in self.joined and self.joined[topic].done and self.joined[topic].error is None

    def enlist(self, topic: str) -> Slot[None]:
        return self.joined.setdefault(topic, Slot())

    def began(self) -> None:
        self.running += 1

    def ended(self, error: Any) -> None:
        self.running -= 1
        self.errors += [error] if error is not None else []


def in_txn(txn: Txn, body: bytes) -> Any:
    return prepare(body, txn=SimpleNamespace(engine=txn))


def test_messages_of_a_transaction_wait_until_their_topic_takes_part(world: PulsarWorld) -> None:
    producer, txn = world.producer(world.client(), "t", max_pending=10), Txn()
    sent = [world.ask(producer.client, lambda n=n: producer.send(in_txn(txn, b"%d" % n))) for n in range(3)]  # type: ignore[misc]
    world.world.run()
    assert (txn.running, [slot.done for slot in sent]) == (3, [False] * 3)
    with producer.client.driver.enter():
        txn.joined["persistent://public/default/t"].complete(None)
    world.control.drop("SEND", times=10)  # this world's broker knows no such transaction
    with producer.client.driver.enter():
        assert producer.pending.messages == 3
        assert [getattr(batch, "lot", None) for batch in producer.pending] == [{"txn": (1, 2)}]
        producer.abandon(ClosedError("gone"))
    world.world.run()
    assert (txn.running, len(txn.errors)) == (0, 1)


def test_a_topic_that_cannot_take_part_keeps_nobody_waiting(world: PulsarWorld) -> None:
    producer, txn = world.producer(world.client(), "t", max_pending=10), Txn()
    sent = world.ask(producer.client, lambda: producer.send(in_txn(txn, b"x")))
    with producer.client.driver.enter():
        txn.joined["persistent://public/default/t"].fail(MQError("no"))
    world.world.run()
    assert str(sent.error) == "no"
    assert (txn.running, len(txn.errors)) == (0, 1)
    txn.over = MQError("has ended")
    late = world.ask(producer.client, lambda: producer.send(in_txn(txn, b"x")))
    world.world.run()
    assert str(late.error) == "has ended"
    assert world.sender(producer).send(b"plain").entry == 0


def test_a_producer_that_ends_while_messages_of_a_transaction_wait(world: PulsarWorld) -> None:
    producer, txn = world.producer(world.client(), "t", max_pending=1), Txn()
    world.control.delay("SEND", 5.0)
    first = world.ask(producer.client, lambda: producer.send(prepare(b"plain")))
    waits = world.ask(producer.client, lambda: producer.send(in_txn(txn, b"x")))
    with producer.client.driver.enter():
        txn.joined["persistent://public/default/t"].complete(None)
        producer.abandon(ClosedError("gone"))
    world.world.advance(10)
    assert isinstance(first.error, ClosedError)
    assert isinstance(waits.error, ClosedError)
    assert (txn.running, len(txn.errors)) == (0, 1)


def test_what_only_joins(world: PulsarWorld) -> None:
    """It needs no entry; the last one that fits, and whatever says more than a body, does."""
    world.world.latency = 0.001
    producer = world.producer(world.client(), "t", batch_max_messages=4, batch_max_bytes=1000, linger=60.0)
    gathering = producer._gathering
    assert gathering.join(prepare(b"nothing gathers")) is None
    slots: list[Slot[Any]] = [world.ask(producer.client, lambda: producer.send(prepare(b"alone")))]
    slots.append(world.ask(producer.client, lambda: producer.send(prepare(b"0"))))
    others: list[dict[str, Any]] = [
        {"key": "k"},
        {"properties": {"a": "b"}},
        {"ordering_key": b"o"},
        {"sequence_id": 9},
        {"deliver_at": 7},
    ]
    for more in others:
        assert gathering.join(prepare(b"x", **more)) is None
    for body in (None, bytearray(b"x"), b"x" * 950):
        assert gathering.join(prepare(body)) is None
    first = gathering.join(prepare(b"1"))
    assert first is not None
    assert gathering.join(prepare(b"2", event_time=5)) is first
    assert gathering.join(prepare(b"the fourth seals")) is None
    slots.append(world.ask(producer.client, lambda: producer.send(prepare(b"3"))))
    for slot in slots:
        world.world.result(slot)
    assert stored(world) == [[(0, b"alone")], [(1, b"0"), (2, b"1"), (3, b"2"), (4, b"3")]]
    assert first.outcome(2).batch_index == 2


def test_nothing_joins_where_each_is_looked_at(world: PulsarWorld) -> None:
    for options in ({"max_pending": 100}, {"batching": "key"}, {"batching": False}):
        producer = world.producer(world.client(), "t", linger=60.0, **options)
        with producer.client.driver.enter():
            producer.submit(prepare(b"x"))
            producer.submit(prepare(b"y"))
            assert producer._gathering.join(prepare(b"z")) is None


def test_an_express_is_for_the_loop_alone(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", linger=60.0)
    driver: Any = producer.client.driver
    with driver.enter():
        producer.submit(prepare(b"x"))
        assert producer.express(prepare(b"threads")) is None
        producer.express = producer._join  # as where the driver has a loop
        producer._loop, producer._here = SimpleNamespace(call_soon=lambda call, *given: call(*given)), lambda: False
        assert producer.express(prepare(b"another thread")) is None
        producer._here = lambda: True
        wait = producer.express(prepare(b"y"))
    assert wait is not None
    world.world.run()
    assert wait.result().batch_index == 1
    assert stored(world) == [[(0, b"x"), (1, b"y")]]

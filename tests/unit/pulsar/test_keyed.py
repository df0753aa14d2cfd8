"""Batching by key: entries of one key each, one set of limits, order by first message."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError, DeadlineError
from mqclient.pulsar.outgoing import prepare, results
from mqclient.pulsar.producer import ProducerEngine
from mqclient.pulsar.schema import BYTES, STRING
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def many(world: PulsarWorld, producer: ProducerEngine, items: list[Any]) -> list[Any]:
    return results(world.do(producer.client, lambda: producer.send_many(items)))


def stored(world: PulsarWorld, topic: str = "t") -> list[tuple[Any, list[tuple[int, bytes]]]]:
    """Of each entry its key, and of each message its sequence id and body."""
    codec, log = world.impl.pulsar, world.door.topics.make(topic).log
    entries = [codec.Entry.from_stored(log.record(number)) for number in range(log.next)]
    return [
        (entry.partition_key, [(one.sequence_id, one.body) for one in codec.decode_messages(entry)])
        for entry in entries
    ]


def test_an_entry_for_each_key(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching="key")
    items = [prepare(b"%d" % number, key) for number, key in enumerate("abacb")]
    ids = many(world, producer, [*items, b"none"])
    assert stored(world) == [
        ("a", [(0, b"0"), (2, b"2")]),
        ("b", [(1, b"1"), (4, b"4")]),
        ("c", [(3, b"3")]),
        (None, [(5, b"none")]),
    ]
    assert [(at.entry, at.batch_index) for at in ids] == [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (3, 0)]
    assert (producer.published, producer.client.budget.bytes, producer.client.budget.items) == (5, 0, 0)


def test_the_ordering_key_comes_first(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching="key")
    many(world, producer, [prepare(b"x", "a", None, 0, b"o"), prepare(b"y", "b", None, 0, b"o"), prepare(b"z", "a")])
    assert [[body for _, body in entry] for _, entry in stored(world)] == [[b"x", b"y"], [b"z"]]


def test_limits_count_all_keys_together(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching="key", batch_max_messages=4, batch_max_bytes=100)
    many(world, producer, [prepare(b"%d" % number, "ab"[number % 2]) for number in range(8)])
    assert [len(entry) for _, entry in stored(world)] == [2, 2, 2, 2]
    many(world, producer, [prepare(bytes(60), "a"), prepare(bytes(60), "b")])
    assert len(stored(world)) == 6


def test_one_s_own_sequence_ids(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching="key")
    world.do(producer.client, lambda: producer.send(prepare(b"a", "k", sequence_id=10)))
    many(world, producer, [prepare(b"b", "k", sequence_id=20), prepare(b"c", "k", sequence_id=15), prepare(b"d", "k")])
    assert [entry for _, entry in stored(world)] == [[(10, b"a")], [(20, b"b")], [(15, b"c"), (16, b"d")]]


def test_what_a_batch_cannot_say_goes_alone_in_its_turn(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching="key")
    items: list[Any] = [prepare(b"a", "k"), prepare(b"b", "k", deliver_after=1), prepare(b"c", "k")]
    futures = []
    with producer.client.driver.enter():
        futures = [producer.submit(item) for item in items]
        assert producer.diagnose()["gathering"] == 1
    world.world.run()
    assert [entry for _, entry in stored(world)] == [[(0, b"a")], [(1, b"b")], [(2, b"c")]]
    assert all(future is not None and future.done() for future in futures)


def test_a_key_has_a_lane_for_each_schema(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching="key", schema=STRING)
    sender = world.sender(producer)
    numbers = world.sender(producer).with_schema(STRING)
    assert numbers._prepare("x") == prepare(b"x")
    later = sender.with_schema(BYTES)
    later.send(b"first", key="k")
    with producer.client.driver.enter():
        for face, body in ((sender, "a"), (later, b"b"), (sender, "c"), (later, b"d")):
            producer.submit(face._prepare(body, "k"))
    world.world.run()
    assert [entry for _, entry in stored(world)][1:] == [[(1, b"a"), (3, b"c")], [(2, b"b"), (4, b"d")]]


def test_it_waits_for_room(world: PulsarWorld) -> None:
    world.world.latency = 0.001
    producer = world.producer(world.client(memory_limit=200), "t", batching="key", batch_max_bytes=100)
    ids = many(world, producer, [prepare(b"%03d" % number + bytes(40), "abc"[number % 3]) for number in range(30)])
    assert len(set(ids)) == 30
    assert (producer.client.budget.bytes, producer.client.budget.items) == (0, 0)


def test_a_lost_receipt_sends_all_again(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching="key")
    world.control.drop("SEND")
    ids = many(world, producer, [prepare(b"%d" % number, "ab"[number % 2]) for number in range(4)])
    assert len(set(ids)) == 4
    assert producer.diagnose()["resent"] == 2


def test_no_rows(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching="key")
    slot = world.ask(producer.client, lambda: producer.send_rows({}, 1))
    assert isinstance(slot.error, ConfigError)
    with pytest.raises(ConfigError):
        producer._gathering.add_rows({}, 0, 1, False)


def test_its_end(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching="key", send_timeout=1.0)
    world.control.drop("SEND", times=100)
    slot = world.ask(producer.client, lambda: producer.send_many([prepare(b"x", "a"), prepare(b"y", "b")]))
    world.world.advance(3)
    assert {type(one) for one in results(slot.result())} == {DeadlineError}


@pytest.mark.parametrize("before", [0, 1])
def test_a_message_that_cannot_be_written_leaves_nothing_behind(world: PulsarWorld, before: int) -> None:
    producer = world.producer(world.client(), "t", batching="key")
    client, wrong = producer.client, (b"wrong", "new", {"n": 1}, 0, None, -1, False)
    with client.driver.enter():
        futures = [producer.submit(prepare(b"%d" % number, "old")) for number in range(before)]
        with pytest.raises(TypeError, match="str wanted"):
            producer.submit(wrong)
        futures.append(producer.submit(prepare(b"right", "old")))
    world.world.run()
    assert all(future.done() for future in futures if future is not None)
    assert [body for _, entry in stored(world) for _, body in entry][-1] == b"right"
    assert (client.budget.bytes, client.budget.items) == (0, 0)


def test_each_message_reserves_its_own_room_so_none_joins(world: PulsarWorld) -> None:
    world.world.latency = 1.0
    producer = world.producer(world.client(), "t", batching="key")
    with producer.client.driver.enter():
        producer.submit(prepare(b"0", "a"))
        producer.submit(prepare(b"1", "a"))
    assert producer.board(prepare(b"2", "a")) is None


def test_rows_are_not_sorted_by_key(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching="key")
    with producer.client.driver.enter():
        slot = producer.send_rows({}, 1)
    assert isinstance(slot.error, ConfigError)

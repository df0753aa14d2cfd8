"""The producer of a partitioned topic in virtual time: who gets what, the order of outcomes, growth, the end."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from mqclient.errors import ClosedError, LinkError, MQError
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.outgoing import results
from mqclient.pulsar.partitioned import PartitionedProducer
from mqclient.pulsar.routing import key_hash
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def parted(world: PulsarWorld, count: int, topic: str = "t") -> None:
    world.door.topics.partition(TopicName.parse(topic), count)


def producer(world: PulsarWorld, topic: str = "t", client: Any = None, **options: Any) -> PartitionedProducer:
    made: Any = world.producer(client or world.client(), topic, **options)
    assert isinstance(made, PartitionedProducer)
    return made


def send(world: PulsarWorld, engine: PartitionedProducer, *bodies: Any, **named: Any) -> list[Any]:
    sender: Any = world.sender(engine)  # type: ignore[arg-type]
    return [sender.send(body, **named) for body in bodies]


def stored(world: PulsarWorld, partition: int, topic: str = "t") -> list[list[bytes]]:
    codec = world.impl.pulsar
    log = world.door.topics.make(str(TopicName.parse(topic).partitioned(partition))).log
    entries = [codec.Entry.from_stored(log.record(number)) for number in range(log.next)]
    return [[message.body for message in codec.decode_messages(entry)] for entry in entries]


def test_in_turn_where_nothing_gathers(world: PulsarWorld) -> None:
    parted(world, 3)
    ids = send(world, producer(world), *[b"%d" % number for number in range(6)])
    assert sorted(at.partition for at in ids) == [0, 0, 1, 1, 2, 2]
    assert ids[0].partition == ids[3].partition != ids[1].partition


def test_a_batch_stays_together(world: PulsarWorld) -> None:
    parted(world, 4)
    engine = producer(world)
    with engine.client.driver.enter():
        futures: list[Any] = [engine.submit(engine.prepare(b"%d" % number)) for number in range(10)]
    world.world.run()
    assert len({future.result().partition for future in futures}) == 1


def test_unbatched_ones_take_turns(world: PulsarWorld) -> None:
    parted(world, 2)
    engine = producer(world, batching=False)
    found = results(world.do(engine.client, lambda: engine.send_many([b"x"] * 4)))
    assert sorted(at.partition for at in found) == [0, 0, 1, 1]


@pytest.mark.parametrize("hashing", ["java", "murmur3", "boost"])
def test_a_key_has_its_partition(world: PulsarWorld, hashing: str) -> None:
    parted(world, 5)
    engine = producer(world, hashing=hashing, routing="single")
    keys = [f"k{number % 7}" for number in range(50)]
    ids = results(world.do(engine.client, lambda: engine.send_many([engine.prepare(b"x", key) for key in keys])))
    places = {(key, at.partition) for key, at in zip(keys, ids, strict=True)}
    assert places == {(key, key_hash(engine.client.impl.digest, hashing)(key) % 5) for key in keys}
    assert {(key, at.partition) for key in keys[:7] for at in send(world, engine, b"y", key=key)} == places


def test_always_the_same_one(world: PulsarWorld) -> None:
    parted(world, 8)
    assert len({at.partition for at in send(world, producer(world, routing="single"), *[b"x"] * 6)}) == 1


def test_the_user_s_function_decides(world: PulsarWorld) -> None:
    parted(world, 3)
    engine = producer(world, routing=lambda key, properties, count: int(properties["shop"]) % count)
    assert send(world, engine, b"a", key="k", properties={"shop": "4"})[0].partition == 1
    sender: Any = world.sender(engine)  # type: ignore[arg-type]
    many = sender.send_many([{"body": b"x", "properties": {"shop": str(number)}} for number in range(6)])
    assert [at.partition for at in many] == [0, 1, 2, 0, 1, 2]
    assert sender.submit(b"x", properties={"shop": "2"}).result().partition == 2


def test_many_fill_batches_and_keep_their_order(world: PulsarWorld) -> None:
    parted(world, 3)
    engine = producer(world, batch_max_messages=10)
    ids = results(world.do(engine.client, lambda: engine.send_many([b"%d" % number for number in range(40)])))
    entries = [entry for partition in range(3) for entry in stored(world, partition)]
    assert sorted(map(len, entries)) == [10, 10, 10, 10]
    assert sorted(map(int, chain.from_iterable(entries))) == list(range(40))
    for number, at in enumerate(ids):
        assert stored(world, at.partition)[at.entry][at.batch_index] == b"%d" % number


def test_mixed_messages_find_their_places(world: PulsarWorld) -> None:
    parted(world, 3)
    engine = producer(world)
    mixed: list[Any] = [b"plain", engine.prepare(b"keyed", "k"), engine.prepare(b"late", "k", deliver_after=1)]
    found = results(world.do(engine.client, lambda: engine.send_many(mixed)))
    assert [stored(world, at.partition)[at.entry][max(at.batch_index, 0)] for at in found] == [
        b"plain", b"keyed", b"late"
    ]  # fmt: skip
    assert results(world.do(engine.client, lambda: engine.send_many([]))) == []


def test_the_window_is_one_for_all(world: PulsarWorld) -> None:
    world.world.latency = 0.001
    parted(world, 4)
    engine = producer(world, max_pending=5, batching=False)
    slots = []
    for number in range(30):
        slots.append(world.ask(engine.client, lambda number=number: engine.send(engine.prepare(b"%d" % number))))  # type: ignore[misc]
        assert engine.window.items <= 5
    for slot in slots:
        world.world.result(slot)
    assert (engine.window.items, engine.window.waiting) == (0, 0)
    assert sum(len(stored(world, partition)) for partition in range(4)) == 30


def test_submit_waits_for_the_window(world: PulsarWorld) -> None:
    world.world.latency = 0.001
    parted(world, 2)
    sender: Any = world.sender(producer(world, max_pending=3))  # type: ignore[arg-type]
    assert all(future.exception(5) is None for future in [sender.submit(b"x") for _ in range(20)])


def test_it_grows_with_its_topic(world: PulsarWorld) -> None:
    parted(world, 1)
    engine = producer(world, partition_refresh=10.0)
    parted(world, 3)
    world.world.advance(9)
    assert len(engine.children) == 1
    world.control.answer("PRODUCER", ServerError.NotAllowedError, "not yet")
    world.world.advance(2)
    assert len(engine.children) == 1
    world.world.advance(10)
    assert len(engine.children) == 3
    assert {at.partition for at in send(world, engine, *[b"x"] * 3)} == {0, 1, 2}
    world.control.answer("PARTITIONED_METADATA", ServerError.NotAllowedError, "no")
    world.world.advance(25)
    assert len(engine.children) == 3


def test_closed_while_it_grows(world: PulsarWorld) -> None:
    parted(world, 1)
    engine = producer(world, partition_refresh=10.0)
    parted(world, 2)
    world.control.delay("PRODUCER", 2.0)
    world.world.advance(11)
    world.steps(engine.client, engine.close_steps)
    world.world.advance(5)
    assert len(engine.children) == 1
    assert not world.door.topics.make("t-partition-1").producers


def test_one_that_cannot_be_opened_ends_it(world: PulsarWorld) -> None:
    parted(world, 3)
    world.control.answer("PRODUCER", ServerError.NotAllowedError, "no", skip=1)
    client = world.client()
    with pytest.raises(BrokerError, match="no"):
        world.producer(client, "t")
    assert not client._members


def test_what_was_never_taken_is_told_in_its_place(world: PulsarWorld) -> None:
    parted(world, 2)
    engine = producer(world, batch_max_messages=2)
    with engine.client.driver.enter():
        engine.children[0].abandon(LinkError("gone"))
    found = results(world.do(engine.client, lambda: engine.send_many([b"x"] * 8)))
    assert {isinstance(one, MQError) for one in found} == {True, False}
    assert len(found) == 8
    with engine.client.driver.enter():
        engine.children[1].abandon(LinkError("gone"))
    slot = world.ask(engine.client, lambda: engine.send_many([b"x"] * 8))
    assert isinstance(slot.error, LinkError)


def test_rows_of_a_call_stay_together(world: PulsarWorld) -> None:
    pa = pytest.importorskip("pyarrow")
    parted(world, 3)
    sender: Any = world.sender(producer(world))  # type: ignore[arg-type]
    batch = pa.RecordBatch.from_pydict({"body": [b"a", b"b"]})
    ids = [sender.send_arrow(batch)[0].outcome for _ in range(3)]
    assert {at.partition for at in ids} == {0, 1, 2}


def test_names_and_numbers(world: PulsarWorld) -> None:
    parted(world, 2)
    engine = producer(world, name="mine")
    send(world, engine, b"a", b"b", b"c")
    shown = engine.diagnose()
    assert (shown["name"], shown["state"], shown["messages"], shown["last_sequence_id"]) == ("mine", "attached", 3, 1)
    assert len(shown["partitions"]) == 2
    world.do(engine.client, engine.flush)
    world.steps(engine.client, engine.close_steps)
    world.steps(engine.client, engine.close_steps)
    assert engine.diagnose()["state"] == "closed"
    with pytest.raises(ClosedError):
        send(world, engine, b"d")


def test_abandoned_with_all_its_parts(world: PulsarWorld) -> None:
    parted(world, 2)
    engine = producer(world)
    with engine.client.driver.enter():
        engine.abandon(ClosedError("forked"))
    with pytest.raises(ClosedError, match="forked"):
        send(world, engine, b"x")

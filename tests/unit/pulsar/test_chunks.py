"""Messages in parts: whole or not at all, with every permit back and every part acknowledged."""

from __future__ import annotations

import random
import zlib
from typing import Any

import pytest

from mqclient.pulsar import chunks
from mqclient.pulsar.consumer import ConsumerEngine
from tests.support.part_sender import PartSender
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def take(world: PulsarWorld, consumer: ConsumerEngine) -> list[Any]:
    world.world.run()
    return world.face(consumer)._take_many(1000)


def unacknowledged(world: PulsarWorld, consumer: ConsumerEngine) -> int:
    world.world.advance(1)
    return world.at_broker(consumer).subscription.backlog


def test_whole(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", receiver_queue=2)
    sender = PartSender(world)
    for number in range(20):
        sender.whole(f"u{number}", [b"a%d" % number, b"b", b"c"])
        (message,) = take(world, consumer)
        assert message.body == b"a%dbc" % number
        assert message.message_id.entry == 3 * number + 2
        assert message.message_id.first_chunk.entry == 3 * number
        world.face(consumer).ack(message)
    assert unacknowledged(world, consumer) == 0
    world.settled(consumer)
    counts = consumer.permits.diagnose()
    assert (counts["chunk"], counts["discarded"], counts["arrived"]) == (40, 0, 60)


def test_compressed_as_a_whole_and_larger_than_a_message(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s")
    body = random.Random(1).randbytes(6 << 20)
    packed = zlib.compress(body, 0)
    half = len(packed) // 2
    PartSender(world).whole("u", [packed[:half], packed[half:]], compression=2, uncompressed_size=len(body))
    assert [message.body == body for message in take(world, consumer)] == [True]
    world.settled(consumer)


def test_interleaved_and_twice(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s")
    sender = PartSender(world)
    sender.part("a", 0, 3, b"1")
    sender.part("b", 0, 2, b"x")
    sender.part("a", 1, 3, b"2")
    sender.part("a", 1, 3, b"2")  # once more: of no use, and acknowledged
    sender.part("b", 1, 2, b"y")
    sender.part("a", 2, 3, b"3")
    messages = take(world, consumer)
    assert [message.body for message in messages] == [b"xy", b"123"]
    world.face(consumer).ack(messages)
    assert unacknowledged(world, consumer) == 0
    world.settled(consumer)


def test_begun_anew_by_the_producer(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared")
    sender = PartSender(world)
    sender.part("a", 0, 2, b"old")
    sender.whole("a", [b"n", b"ew"])
    (message,) = take(world, consumer)
    assert message.body == b"new"
    world.face(consumer).ack(message)
    assert unacknowledged(world, consumer) == 0


def test_a_part_is_missing(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", receiver_queue=1, nack_delay=5)
    sender = PartSender(world)
    sender.part("a", 0, 3)
    sender.part("a", 2, 3)  # a last one that completes nothing
    sender.part("b", 1, 3)
    sender.part("c", 1, 2, age=61_000)  # nobody sends its beginning any more
    assert take(world, consumer) == []
    world.settled(consumer)
    counts = consumer.permits.diagnose()
    assert (counts["chunk"], counts["discarded"]) == (2, 2)
    assert unacknowledged(world, consumer) == 3
    sender.whole("d", [b"1", b"2"])
    assert [message.body for message in take(world, consumer)] == [b"12"]


def test_what_is_never_complete_is_acknowledged(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", receiver_queue=2, chunk_expiry=10)
    sender = PartSender(world)
    for number in range(5):
        sender.part(f"u{number}", 0, 2)
        world.world.advance(1)
    world.world.advance(5.5)
    assert len(consumer.chunks) == 4
    world.world.advance(10)
    assert len(consumer.chunks) == 0
    assert unacknowledged(world, consumer) == 0
    world.settled(consumer)


def test_too_many_at_a_time(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", chunked_pending=2, nack_delay=1)
    sender = PartSender(world)
    for uuid in "abc":
        sender.part(uuid, 0, 2, b"0")
    for uuid in "bc":
        sender.part(uuid, 1, 2, b"1")
    messages = take(world, consumer)
    assert [message.body for message in messages] == [b"01", b"01"]
    world.face(consumer).ack(messages)
    world.world.advance(2)  # the one that made room came again
    sender.part("a", 1, 2, b"1")
    assert [message.body for message in take(world, consumer)] == [b"01"]
    monkeypatch.setattr(chunks, "MAX_BYTES", 10)
    sender.part("large", 0, 2, b"x" * 11)
    world.world.run()
    assert len(consumer.chunks) == 0


def test_what_its_producer_left_makes_room_first(world: PulsarWorld) -> None:
    """After a broker's crash first parts are there again whose last parts were duplicates: nothing is lost for them."""
    client = world.client()
    consumer = world.consumer(client, "t", "s", chunked_pending=2, chunk_expiry=10)
    sender, other = PartSender(world), PartSender(world, name="other")
    other.part("living", 0, 2, b"0")
    for uuid in "abcd":
        sender.part(uuid, 0, 2)
    sender.whole("e", [b"4", b"5"])
    other.part("living", 1, 2, b"1")
    messages = take(world, consumer)
    assert [message.body for message in messages] == [b"45", b"01"]
    world.face(consumer).ack(messages)
    world.world.advance(11)
    assert len(consumer.chunks) == 0
    assert unacknowledged(world, consumer) == 0
    world.settled(consumer)


@pytest.mark.parametrize(("expiry", "left"), [(10, 2), (0, 4)])
def test_places_that_are_too_many_to_be_kept(
    world: PulsarWorld, monkeypatch: pytest.MonkeyPatch, expiry: int, left: int
) -> None:
    """They stay unacknowledged, and come again with the next connection."""
    monkeypatch.setattr(chunks, "MAX_EMPTIED", 1)
    client = world.client()
    consumer = world.consumer(client, "t", "s", chunked_pending=1, chunk_expiry=expiry)
    sender = PartSender(world)
    for uuid in "abcd":
        sender.part(uuid, 0, 2)
    world.world.advance(11)
    assert len(consumer.chunks) == (0 if expiry else 1)
    assert unacknowledged(world, consumer) == left
    world.settled(consumer)


def test_begun_anew_after_it_made_room(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", chunked_pending=1)
    sender = PartSender(world)
    sender.part("a", 0, 2, b"0")
    sender.part("b", 0, 2)
    sender.whole("a", [b"1", b"2"])
    sender.whole("b", [b"3", b"4"])
    messages = take(world, consumer)
    assert [message.body for message in messages] == [b"12", b"34"]
    world.face(consumer).ack(messages)
    assert unacknowledged(world, consumer) == 0
    world.settled(consumer)


def test_refused_and_in_time(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", nack_delay=1, ack_timeout=10)
    sender = PartSender(world)
    sender.whole("a", [b"1", b"2", b"3"])
    (message,) = take(world, consumer)
    world.face(consumer).nack(message)
    world.world.advance(1.5)
    (message,) = take(world, consumer)
    assert (message.body, message.redeliveries) == (b"123", 1)
    world.world.advance(11)
    (message,) = take(world, consumer)
    assert (message.body, message.redeliveries) == (b"123", 2)
    world.face(consumer).ack_confirmed(message)
    assert unacknowledged(world, consumer) == 0
    world.settled(consumer)


def test_cumulative_and_again(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s")
    sender = PartSender(world)
    sender.whole("a", [b"1", b"2"])
    sender.whole("b", [b"3", b"4"])
    messages = take(world, consumer)
    world.face(consumer).ack_cumulative(messages[0])
    world.world.advance(1)
    sender.part("c", 0, 2, b"5")
    world.cut()
    world.world.advance(5)
    sender = PartSender(world)
    sender.part("c", 1, 2, b"6")
    assert [message.body for message in take(world, consumer)] == [b"34", b"56"]
    world.settled(consumer)


def test_positions(world: PulsarWorld) -> None:
    client = world.client()
    PartSender(world).whole("a", [b"1", b"2"])
    PartSender(world, "t").whole("b", [b"3", b"4"])
    reader = world.reader(client, "t", "earliest")
    ids = [message.message_id for message in take(world, reader)]
    for inclusive, expected in ((True, [b"12", b"34"]), (False, [b"34"])):
        at = world.reader(client, "t", ids[0], start_inclusive=inclusive)
        assert [message.body for message in take(world, at)] == expected
        consumer = world.consumer(client, "t", f"s{inclusive}", start_inclusive=inclusive)
        world.face(consumer).seek(ids[0])
        assert [message.body for message in take(world, consumer)] == expected
        world.settled(consumer)


def test_what_cannot_be_unpacked_is_refused_whole(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", receiver_queue=2)
    sender = PartSender(world)
    for number in range(5):
        sender.whole(f"u{number}", [b"no", b"zlib"], compression=2, uncompressed_size=10)
        assert take(world, consumer) == []
    assert unacknowledged(world, consumer) == 0
    world.settled(consumer)


def test_redelivered_at_once(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared")
    sender = PartSender(world)
    sender.whole("a", [b"1", b"2"])
    sender.part("b", 0, 2)
    assert len(take(world, consumer)) == 1
    world.face(consumer).redeliver()
    assert [message.body for message in take(world, consumer)] == [b"12"]
    sender.part("b", 1, 2)
    assert [message.body for message in take(world, consumer)] == [b"xx"]

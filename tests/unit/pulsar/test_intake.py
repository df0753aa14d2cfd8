"""Entries on their way to the user: charged, opened, left out, and told when taken."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError, DeadlineError
from mqclient.pulsar import unpacking
from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def test_the_first_flow_is_the_queue_and_refills_are_half(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s", receiver_queue=100)
    there = world.at_broker(consumer)
    for _ in range(20):
        world.send(producer, *[b"x"] * 35)
        world.take(consumer)
    world.settled(consumer)
    assert there.flows[0] == 100
    assert min(there.flows[1:]) >= 50
    assert sum(there.flows) == 100 + 700 - consumer.diagnose()["untold"] - consumer.permits.diagnose()["released"]


def test_a_queue_of_one(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", receiver_queue=1)
    world.send(producer, *[b"%d" % number for number in range(20)])
    face = world.face(consumer)
    assert [face.receive(1).body for _ in range(20)] == [b"%d" % number for number in range(20)]
    world.settled(consumer)
    assert set(world.at_broker(consumer).flows) == {1}


def test_zero_queue_asks_only_while_somebody_waits(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", receiver_queue=0)
    there = world.at_broker(consumer)
    world.send(producer, b"1", b"2", b"3")
    world.world.advance(1)
    assert there.flows == []
    face = world.face(consumer)
    assert [face.receive(1).body, face.receive(1).body] == [b"1", b"2"]
    world.world.advance(1)
    assert there.flows == [1, 1]
    assert len(consumer.mailbox) == 0
    assert face.receive(1).body == b"3"
    for _ in range(5):  # the grant of a receive that timed out serves the next one
        with pytest.raises(DeadlineError):
            face.receive(0.1)
    assert there.flows == [1, 1, 1, 1]
    world.send(producer, b"4")
    assert face.receive(1).body == b"4"
    assert there.flows == [1, 1, 1, 1]


def test_zero_queue_takes_a_batch_whole(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s", receiver_queue=0)
    world.send(producer, b"1", b"2", b"3")
    face = world.face(consumer)
    assert [face.receive(1).body for _ in range(3)] == [b"1", b"2", b"3"]
    world.send(producer, b"4")
    assert face.receive(1).body == b"4"


def test_corrupt_entries_go_back_with_all_their_permits(
    world: PulsarWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s", receiver_queue=10)
    log = world.door.topics.make("t").log
    keep = log.append
    monkeypatch.setattr(type(log), "append", lambda _, record, *rest: keep(record[:-1] + b"!", *rest))
    for _ in range(20):
        world.send(producer, *[b"x"] * 5)
    monkeypatch.undo()
    world.send(producer, b"good")
    assert world.take(consumer) == [b"good"]
    world.settled(consumer)
    assert consumer.permits.diagnose()["discarded"] == 100
    assert "cannot be read" in caplog.text
    assert world.at_broker(consumer).subscription.backlog == 1  # told so, the broker counts them as acknowledged


def test_messages_before_the_start_return_their_permits(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    ids = world.send(producer, *[b"%d" % number for number in range(5)])
    consumer = world.reader(client, "t", ids[2], receiver_queue=1)
    face = world.face(consumer)
    assert [face.receive(1).body, face.receive(1).body] == [b"3", b"4"]
    world.settled(consumer)


def test_a_reader_resumes_after_the_last_message_taken(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    world.send(producer, *[b"%d" % number for number in range(10)])
    consumer = world.reader(client, "t", "earliest")
    face = world.face(consumer)
    assert [face.receive(1).body for _ in range(4)] == [b"0", b"1", b"2", b"3"]
    world.cut()
    world.world.advance(5)
    assert world.take(consumer) == [b"4", b"5", b"6", b"7", b"8", b"9"]
    world.settled(consumer)


def test_a_reader_that_took_nothing_resumes_at_its_start(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.reader(client, "t", "latest")
    world.cut()
    world.world.advance(5)
    world.send(producer, b"new")
    assert world.take(consumer) == [b"new"]


def test_redeliver_drops_what_waits_and_loses_no_permit(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    for kind in ("exclusive", "shared"):
        consumer = world.consumer(client, "t", kind, type=kind, receiver_queue=20)
        face = world.face(consumer)
        for _ in range(10):
            world.send(producer, *[b"x"] * 15)
            face.receive(1)
            face.redeliver()
            world.world.advance(1)
            world.settled(consumer)
            messages = face.receive_many(100, timeout=1)
            assert len(messages) == 15
            face.ack(messages)
            world.world.advance(1)


def test_compressed_entries_are_opened_where_they_are_taken(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", receiver_queue=10)
    producer = world.producer(client, "t")
    world.append_compressed([b"1", b"2", b"3"])
    world.send(producer, b"4")
    world.append_compressed([b"5"])
    world.world.run()
    assert len(consumer.mailbox) == 5
    assert world.take(consumer) == [b"1", b"2", b"3", b"4", b"5"]
    world.settled(consumer)


def test_a_compressed_entry_that_cannot_be_opened_returns_its_permits(
    world: PulsarWorld, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = world.consumer(world.client(), "t", "s", receiver_queue=10)
    for _ in range(10):
        world.append_compressed([b"x"] * 4, damage=True)
        assert world.take(consumer) == []
    world.append_compressed([b"good"])
    assert world.take(consumer) == [b"good"]
    world.settled(consumer)
    assert consumer.permits.diagnose()["discarded"] == 40
    assert "cannot be read" in caplog.text
    world.world.advance(1)
    assert world.at_broker(consumer).subscription.backlog == 1


def test_a_missing_library_loses_nothing(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    face = world.face(world.consumer(world.client(), "t", "s"))
    world.append_compressed([b"1", b"2"])
    world.world.run()

    def missing(name: str, data: Any, limit: int) -> bytes:
        raise ConfigError(f"{name}: pip install it")

    with monkeypatch.context() as patch:
        patch.setattr(unpacking, "decompress", missing)
        for _ in range(2):
            with pytest.raises(ConfigError, match="pip install"):
                face.receive(1)
    assert [face.receive(1).body, face.receive(1).body] == [b"1", b"2"]


def test_a_compression_that_nobody_knows_is_told_to_the_broker(world: PulsarWorld) -> None:
    consumer = world.consumer(world.client(), "t", "s")
    world.append_compressed([b"1"], kind=9)
    assert world.take(consumer) == []
    world.settled(consumer)


def test_a_batch_cut_at_the_start(world: PulsarWorld) -> None:
    client = world.client()
    ids = world.send(world.producer(client, "t"), b"0", b"1", b"2", b"3")
    whole = type(ids[0])(ids[0].ledger, ids[0].entry)
    cases = [(ids[1], False, [b"2", b"3"]), (ids[1], True, [b"1", b"2", b"3"]), (whole, False, []), (whole, True, 4)]
    for start, inclusive, expected in cases:
        reader = world.reader(client, "t", start, start_inclusive=inclusive)
        taken = world.take(reader)
        assert (len(taken) if expected == 4 else taken) == expected
        assert (reader.intake.start.at, reader.intake.last_taken is None) == (start, not taken)
        world.settled(reader)


def test_a_run_of_plain_and_other_entries_keeps_their_order(world: PulsarWorld) -> None:
    raw = RawClient(world)
    made = world.consumer(world.client(), "t", "s", receiver_queue=1000)
    expected = []
    for number in range(4):
        raw.produce([b"alone %d" % number], [b"a", b"batch"])
        world.append_compressed([b"packed", b"too"])
        expected += [b"alone %d" % number, b"a", b"batch", b"packed", b"too"]
    made.pause()
    assert world.take(made) == expected
    counts = made.permits.diagnose()
    assert (counts["arrived"], counts["here"]) == (20, 20)
    made.resume()
    world.settled(made)


def test_a_run_comes_again_without_what_was_acknowledged(world: PulsarWorld) -> None:
    client = world.client()
    made = world.consumer(client, "t", "s", type="shared", ack_grouping=3600, batch_index_ack=False)
    world.send(world.producer(client, "t", batch_max_messages=4), *(b"%d" % number for number in range(12)))
    face = world.face(made)
    world.world.run()
    taken = face._take_many(12)
    face.ack(taken[:6])  # of the second batch two: the broker is told when all of it is
    face.redeliver()
    assert world.take(made) == [b"%d" % number for number in range(6, 12)]
    world.settled(made)


def test_a_run_of_an_epoch_that_is_over_is_dropped(world: PulsarWorld) -> None:
    made = world.consumer(world.client(), "t", "s")
    RawClient(world).produce([b"x"], [b"y"])
    codec = made.client.impl.pulsar
    sent = codec.encode_message(0, 1, 1, codec.encode_metadata("p", 0, 0))
    [event] = codec.FrameReader().feed(sent)
    with made.client.driver.enter():
        made.permits.lost()
        made.on_entries([event[1]])
    assert len(made.mailbox) == 2
    assert made.permits.diagnose()["stale_arrived"] == 1

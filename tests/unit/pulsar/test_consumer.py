"""A consumer against the embedded broker in virtual time: what is skipped, what comes back, what is told."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from mqclient.broker.pulsar import session as session_module
from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError
from mqclient.pulsar import opening, unpacking
from mqclient.pulsar.codes import BrokerError
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.outgoing import prepare
from mqclient.pulsar.producer import ProducerEngine
from tests.support.pulsar_world import PulsarWorld


def send(world: PulsarWorld, producer: ProducerEngine, *bodies: bytes) -> list[Any]:
    return world.sender(producer).send_many(bodies)


def take(world: PulsarWorld, consumer: ConsumerEngine) -> list[bytes]:
    """What is there now."""
    world.world.run()
    return [message.body for message in world.face(consumer)._take_many(100_000)]


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def test_the_first_flow_is_the_queue_and_refills_are_half(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s", receiver_queue=100)
    there = world.at_broker(consumer)
    for _ in range(20):
        send(world, producer, *[b"x"] * 35)
        take(world, consumer)
    world.settled(consumer)
    assert there.flows[0] == 100
    assert min(there.flows[1:]) >= 50
    assert sum(there.flows) == 100 + 700 - consumer.diagnose()["untold"] - consumer.permits.diagnose()["released"]


def test_a_queue_of_one(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", receiver_queue=1)
    send(world, producer, *[b"%d" % number for number in range(20)])
    face = world.face(consumer)
    assert [face.receive(1).body for _ in range(20)] == [b"%d" % number for number in range(20)]
    world.settled(consumer)
    assert set(world.at_broker(consumer).flows) == {1}


def test_zero_queue_asks_only_while_somebody_waits(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", receiver_queue=0)
    there = world.at_broker(consumer)
    send(world, producer, b"1", b"2", b"3")
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
    send(world, producer, b"4")
    assert face.receive(1).body == b"4"
    assert there.flows == [1, 1, 1, 1]


def test_zero_queue_takes_a_batch_whole(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s", receiver_queue=0)
    send(world, producer, b"1", b"2", b"3")
    face = world.face(consumer)
    assert [face.receive(1).body for _ in range(3)] == [b"1", b"2", b"3"]
    send(world, producer, b"4")
    assert face.receive(1).body == b"4"


def test_zero_queue_waits_over_a_reconnect(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s", receiver_queue=0)

    def send_one() -> None:
        world.ask(client, lambda: producer.send(prepare(b"x")))

    world.world.at(world.world.mono + 1, world.cut)
    world.world.at(world.world.mono + 5, send_one)
    assert world.face(consumer).receive(20).body == b"x"


def test_a_lost_connection_starts_a_new_account(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s", type="shared", receiver_queue=10)
    send(world, producer, *[b"%d" % number for number in range(8)])
    face = world.face(consumer)
    taken = [face.receive(1) for _ in range(3)]
    face.ack(taken[0])
    world.world.advance(1)
    world.cut()
    world.world.advance(5)
    assert consumer.diagnose()["epoch"] == 2
    assert take(world, consumer) == [b"%d" % number for number in range(1, 8)]
    world.settled(consumer)
    assert world.at_broker(consumer).flows[0] == 10


def test_acknowledged_while_away_is_told_when_back(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s", type="shared")
    send(world, producer, b"1", b"2")
    face = world.face(consumer)
    messages = [face.receive(1), face.receive(1)]
    world.cut()
    world.world.run()
    for message in messages:
        face.ack(message)
    world.world.advance(5)
    assert take(world, consumer) == []
    assert world.at_broker(consumer).subscription.backlog == 0


def test_an_unloaded_topic_is_subscribed_anew(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s")
    send(world, producer, b"1")
    world.world.run()
    world.door.unload("t")
    world.world.advance(5)
    assert take(world, consumer) == [b"1"]
    world.settled(consumer)
    assert send(world, producer, b"2")[0].entry == 1


def test_a_slow_subscribe_overtaken_leaves_one_consumer_and_one_grant(world: PulsarWorld) -> None:
    client = world.client(operation_timeout=5)
    world.control.delay("SUBSCRIBE", 7)
    with pytest.raises(DeadlineError):
        world.consumer(client, "t", "s")
    world.world.advance(10)
    consumer = world.consumer(client, "t", "s")
    assert len(world.at_broker(consumer).subscription.consumers) == 1
    assert world.at_broker(consumer).flows == [1000]


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
        send(world, producer, *[b"x"] * 5)
    monkeypatch.undo()
    send(world, producer, b"good")
    assert take(world, consumer) == [b"good"]
    world.settled(consumer)
    assert consumer.permits.diagnose()["discarded"] == 100
    assert "cannot be read" in caplog.text
    assert world.at_broker(consumer).subscription.backlog == 1  # told so, the broker counts them as acknowledged


def test_messages_before_the_start_return_their_permits(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    ids = send(world, producer, *[b"%d" % number for number in range(5)])
    consumer = world.reader(client, "t", ids[2], receiver_queue=1)
    face = world.face(consumer)
    assert [face.receive(1).body, face.receive(1).body] == [b"3", b"4"]
    world.settled(consumer)


def test_a_reader_resumes_after_the_last_message_taken(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    send(world, producer, *[b"%d" % number for number in range(10)])
    consumer = world.reader(client, "t", "earliest")
    face = world.face(consumer)
    assert [face.receive(1).body for _ in range(4)] == [b"0", b"1", b"2", b"3"]
    world.cut()
    world.world.advance(5)
    assert take(world, consumer) == [b"4", b"5", b"6", b"7", b"8", b"9"]
    world.settled(consumer)


def test_a_reader_that_took_nothing_resumes_at_its_start(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.reader(client, "t", "latest")
    world.cut()
    world.world.advance(5)
    send(world, producer, b"new")
    assert take(world, consumer) == [b"new"]


def test_redeliver_drops_what_waits_and_loses_no_permit(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    for kind in ("exclusive", "shared"):
        consumer = world.consumer(client, "t", kind, type=kind, receiver_queue=20)
        face = world.face(consumer)
        for _ in range(10):
            send(world, producer, *[b"x"] * 15)
            face.receive(1)
            face.redeliver()
            world.world.advance(1)
            world.settled(consumer)
            messages = face.receive_many(100, timeout=1)
            assert len(messages) == 15
            face.ack(messages)
            world.world.advance(1)


def test_seek_inside_a_batch(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    ids = send(world, producer, *[b"%d" % number for number in range(10)])
    consumer = world.consumer(client, "t", "s", start="earliest")
    face = world.face(consumer)
    face.ack(face.receive_many(100, timeout=1))
    face.seek(ids[6])
    assert take(world, consumer) == [b"7", b"8", b"9"]
    world.settled(consumer)


def test_a_refused_seek_changes_nothing(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    ids = send(world, producer, b"1", b"2")
    consumer = world.consumer(client, "t", "s")
    world.control.answer("SEEK", 0, "no")
    with pytest.raises(BrokerError, match="no"):
        world.face(consumer).seek(ids[0])
    send(world, producer, b"3")
    assert take(world, consumer) == [b"3"]
    world.settled(consumer)


def test_one_seek_at_a_time_and_only_when_connected(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s")
    world.control.delay("SEEK", 1)
    slot = world.ask(client, lambda: opening.seek(consumer, 5))
    with pytest.raises(ConfigError, match="under way"):
        world.do(client, lambda: opening.seek(consumer, 5))
    world.world.result(slot)
    world.cut()
    world.world.run()
    with pytest.raises(LinkError, match="not connected"):
        world.do(client, lambda: opening.seek(consumer, 5))


def test_pausing_holds_over_a_reconnect(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s")
    face = world.face(consumer)
    face.pause()
    world.cut()
    world.world.advance(5)
    send(world, producer, b"1")
    assert take(world, consumer) == []
    assert world.at_broker(consumer).flows == []
    face.resume()
    assert take(world, consumer) == [b"1"]
    world.settled(consumer)


def test_the_account_while_blocked_on_unacknowledged(codec: Any) -> None:
    world = PulsarWorld(codec, maxUnackedMessagesPerConsumer=10)
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", type="shared", receiver_queue=10)
    face = world.face(consumer)
    send(world, producer, *[b"%d" % number for number in range(30)])
    first = face.receive_many(100, timeout=1)
    assert len(first) == 10
    world.world.advance(1)
    there = world.at_broker(consumer)
    assert (there.blocked, there.permits, there.aside) == (True, 0, 10)
    world.settled(consumer)
    face.ack(first)
    world.world.advance(1)
    assert len(take(world, consumer)) == 10
    world.settled(consumer)


def test_closing_tells_what_was_acknowledged(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s")
    send(world, producer, b"1")
    face = world.face(consumer)
    face.ack(face.receive(1))
    face.close()
    face.close()
    assert world.door.topics.make("t").subscriptions["s"].backlog == 0
    with pytest.raises(ClosedError):
        face.receive(1)
    assert list(face) == []


def test_a_waiting_receive_ends_when_the_consumer_is_closed(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s")
    face = world.face(consumer)

    def close() -> None:
        world.ask(client, lambda: opening.close(consumer))

    world.world.at(world.world.mono + 1, close)
    with pytest.raises(ClosedError):
        face.receive(10)


def test_failover_knows_who_is_active(world: PulsarWorld) -> None:
    client = world.client()
    first = world.consumer(client, "fo4", "s", type="failover", name="a")  # the ring's choice for this topic
    second = world.consumer(client, "fo4", "s", type="failover", name="b")
    world.world.run()
    assert (first.active, second.active) == (True, False)
    world.face(first).close()
    world.world.run()
    assert second.active


def compressed(world: PulsarWorld, bodies: list[bytes], damage: bool = False, kind: int = 2) -> None:
    """An entry as a producer with zlib sends it, straight into the topic."""
    codec = world.impl.pulsar
    builder = codec.BatchBuilder()
    for body in bodies:
        builder.add(body)
    payload, count = builder.seal()
    packed = zlib.compress(payload)
    metadata = codec.encode_metadata(
        "zip", 0, 1, compression=kind, uncompressed_size=len(payload) + damage, num_messages=count
    )
    [event] = codec.FrameReader().feed(codec.encode_send(1, 0, metadata, packed, num_messages=count))
    world.door.topics.make("t").append(event[-1])


def test_compressed_entries_are_opened_where_they_are_taken(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", receiver_queue=10)
    producer = world.producer(client, "t")
    compressed(world, [b"1", b"2", b"3"])
    send(world, producer, b"4")
    compressed(world, [b"5"])
    world.world.run()
    assert len(consumer.mailbox) == 5
    assert take(world, consumer) == [b"1", b"2", b"3", b"4", b"5"]
    world.settled(consumer)


def test_a_compressed_entry_that_cannot_be_opened_returns_its_permits(
    world: PulsarWorld, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = world.consumer(world.client(), "t", "s", receiver_queue=10)
    for _ in range(10):
        compressed(world, [b"x"] * 4, damage=True)
        assert take(world, consumer) == []
    compressed(world, [b"good"])
    assert take(world, consumer) == [b"good"]
    world.settled(consumer)
    assert consumer.permits.diagnose()["discarded"] == 40
    assert "cannot be read" in caplog.text
    world.world.advance(1)
    assert world.at_broker(consumer).subscription.backlog == 1


def test_a_missing_library_loses_nothing(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    face = world.face(world.consumer(world.client(), "t", "s"))
    compressed(world, [b"1", b"2"])
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
    compressed(world, [b"1"], kind=9)
    assert take(world, consumer) == []
    world.settled(consumer)


def test_a_seek_among_compressed_entries_skips_with_permits(world: PulsarWorld) -> None:
    client = world.client()
    compressed(world, [b"0", b"1", b"2", b"3"])
    consumer = world.consumer(client, "t", "s", start="earliest", receiver_queue=4)
    face = world.face(consumer)
    messages = face.receive_many(10)
    face.seek(messages[1].message_id)
    assert take(world, consumer) == [b"2", b"3"]
    face.seek(messages[3].message_id)
    assert take(world, consumer) == []
    compressed(world, [b"4"])
    assert take(world, consumer) == [b"4"]
    world.settled(consumer)


def test_acknowledging_by_the_engine(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", ack_grouping=0.1)
    send(world, producer, b"1", b"2", b"3", b"4")
    messages = world.face(consumer).receive_many(10, timeout=1)
    with client.driver.enter():
        consumer.acks_due(consumer.acks.add(messages[0]))
        consumer.ack_cumulative(messages[1])
    world.do(client, lambda: consumer.ack_confirmed([messages[2]]))
    world.world.advance(1)
    assert world.at_broker(consumer).subscription.backlog == 1
    shared = world.consumer(client, "t", "shared", type="shared")
    with pytest.raises(ConfigError, match="message by message"), client.driver.enter():
        shared.ack_cumulative(messages[0])


def test_refusing_by_message_and_by_id(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", type="shared", nack_delay=1.0)
    send(world, producer, b"1", b"2")
    messages = world.face(consumer).receive_many(10, timeout=1)
    with client.driver.enter():
        consumer.nack([messages[0], messages[1].message_id])
    world.world.advance(1.1)
    assert take(world, consumer) == [b"1", b"2"]


def test_what_the_broker_says(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", name="me")
    assert world.steps(client, consumer.last_message_id_steps) is None
    [message_id] = send(world, world.producer(client, "t", batching=False), b"1")
    assert world.steps(client, consumer.last_message_id_steps) == message_id
    assert world.steps(client, consumer.stats_steps)["consumerName"] == "me"


def test_unsubscribing_closes(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s")
    world.steps(client, lambda: consumer.unsubscribe_steps(False))
    assert world.door.topics.make("t").subscriptions == {}
    with pytest.raises(ClosedError, match="unsubscribed"):
        world.face(consumer).receive(1)
    with pytest.raises(ClosedError, match="unsubscribed"):
        world.steps(client, consumer.stats_steps)


def test_the_end_of_a_topic_is_noted(world: PulsarWorld) -> None:
    consumer = world.consumer(world.client(), "t", "s")
    world.at_broker(consumer).session.send(27, "CommandReachedEndOfTopic", consumer_id=consumer.consumer_id)
    world.world.run()
    assert consumer.reached_end


def test_a_close_that_is_not_answered_closes_all_the_same(world: PulsarWorld) -> None:
    client = world.client(operation_timeout=3)
    consumer = world.consumer(client, "t", "s")
    world.control.drop("CLOSE_CONSUMER")
    world.face(consumer).close()
    assert consumer.diagnose()["state"] == "closed"


def test_a_broker_that_does_not_close_at_a_seek(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", receiver_queue=10)
    send(world, producer, *[b"%d" % number for number in range(5)])

    def only_yes(session: Any, request: Any) -> None:
        session.success(request.request_id)

    monkeypatch.setitem(session_module.HANDLERS, 28, only_yes)
    world.face(consumer).seek(5)
    assert take(world, consumer) == []  # what was here is from before
    world.settled(consumer)


def test_what_comes_during_a_seek_is_dropped_with_its_permits(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", receiver_queue=4)
    world.control.delay("SEEK", 1.0)
    slot = world.ask(client, lambda: opening.seek(consumer, 4102444800000))
    send(world, producer, *[b"%d" % number for number in range(20)])
    world.world.run()
    assert len(consumer.mailbox) == 0
    world.world.result(slot)
    send(world, producer, b"new")
    assert take(world, consumer) == [b"new"]
    world.settled(consumer)


def test_a_batch_cut_at_the_start(world: PulsarWorld) -> None:
    client = world.client()
    ids = send(world, world.producer(client, "t"), b"0", b"1", b"2", b"3")
    whole = type(ids[0])(ids[0].ledger, ids[0].entry)
    cases = [(ids[1], False, [b"2", b"3"]), (ids[1], True, [b"1", b"2", b"3"]), (whole, False, []), (whole, True, 4)]
    for start, inclusive, expected in cases:
        reader = world.reader(client, "t", start, start_inclusive=inclusive)
        taken = take(world, reader)
        assert (len(taken) if expected == 4 else taken) == expected
        assert (reader.resume_at[0], reader.last_taken is None) == (start, not taken)
        world.settled(reader)

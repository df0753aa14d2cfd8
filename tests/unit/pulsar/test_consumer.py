"""A consumer against the embedded broker in virtual time: what is skipped, what comes back, what is told."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError
from mqclient.pulsar import opening, subscribing
from mqclient.pulsar.consumer_options import DeadLetter
from mqclient.pulsar.outgoing import prepare
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


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
    world.send(producer, *[b"%d" % number for number in range(8)])
    face = world.face(consumer)
    taken = [face.receive(1) for _ in range(3)]
    face.ack(taken[0])
    world.world.advance(1)
    world.cut()
    world.world.advance(5)
    assert consumer.diagnose()["epoch"] == 2
    assert world.take(consumer) == [b"%d" % number for number in range(1, 8)]
    world.settled(consumer)
    assert world.at_broker(consumer).flows[0] == 10


def test_acknowledged_while_away_is_told_when_back(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s", type="shared")
    world.send(producer, b"1", b"2")
    face = world.face(consumer)
    messages = [face.receive(1), face.receive(1)]
    world.cut()
    world.world.run()
    for message in messages:
        face.ack(message)
    world.world.advance(5)
    assert world.take(consumer) == []
    assert world.at_broker(consumer).subscription.backlog == 0


def test_a_topic_in_another_cluster_is_followed_without_what_was_acknowledged_here(world: PulsarWorld) -> None:
    green = PulsarWorld(world.impl, beside=world.world, at="green")
    client = world.client()
    consumer = world.consumer(client, "t", "s", start="earliest", ack_grouping=50.0)
    world.send(world.producer(client, "t", batching=False), b"1", b"2")
    face = world.face(consumer)
    face.ack(face.receive(1))
    world.control.drop("ACK")  # what is told at the leave does not matter there
    with client.driver.enter():
        assert consumer.connection is not None
        consumer.on_migrated(consumer.connection, client.cluster("pulsar://green:6650"))
        consumer.acks.add(world.impl.pulsar.MessageId(0, 0))
        consumer.connection.consumers.pop(consumer.consumer_id).on_closed_by_broker(consumer.connection, None)
    world.world.advance(2)
    assert consumer.connection is not None
    assert consumer.connection.link.address.host == "green"
    assert (len(consumer.acks.set), green.control.count("ACK")) == (0, 0)
    green.send(green.producer(green.client(), "t"), b"3")
    assert world.take(consumer) == [b"3"]
    green.settled(consumer)


def test_who_is_about_to_subscribe_when_the_topic_goes_does_so_in_the_other_cluster(world: PulsarWorld) -> None:
    green = PulsarWorld(world.impl, beside=world.world, at="green")
    client = world.client(operation_timeout=20)
    world.control.drop("SUBSCRIBE")
    opening_slot = world.ask(client, lambda: subscribing.open_consumer(client, "t", "s", {"start": "earliest"}, None))
    world.world.advance(1)
    assert not opening_slot.done
    [connection] = client._pool.values()
    [consumer] = connection.consumers.values()
    before = world.world.mono
    with client.driver.enter():
        consumer.on_migrated(connection, client.cluster("pulsar://green:6650"))
    opened = world.one(world.world.result(opening_slot))
    assert opened is consumer
    assert world.world.mono - before < 5
    assert opened.connection is not None
    assert opened.connection.link.address.host == "green"
    green.settled(opened)


def test_an_unloaded_topic_is_subscribed_anew(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s")
    world.send(producer, b"1")
    world.world.run()
    world.door.unload("t")
    world.world.advance(5)
    assert world.take(consumer) == [b"1"]
    world.settled(consumer)
    assert world.send(producer, b"2")[0].entry == 1


def test_a_slow_subscribe_overtaken_leaves_one_consumer_and_one_grant(world: PulsarWorld) -> None:
    client = world.client(operation_timeout=5)
    world.control.delay("SUBSCRIBE", 7)
    with pytest.raises(DeadlineError):
        world.consumer(client, "t", "s")
    world.world.advance(10)
    consumer = world.consumer(client, "t", "s")
    assert len(world.at_broker(consumer).subscription.consumers) == 1
    assert world.at_broker(consumer).flows == [1000]


def test_pausing_holds_over_a_reconnect(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s")
    face = world.face(consumer)
    face.pause()
    world.cut()
    world.world.advance(5)
    world.send(producer, b"1")
    assert world.take(consumer) == []
    assert world.at_broker(consumer).flows == []
    face.resume()
    assert world.take(consumer) == [b"1"]
    world.settled(consumer)


def test_the_account_while_blocked_on_unacknowledged(codec: Any) -> None:
    world = PulsarWorld(codec, maxUnackedMessagesPerConsumer=10)
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", type="shared", receiver_queue=10)
    face = world.face(consumer)
    world.send(producer, *[b"%d" % number for number in range(30)])
    first = face.receive_many(100, timeout=1)
    assert len(first) == 10
    world.world.advance(1)
    there = world.at_broker(consumer)
    assert (there.blocked, there.permits, there.aside) == (True, 0, 10)
    world.settled(consumer)
    face.ack(first)
    world.world.advance(1)
    assert len(world.take(consumer)) == 10
    world.settled(consumer)


def test_closing_tells_what_was_acknowledged(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s")
    world.send(producer, b"1")
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


def test_acknowledging_by_the_engine(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", ack_grouping=0.1)
    world.send(producer, b"1", b"2", b"3", b"4")
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
    world.send(producer, b"1", b"2")
    messages = world.face(consumer).receive_many(10, timeout=1)
    with client.driver.enter():
        consumer.nack([messages[0], messages[1].message_id])
    world.world.advance(1.1)
    assert world.take(consumer) == [b"1", b"2"]


def test_what_the_broker_says(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", name="me")
    assert world.steps(client, consumer.last_message_id_steps) is None
    [message_id] = world.send(world.producer(client, "t", batching=False), b"1")
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


def test_what_it_is_and_is_not(world: PulsarWorld) -> None:
    consumer = world.consumer(world.client(), "t", "s")
    assert consumer.topics == ["persistent://public/default/t"]
    with pytest.raises(ConfigError, match="by_batch=True"):
        consumer.check_by_batch()
    with pytest.raises(ConfigError, match="retry=True"):
        world.steps(consumer.client, lambda: consumer.retry_steps(None, 1.0, {}))


@pytest.mark.parametrize("kind", ["exclusive", "shared"])
def test_asking_everything_back(world: PulsarWorld, kind: str) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type=kind, receiver_queue=10, ack_timeout=60)
    world.send(world.producer(client, "t"), *[b"%d" % number for number in range(6)])
    face = world.face(consumer)
    first = face.receive(1)
    face.receive(1)
    face.ack(first)
    with client.driver.enter():
        consumer.redeliver()
    assert world.take(consumer) == [b"%d" % number for number in range(1, 6)]
    world.settled(consumer)


def test_what_was_refused_comes_again_after_its_delay_whatever_the_ack_timeout(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", ack_timeout=10, nack_delay=30.0)
    world.send(world.producer(client, "t", batching=False), b"0")
    message = world.face(consumer).receive(1)
    with client.driver.enter():
        consumer.nack([message])
    assert consumer.unacked is not None
    assert len(consumer.unacked) == 0  # it waits for its redelivery, and no longer for its acknowledgement
    world.world.advance(28)
    assert world.take(consumer) == []
    world.world.advance(4)
    [again] = world.face(consumer).receive_many(10, timeout=1)
    assert (again.body, again.redeliveries) == (b"0", 1)
    world.face(consumer).ack(again)
    world.world.advance(30)
    assert world.take(consumer) == []
    world.settled(consumer)


def test_an_entry_that_is_never_acknowledged_is_buried(world: PulsarWorld) -> None:
    client = world.client()
    letters = DeadLetter(max_redeliveries=1, topic="dead")
    consumer = world.consumer(client, "t", "s", type="shared", ack_timeout=10, dead_letter=letters)
    dead = world.consumer(client, "dead", "s")
    world.send(world.producer(client, "t", batching=False), b"0")
    for _ in range(2):
        assert world.take(consumer) == [b"0"]
        world.world.advance(14)
    assert world.take(dead) == [b"0"]
    world.world.advance(14)
    assert world.take(consumer) == []
    assert world.control.count("REDELIVER_UNACKNOWLEDGED_MESSAGES") == 1  # it did not come a third time to be buried
    world.steps(client, consumer.close_steps)
    assert world.door.topics.make("t").subscriptions["s"].backlog == 0


def test_parts_of_a_message_that_never_gets_whole_come_again_or_are_passed_over(world: PulsarWorld) -> None:
    client = world.client()
    shared = world.consumer(client, "t", "shared", type="shared", nack_delay=0.0)
    ordered = world.consumer(client, "t", "ordered")
    ids = world.send(world.producer(client, "t", batching=False), b"0", b"1")
    for consumer in (shared, ordered):
        assert world.take(consumer) == [b"0", b"1"]
        with client.driver.enter():
            consumer.ask_parts_back([(ids[0].ledger, ids[0].entry)])
    world.world.advance(0.9)
    assert (world.take(shared), world.take(ordered)) == ([], [])
    world.world.advance(0.3)
    assert (world.take(shared), world.take(ordered)) == ([b"0"], [])
    for consumer in (shared, ordered):
        with client.driver.enter():
            consumer.ack_keys([(one.ledger, one.entry) for one in ids])
        world.world.advance(1)
        assert world.at_broker(consumer).subscription.backlog == 0
        world.settled(consumer)


def test_a_message_is_put_off_by_way_of_the_retry_topic(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, "t", "s", type="shared", retry=True)
    world.send(world.producer(client, "t", batching=False), b"0")
    face = world.face(consumer)
    face.retry_later(face.receive(1), 5.0, properties={"why": "busy"})
    world.world.advance(3)
    assert face.receive_many(10, timeout=1) == []
    again = face.receive(10)
    assert (again.body, again.properties["why"]) == (b"0", "busy")


def test_a_subscription_has_a_name(world: PulsarWorld) -> None:
    with pytest.raises(ConfigError, match="has a name"):
        world.consumer(world.client(), "t", "")


def test_what_is_not_acknowledged_in_time_comes_again(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", ack_timeout=10)
    world.send(world.producer(client, "t"), b"0")
    assert world.take(consumer) == [b"0"]
    world.world.advance(5)
    assert world.take(consumer) == []
    world.world.advance(8)
    assert world.take(consumer) == [b"0"]
    world.settled(consumer)


def test_a_failover_consumer_tells_when_it_is_its_turn(world: PulsarWorld) -> None:
    told: list[tuple[str, bool]] = []
    client = world.client()
    first = world.consumer(client, "t", "s", type="failover", name="a")
    second = world.consumer(client, "t", "s", type="failover", name="b", on_active=lambda *of: told.append(of))
    world.face(first).close()
    world.world.advance(2)
    assert second.active
    assert told[-1] == ("persistent://public/default/t", True)


def test_a_larger_window_is_filled(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", receiver_queue=4)
    with client.driver.enter():
        consumer.resize(40)
    world.send(world.producer(client, "t", batching=False), *[b"x"] * 60)
    assert consumer.diagnose()["mailbox"] == 40
    assert len(world.take(consumer) + world.take(consumer)) == 60
    world.settled(consumer)


def test_pausing_a_listener(world: PulsarWorld) -> None:
    seen: list[bytes] = []
    client = world.client()
    consumer = world.consumer(client, "t", "s", listener=lambda message: seen.append(message.body))
    with client.driver.enter():
        consumer.pause()
    world.send(world.producer(client, "t"), b"0")
    world.world.advance(1)
    assert seen == []
    with client.driver.enter():
        consumer.resume()
    world.world.advance(1)
    assert seen == [b"0"]
    world.steps(client, consumer.close_steps)
    world.steps(client, consumer.close_steps)  # again: nothing
    assert consumer.diagnose()["state"] == "closed"


def test_what_is_asked_while_away_waits(world: PulsarWorld) -> None:
    client = world.client(operation_timeout=5)
    consumer = world.consumer(client, "t", "s")
    world.cut()
    world.world.run()
    assert world.steps(client, consumer.last_message_ids_steps) == {consumer.topics[0]: None}
    world.control.drop("SUBSCRIBE", times=9)
    world.cut()
    world.world.run()
    before = world.world.mono
    with pytest.raises(LinkError, match="at present"):
        world.steps(client, consumer.stats_steps)
    assert world.world.mono - before == pytest.approx(5)

"""A topic that goes to another cluster: producers and consumers follow the broker's word, nothing is lost or twice."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar import migration
from mqclient.pulsar.outgoing import prepare, results
from tests.support.pulsar_world import PulsarWorld, RawClient

GREEN = "pulsar://green:6650"


@pytest.fixture(name="worlds")
def worlds_fixture(codec: Any) -> tuple[PulsarWorld, PulsarWorld]:
    blue = PulsarWorld(codec)
    return blue, PulsarWorld(codec, beside=blue.world, at="green")


Worlds = tuple[PulsarWorld, PulsarWorld]


def migrate(blue: PulsarWorld, url: str = GREEN, url_tls: str = "") -> None:
    blue.door.migrate("t", url, url_tls)
    blue.world.run()


def bodies(world: PulsarWorld) -> list[bytes]:
    log, codec = world.door.topics.make("t").log, world.impl.pulsar
    entries = [codec.Entry.from_stored(log.record(number)) for number in range(log.next)]
    return [message.body for entry in entries for message in codec.decode_messages(entry)]


def test_producers_go_at_once_with_what_is_in_flight(worlds: Worlds) -> None:
    blue, green = worlds
    producer = blue.producer(blue.client(), "t")
    blue.send(producer, b"1")
    blue.control.drop("SEND")
    pending = blue.ask(producer.client, lambda: producer.send(prepare(b"2")))
    blue.world.run()
    migrate(blue)
    blue.world.advance(2)
    assert pending.result().entry == 0
    assert [one.entry for one in blue.send(producer, b"3")] == [1]
    assert (bodies(blue), bodies(green)) == ([b"1"], [b"2", b"3"])


def test_consumers_go_when_they_have_everything(worlds: Worlds) -> None:
    blue, green = worlds
    client = blue.client()
    producer, consumer = blue.producer(client, "t"), blue.consumer(client, "t", "s", start="earliest")
    face = blue.face(consumer)
    blue.send(producer, b"1", b"2")
    migrate(blue)
    blue.world.advance(2)
    blue.send(producer, b"3")
    assert consumer.connection is not None
    assert consumer.connection.link.address.host == "broker"
    late = blue.consumer(blue.client(), "t", "s2", start="earliest")  # it is new, so there is nothing for it here
    assert late.connection is not None
    assert late.connection.link.address.host == "green"
    face.ack([face.receive(1), face.receive(1)])
    blue.world.advance(2)
    assert [face.receive(1).body] == [b"3"]
    green.settled(consumer)
    assert blue.door.topics.make("t").subscriptions["s"].consumers == []


def test_what_was_acknowledged_late_is_not_told_to_the_other_cluster(worlds: Worlds) -> None:
    blue, green = worlds
    client = blue.client()
    producer, consumer = blue.producer(client, "t"), blue.consumer(client, "t", "s", ack_grouping=50.0)
    face = blue.face(consumer)
    blue.send(producer, b"1")
    message = face.receive(1)
    face.ack(message)
    with client.driver.enter():
        consumer.acks.flush()
    face.ack(blue.impl.pulsar.MessageId(message.message_id.ledger, 7))
    green.control.drop("ACK", times=10)
    migrate(blue)
    blue.world.advance(2)
    assert consumer.connection is not None
    assert consumer.connection.link.address.host == "green"
    assert (len(consumer.acks.set), green.control.count("ACK")) == (0, 0)


def test_an_opening_is_sent_on(worlds: Worlds) -> None:
    blue, green = worlds
    migrate(blue)
    client = blue.client()
    producer = blue.producer(client, "t")
    consumer = blue.consumer(client, "t", "s", start="earliest")
    sent = blue.do(client, lambda: producer.send_many([b"1", b"2"]))
    assert all(one.ok for one in results(sent))
    assert blue.take(consumer) == [b"1", b"2"]
    assert (bodies(blue), bodies(green)) == ([], [b"1", b"2"])
    blue.cut()
    blue.world.advance(2)
    blue.send(producer, b"3")
    assert bodies(green) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("url", ["nonsense", "http://green:8080", "pulsar+ssl://green:6651", ""])
def test_a_word_that_names_no_cluster_ends_the_connection(worlds: Worlds, url: str) -> None:
    blue, _ = worlds
    producer = blue.producer(blue.client(), "t")
    migrate(blue, url)
    assert producer.attachment.connection is None
    blue.door.topics.make("t").migrated = None
    blue.world.advance(5)
    assert blue.send(producer, b"1")[0].ok


def test_a_word_about_nobody_is_passed_over(worlds: Worlds) -> None:
    blue, _ = worlds
    producer = blue.producer(blue.client(), "t")
    [session] = blue.door.sessions
    for kind in (migration.PRODUCER, migration.CONSUMER):
        session.send(68, "CommandTopicMigrated", resource_id=99, resource_type=kind, brokerServiceUrl=GREEN)
    session.flush()
    blue.world.run()
    assert blue.send(producer, b"1")[0].entry == 0
    assert bodies(blue) == [b"1"]


def test_what_the_broker_says(worlds: Worlds) -> None:
    blue, _ = worlds
    raw = RawClient(blue)
    raw.produce([b"1"])
    raw.subscribe()
    raw.flow(5)
    migrate(blue, "", "pulsar+ssl://green:6651")
    names = [name for name, _ in raw.events if isinstance(name, str)]
    assert names == ["TOPIC_MIGRATED", "CLOSE_PRODUCER"]
    (_, told) = next(event for event in raw.events if event[0] == "TOPIC_MIGRATED")
    assert (told.resource_type, told.brokerServiceUrl) == (migration.PRODUCER, "")
    assert told.brokerServiceUrlTls == "pulsar+ssl://green:6651"
    topic = blue.door.topics.make("t")
    raw.tell("ACK", consumer_id=0, ack_type=0, message_id=[{"ledgerId": topic.ledger, "entryId": 0}])
    assert [name for name, _ in raw.events] == ["TOPIC_MIGRATED", "CLOSE_CONSUMER"]
    assert raw.subscribe(5) is None
    assert [name for name, _ in raw.events] == ["TOPIC_MIGRATED", "CLOSE_CONSUMER"]
    assert raw.ask("PRODUCER", topic="t", producer_id=9) is None
    assert (raw.session.producers, raw.session.consumers) == ({}, {})

"""Messages that cannot be handled: buried after so many times, retried by way of a topic, never lost on the way."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError, MQError
from mqclient.pulsar import opening
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.consumer_options import DeadLetter, Delays
from mqclient.pulsar.multi import MultiConsumer
from tests.support.pulsar_world import PulsarWorld, single


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def take(world: PulsarWorld, consumer: ConsumerEngine | MultiConsumer) -> list[Any]:
    world.world.run()
    return world.face(consumer)._take_many(1000)


def buried(world: PulsarWorld, client: Any, topic: str = "t-s-DLQ") -> list[Any]:
    reader = world.reader(client, topic, "earliest")
    found = take(world, reader)
    world.face(reader).close()
    return found


@pytest.mark.parametrize("batching", [True, False])
def test_refused_too_often(world: PulsarWorld, batching: bool) -> None:
    client = world.client()
    policy = DeadLetter(max_redeliveries=2, initial_subscription="watch")
    consumer = world.consumer(client, "t", "s", type="shared", nack_delay=1, dead_letter=policy)
    sender = world.sender(world.producer(client, "t", batching=batching))
    (bad,) = sender.send_many([(b"bad", b"key", {"a": "1"}, 7, b"order")])
    face = world.face(consumer)
    for times in range(3):
        (message,) = take(world, consumer)
        assert message.redeliveries == times
        face.nack(message)
        world.world.advance(1.5)
    assert take(world, consumer) == []
    world.settled(consumer)
    (letter,) = buried(world, client)
    place = f"{bad.ledger}:{bad.entry}:-1" + (":0" if batching else "")
    assert letter.properties == {
        "a": "1",
        "REAL_TOPIC": "persistent://public/default/t",
        "REAL_SUBSCRIPTION": "s",
        "ORIGIN_MESSAGE_ID": place,
    }
    assert (letter.body, letter.key_bytes, letter.event_time, letter.ordering_key) == (b"bad", b"key", 7, b"order")
    face.close()
    assert take(world, world.consumer(client, "t", "s", type="shared")) == []
    assert not [member for member in client._members if "DLQ" in str(getattr(member, "topic", ""))]


def test_what_comes_more_often_than_that_is_not_shown(world: PulsarWorld) -> None:
    client = world.client()
    first = world.consumer(client, "t", "s", type="shared", nack_delay=0)
    world.sender(world.producer(client, "t")).send_many([b"0", b"1"])
    for _ in range(3):
        face = world.face(first)
        messages = take(world, first)
        face.nack(messages)
        world.world.advance(0.1)
    face.ack(take(world, first)[:1])
    consumer = world.consumer(client, "t", "s", type="shared", dead_letter=DeadLetter(max_redeliveries=1))
    face.redeliver()
    face.close()
    world.world.advance(1)
    assert take(world, consumer) == []
    world.settled(consumer)
    assert consumer.permits.diagnose()["discarded"] == 1  # what was acknowledged is no letter, nor was it charged
    assert [letter.body for letter in buried(world, client)] == [b"1"]


def test_acknowledged_at_the_last_try(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", nack_delay=0, dead_letter=DeadLetter(1), ack_timeout=5)
    world.sender(world.producer(client, "t", batching=False)).send_many([b"0", b"1"])
    face = world.face(consumer)
    face.nack(take(world, consumer))
    world.world.advance(0.1)
    again = take(world, consumer)
    face.ack(again[0])
    world.world.advance(1)
    assert consumer.letters is not None
    assert len(consumer.letters._last_try) == 1
    world.world.advance(10)  # the other one's time is over: buried
    assert [letter.body for letter in buried(world, client)] == [again[1].body]


def test_no_letter_no_loss(world: PulsarWorld, caplog: pytest.LogCaptureFixture) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", nack_delay=0, dead_letter=DeadLetter(1))
    world.sender(world.producer(client, "t")).send(b"0")
    world.control.answer("PRODUCER", ServerError.AuthorizationError, "not you", times=1)
    face = world.face(consumer)
    for _ in range(2):
        face.nack(take(world, consumer))
        world.world.advance(0.1)
    assert "no dead letter" in caplog.text
    assert buried(world, client) == []
    world.world.advance(2)  # it comes once more, too often now, and this time there is a grave
    assert take(world, consumer) == []
    assert [letter.body for letter in buried(world, client)] == [b"0"]


def test_by_way_of_the_retry_topic(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, "t", "s", type="shared", retry=True, dead_letter=DeadLetter(max_redeliveries=2))
    assert [topic.rpartition("/")[2] for topic in consumer.topics] == ["t", "t-s-RETRY"]
    (origin,) = world.sender(world.producer(client, "t", batching=False)).send_many([b"x"])
    face = world.face(consumer)
    for times in range(3):
        (message,) = take(world, consumer)
        assert message.properties.get("RECONSUMETIMES", "0") == str(times)
        face.retry_later(message, 3, properties={"why": "busy"})
        world.world.advance(4)
    assert message.properties["DELAY_TIME"] == "3000"
    assert message.properties["why"] == "busy"
    assert take(world, consumer) == []
    (letter,) = buried(world, client)
    assert letter.properties["RECONSUMETIMES"] == "3"
    assert letter.properties["REAL_TOPIC"] == "persistent://public/default/t"
    assert letter.properties["ORIGIN_MESSAGE_ID"] == f"{origin.ledger}:{origin.entry}:-1"
    for child in single(consumer):
        world.settled(child)
    face.close()
    assert take(world, world.multi(client, "t", "s", type="shared", retry=True)) == []


def test_a_retry_that_fails_is_told_and_the_message_comes_again(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, "t", "s", type="shared", retry=True, nack_delay=1)
    world.sender(world.producer(client, "t")).send(b"x")
    (message,) = take(world, consumer)
    world.control.answer("PRODUCER", ServerError.AuthorizationError, "not you", times=1)
    with pytest.raises(MQError, match="not you"):
        world.face(consumer).retry_later(message, 1)
    world.world.advance(2)
    assert [message.body for message in take(world, consumer)] == [b"x"]


def test_growing_delays(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", nack_delay=Delays(first=1, limit=3, factor=2))
    world.sender(world.producer(client, "t")).send(b"x")
    waited = []
    for _ in range(4):
        (message,) = take(world, consumer)
        world.face(consumer).nack(message)
        before = world.world.mono
        world.world.until(lambda: len(consumer.mailbox) > 0)
        waited.append(round(world.world.mono - before, 3))
    assert waited == [1, 2, 3, 3]


def test_what_cannot_be(world: PulsarWorld) -> None:
    client = world.client()
    for given in ({"dead_letter": DeadLetter()}, {"retry": True}):
        with pytest.raises(ConfigError, match="need a shared"):
            world.consumer(client, "t", "s", **given)
    with pytest.raises(ConfigError, match="at least 1"):
        DeadLetter(max_redeliveries=0)
    with pytest.raises(ConfigError, match="first is between"):
        Delays(first=5, limit=1)
    consumer = world.consumer(client, "t", "s", type="shared")
    with pytest.raises(ConfigError, match="retry=True"):
        world.do(client, lambda: opening.retry(consumer, None, 1, {}))
    import re

    with pytest.raises(ConfigError, match="not a pattern"):
        world.multi(client, re.compile("t.*"), "s", type="shared", retry=True)

"""Moving the position: the broker's close, what comes meanwhile, and seeks that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar import session as session_module
from mqclient.errors import ConfigError
from mqclient.pulsar import opening
from mqclient.pulsar.codes import BrokerError
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def test_seek_inside_a_batch(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    ids = world.send(producer, *[b"%d" % number for number in range(10)])
    consumer = world.consumer(client, "t", "s", start="earliest")
    face = world.face(consumer)
    face.ack(face.receive_many(100, timeout=1))
    face.seek(ids[6])
    assert world.take(consumer) == [b"7", b"8", b"9"]
    world.settled(consumer)


def test_to_an_end(world: PulsarWorld) -> None:
    client = world.client()
    world.send(world.producer(client, "t"), b"1", b"2")
    consumer = world.consumer(client, "t", "s")
    face = world.face(consumer)
    for to, expected in (("earliest", [b"1", b"2"]), ("latest", []), ({"t": "earliest"}, [b"1", b"2"])):
        face.seek(to)
        assert world.take(consumer) == expected
    with pytest.raises(ConfigError, match="'earliest' or 'latest', not to 'last'"):
        face.seek("last")


def test_a_refused_seek_changes_nothing(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t")
    ids = world.send(producer, b"1", b"2")
    consumer = world.consumer(client, "t", "s")
    world.control.answer("SEEK", 0, "no")
    with pytest.raises(BrokerError, match="no"):
        world.face(consumer).seek(ids[0])
    world.send(producer, b"3")
    assert world.take(consumer) == [b"3"]
    world.settled(consumer)


@pytest.mark.parametrize("options", [{}, {"type": "shared"}, {"receiver_queue": 0}, {"batching": True}], ids=str)
def test_what_came_while_a_refused_seek_was_under_way_comes_again(world: PulsarWorld, options: dict[str, Any]) -> None:
    """It was skipped, for the seek might have left it behind: a broker does not bring it again by itself."""
    client = world.client()
    producer = world.producer(world.client(), "t", batching=options.pop("batching", False))
    (first,) = world.send(producer, b"1")
    consumer = world.consumer(client, "t", "s", start="earliest", **options)
    face = world.face(consumer)
    face.ack(face.receive(1))
    world.world.latency = 0.01
    world.control.answer("SEEK", 0, "no")
    sent = world.ask(producer.client, lambda: producer.send_many([b"2", b"3", b"4"]))
    world.world.advance(0.02)  # they are on their way to the consumer
    slot = world.ask(client, lambda: opening.seek(consumer, first))
    world.world.result(sent)
    with pytest.raises(BrokerError, match="no"):
        world.world.result(slot)
    got = [face.receive(5) for _ in range(3)]
    assert [message.body for message in got] == [b"2", b"3", b"4"]
    face.ack(got)
    world.world.advance(1)
    world.settled(consumer)


def test_one_seek_at_a_time_when_connected(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s")
    world.control.delay("SEEK", 1)
    slot = world.ask(client, lambda: opening.seek(consumer, 5))
    with pytest.raises(ConfigError, match="under way"):
        world.do(client, lambda: opening.seek(consumer, 5))
    world.world.result(slot)
    world.cut()
    world.world.run()
    slots = [world.ask(client, lambda: opening.seek(consumer, 5)) for _ in range(2)]
    assert consumer.connection is None
    world.world.result(slots[0])
    with pytest.raises(ConfigError, match="under way"):
        world.world.result(slots[1])


def test_a_broker_that_does_not_close_at_a_seek(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", receiver_queue=10)
    world.send(producer, *[b"%d" % number for number in range(5)])

    def only_yes(session: Any, request: Any) -> None:
        session.success(request.request_id)

    monkeypatch.setitem(session_module.HANDLERS, 28, only_yes)
    world.face(consumer).seek(5)
    assert world.take(consumer) == []  # what was here is from before
    world.settled(consumer)


def test_what_comes_during_a_seek_is_dropped_with_its_permits(world: PulsarWorld) -> None:
    client = world.client()
    producer = world.producer(client, "t", batching=False)
    consumer = world.consumer(client, "t", "s", receiver_queue=4)
    world.control.delay("SEEK", 1.0)
    slot = world.ask(client, lambda: opening.seek(consumer, 4102444800000))
    world.send(producer, *[b"%d" % number for number in range(20)])
    world.world.run()
    assert len(consumer.mailbox) == 0
    world.world.result(slot)
    world.send(producer, b"new")
    assert world.take(consumer) == [b"new"]
    world.settled(consumer)


def test_a_seek_among_compressed_entries_skips_with_permits(world: PulsarWorld) -> None:
    client = world.client()
    world.append_compressed([b"0", b"1", b"2", b"3"])
    consumer = world.consumer(client, "t", "s", start="earliest", receiver_queue=4)
    face = world.face(consumer)
    messages = face.receive_many(10)
    face.seek(messages[1].message_id)
    assert world.take(consumer) == [b"2", b"3"]
    face.seek(messages[3].message_id)
    assert world.take(consumer) == []
    world.append_compressed([b"4"])
    assert world.take(consumer) == [b"4"]
    world.settled(consumer)

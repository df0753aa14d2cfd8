"""Consumers of many topics and partitions: one mailbox, an account each, and growth."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.broker.pulsar import session as session_module
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.pulsar import opening, reading
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.multi import MultiConsumer
from tests.support.pulsar_world import PulsarWorld, single


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Topic -> how many partitions the broker says it has."""
    known: dict[str, int] = {}

    def answer(session: Any, request: Any) -> None:
        number = known.get(request.topic.rpartition("/")[2], 0)
        session.send(
            22, "CommandPartitionedTopicMetadataResponse", request_id=request.request_id, response=0, partitions=number
        )

    monkeypatch.setitem(session_module.HANDLERS, 21, answer)
    return known


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def send(world: PulsarWorld, topic: str, *bodies: bytes, **options: Any) -> list[Any]:
    client = world.client()
    try:
        return world.sender(world.producer(client, topic, **options)).send_many(bodies)
    finally:
        world.do(client, lambda: opening.close(client))


def bodies(world: PulsarWorld, consumer: MultiConsumer) -> list[bytes]:
    world.world.run()
    return sorted(message.body for message in world.face(consumer)._take_many(100_000))


def settled(world: PulsarWorld, consumer: MultiConsumer) -> None:
    for child in single(consumer):
        world.settled(child)


def test_many_topics_come_by_one_mailbox(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, ["a", "b", "a"], "s", receiver_queue=10)
    assert consumer.topics == ["persistent://public/default/a", "persistent://public/default/b"]
    send(world, "a", b"1", b"2")
    send(world, "b", b"3")
    face = world.face(consumer)
    messages: list[Any] = sorted((face.receive(1) for _ in range(3)), key=lambda message: message.body)
    assert [(message.body, message.topic[-1]) for message in messages] == [(b"1", "a"), (b"2", "a"), (b"3", "b")]
    face.ack(messages)
    settled(world, consumer)
    shown = consumer.diagnose()
    assert [child["permits"]["arrived"] for child in shown["children"]] == [2, 1]
    assert shown["permits"]["window"] == 20
    face.close()
    assert bodies(world, world.multi(client, ["a", "b"], "s")) == []


def test_nothing_is_granted_before_all_are_ready(world: PulsarWorld) -> None:
    client = world.client()
    world.control.answer("SUBSCRIBE", ServerError.ServiceNotReady, "soon", times=1)
    slot = world.ask(client, lambda: _open(client, ["a", "b"]))
    world.world.run()
    first = [place for session in world.door.sessions for place in session.consumers.values() if place.consumer]
    assert [place.consumer.flows for place in first if place.consumer] == [[]]
    consumer = world.world.result(slot)
    world.world.run()
    assert [world.at_broker(child).flows for child in single(consumer)] == [[1000], [1000]]


def _open(client: Any, topics: list[str]) -> Any:
    from mqclient.pulsar import subscribing

    return subscribing.open_consumer(client, topics, "s", {}, None)


def test_if_one_cannot_be_opened_none_stays(world: PulsarWorld) -> None:
    client = world.client()
    with pytest.raises(BrokerError):
        world.multi(client, ["a", "nobody/there/t"], "s")
    world.world.run()
    assert not client._members
    assert not any(session.consumers for session in world.door.sessions)


def test_the_total_of_the_queues_is_shared(world: PulsarWorld, counts: dict[str, int]) -> None:
    client = world.client()
    counts["t"] = 4
    consumer = world.multi(client, "t", "s", receiver_queue=100, total_receiver_queue=200, partition_refresh=10)
    assert {child.permits.diagnose()["window"] for child in single(consumer)} == {50}
    counts["t"] = 8
    world.world.advance(11)
    assert len(consumer.children) == 8
    assert {child.permits.diagnose()["window"] for child in single(consumer)} == {25}
    for number in range(8):
        send(world, f"t-partition-{number}", *[b"x"] * 60, batching=False)
    assert len(bodies(world, consumer)) >= 8 * 25
    while bodies(world, consumer):
        pass
    settled(world, consumer)
    assert consumer.diagnose()["permits"]["arrived"] == 8 * 60


def test_new_partitions_are_read_from_their_beginning(world: PulsarWorld, counts: dict[str, int]) -> None:
    client = world.client()
    counts["t"] = 1
    consumer = world.multi(client, "t", "s", partition_refresh=10, type="shared")
    world.face(consumer).pause()
    send(world, "t-partition-1", b"before we looked")
    counts["t"] = 2
    world.world.advance(11)
    assert consumer.topics[1].endswith("t-partition-1")
    assert bodies(world, consumer) == []  # paused, and so is what came later
    world.face(consumer).resume()
    assert bodies(world, consumer) == [b"before we looked"]
    counts["t"] = 1  # what is gone from the count is not closed: the broker will say so itself
    world.world.advance(11)
    assert len(consumer.children) == 2


def test_a_look_that_fails_is_tried_again(world: PulsarWorld, counts: dict[str, int]) -> None:
    client = world.client()
    counts["t"] = 1
    consumer = world.multi(client, "t", "s", partition_refresh=10)
    counts["t"] = 2
    world.control.answer("SUBSCRIBE", ServerError.AuthorizationError, "not now", times=1)
    world.world.advance(11)
    assert len(consumer.children) == 1
    world.world.advance(11)
    assert len(consumer.children) == 2


def test_acknowledgements_find_their_child(world: PulsarWorld, counts: dict[str, int]) -> None:
    client = world.client()
    counts["t"] = 2
    consumer = world.multi(client, "t", "s", type="failover")
    ids = [send(world, f"t-partition-{number}", b"%d0" % number, b"%d1" % number) for number in range(2)]
    face = world.face(consumer)
    world.world.advance(2)
    messages = {message.body: message for message in face.receive_many(10) + face.receive_many(10, 0)}
    assert [messages[b"00"].message_id, messages[b"11"].message_id] == [ids[0][0], ids[1][1]]
    face.ack(ids[0][0])  # an id names its partition
    face.ack_cumulative(messages[b"11"])
    face.ack_confirmed([messages[b"01"]])
    face.close()
    assert bodies(world, world.multi(client, "t", "s")) == []


def test_an_id_alone_does_not_say_which_topic(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, ["a", "b"], "s")
    (message_id,) = send(world, "a", b"x")
    face = world.face(consumer)
    with pytest.raises(ConfigError, match="give the message itself"):
        face.ack(message_id)
    message = face.receive(1)
    consumer.children.pop(str(message.topic))
    with pytest.raises(ConfigError, match="has no topic"):
        face.ack(message)


def test_refused_and_redelivered(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, ["a", "b"], "s", type="shared", nack_delay=1)
    send(world, "a", b"1")
    send(world, "b", b"2")
    face = world.face(consumer)
    messages = [face.receive(1), face.receive(1)]
    face.nack(messages)
    world.world.advance(2)
    assert bodies(world, consumer) == [b"1", b"2"]
    face.redeliver()
    assert bodies(world, consumer) == [b"1", b"2"]
    settled(world, consumer)


def test_seeking(world: PulsarWorld, counts: dict[str, int]) -> None:
    client = world.client()
    counts["t"] = 2
    consumer = world.multi(client, "t", "s")
    face = world.face(consumer)
    ids = [send(world, f"t-partition-{number}", b"%d0" % number, b"%d1" % number) for number in range(2)]
    everything = [b"00", b"01", b"10", b"11"]
    assert bodies(world, consumer) == everything
    face.seek(0)
    assert bodies(world, consumer) == everything
    face.seek(client.impl.pulsar.EARLIEST)
    assert bodies(world, consumer) == everything
    face.seek(client.impl.pulsar.LATEST)
    assert bodies(world, consumer) == []
    face.seek("earliest")
    assert bodies(world, consumer) == everything
    face.seek({"t-partition-0": "earliest", "t-partition-1": "latest"})
    assert bodies(world, consumer) == [b"00", b"01"]
    face.seek(ids[1][0])
    assert bodies(world, consumer) == [b"11"]
    face.seek({"t-partition-0": ids[0][0], "t-partition-1": 0})
    assert bodies(world, consumer) == [b"01", b"10", b"11"]
    face.seek(lambda topic: 0 if topic.endswith("0") else None)
    assert bodies(world, consumer) == [b"00", b"01"]
    settled(world, consumer)
    with pytest.raises(ConfigError, match="has no topic"):
        face.seek({"other": 0})


def test_questions(world: PulsarWorld, counts: dict[str, int]) -> None:
    client = world.client()
    counts["t"] = 2
    (last,) = send(world, "t-partition-1", b"x")
    consumer = world.multi(client, "t", "s", start="earliest")
    face = world.face(consumer)
    assert face.last_message_ids() == {
        "persistent://public/default/t-partition-0": None,
        "persistent://public/default/t-partition-1": last,
    }
    with pytest.raises(ConfigError, match="last_message_ids"):
        face.last_message_id()
    assert [shown["type"] for shown in face.stats().values()] == ["Exclusive", "Exclusive"]
    assert world.do(client, lambda: reading.has_message_available(consumer))
    face.receive(1)
    assert not world.do(client, lambda: reading.has_message_available(consumer))
    face.unsubscribe()
    assert not world.door.topics.make("t-partition-0").subscriptions
    with pytest.raises(ClosedError):
        face.receive(1)


def test_a_lost_connection(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, ["a", "b"], "s", type="shared", receiver_queue=10)
    send(world, "a", b"1", b"2")
    send(world, "b", b"3")
    world.face(consumer).receive(1)
    world.cut()
    world.world.advance(5)
    assert bodies(world, consumer) == [b"1", b"2", b"3"]
    settled(world, consumer)


def test_a_topic_refused_for_good_ends_it(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, ["a", "b"], "s")
    world.control.answer("SUBSCRIBE", ServerError.TopicNotFound, "gone", times=1)
    world.cut()
    world.world.advance(5)
    with pytest.raises(BrokerError, match="gone"):
        world.face(consumer).receive(1)
    assert not client._members
    assert consumer.children == {}


def test_closed_with_its_client_and_by_itself(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, ["a", "b"], "s")
    world.do(client, lambda: opening.close(client))
    with pytest.raises(ClosedError):
        world.face(consumer).receive(1)
    world.face(consumer).close()  # once more does no harm
    with pytest.raises(MQError):
        world.multi(client, ["a", "b"], "s")


def test_closed_while_it_grows(world: PulsarWorld, counts: dict[str, int]) -> None:
    client = world.client()
    counts["t"] = 1
    consumer = world.multi(client, "t", "s", partition_refresh=10)
    counts["t"] = 2
    world.control.delay("SUBSCRIBE", seconds=5, times=1)
    world.world.advance(11)
    world.face(consumer).close()
    world.world.advance(20)
    assert not any(session.consumers for session in world.door.sessions)
    assert not client._members


def test_readers_of_partitions(world: PulsarWorld, counts: dict[str, int]) -> None:
    from mqclient.pulsar import subscribing

    client = world.client()
    counts["t"] = 2
    for number in range(2):
        send(world, f"t-partition-{number}", b"%d" % number)

    def read(**options: Any) -> Any:
        return world.do(client, lambda: subscribing.open_reader(client, "t", "earliest", options, None))

    reader = read()
    assert bodies(world, reader) == [b"0", b"1"]
    world.cut()
    world.world.advance(5)
    settled(world, reader)
    by_batch = read(by_batch=True)
    by_batch.check_by_batch()
    world.world.run()
    batches: list[Any] = world.face(by_batch)._take_many(5)
    assert [len(batch) for batch in batches] == [1, 1]
    with pytest.raises(ConfigError, match="by_batch"):
        reader.check_by_batch()


@pytest.mark.parametrize(
    ("options", "text"),
    [({"receiver_queue": 0}, "at least 1"), ({"start": None}, "then seek")],
)
def test_what_many_topics_cannot_have(world: PulsarWorld, options: dict[str, Any], text: str) -> None:
    client = world.client()
    if "start" in options:
        options = {"start": client.impl.pulsar.MessageId(1, 1), "durable": False}
    with pytest.raises(ConfigError, match=text):
        world.multi(client, ["a", "b"], "s", **options)
    with pytest.raises(ConfigError, match="a subscription has a name"):
        world.multi(client, ["a", "b"], "")
    with pytest.raises(ConfigError, match="at least one topic"):
        world.multi(client, [], "s")


def test_what_is_acknowledged_after_the_end_is_refused(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, ["a", "b"], "s")
    send(world, "a", b"1", b"2", batching=False)
    send(world, "b", b"3", batching=False)
    face = world.face(consumer)
    messages: list[Any] = [face.receive(1) for _ in range(3)]
    face.close()
    for message in [*messages, messages]:
        with pytest.raises(MQError, match=r"closed|any more"):
            face.ack(message)
    assert bodies(world, world.multi(client, ["a", "b"], "s")) == [b"1", b"2", b"3"]

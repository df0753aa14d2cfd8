"""How producers, consumers and readers come to be: patience where it helps, a clear end where it does not."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.errors import ConfigError, DeadlineError, LinkError
from mqclient.pulsar import opening, producing, subscribing
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.codes import BrokerError, ServerError
from mqclient.pulsar.listening import Report
from mqclient.pulsar.names import TopicName
from tests.support.fake_driver import Script
from tests.support.pulsar_world import PulsarWorld


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def subscribe(client: ClientEngine, topic: str, options: Any, deadline: float | None) -> Slot[Any]:
    return subscribing.open_consumer(client, topic, "s", options, deadline)


def test_a_broker_that_is_not_ready_is_asked_again(world: PulsarWorld) -> None:
    world.control.answer("PARTITIONED_METADATA", ServerError.ServiceNotReady, "soon", times=2)
    world.control.answer("LOOKUP", ServerError.ServiceNotReady, "soon", times=2)
    world.control.answer("PRODUCER", ServerError.ServiceNotReady, "soon", times=2)
    producer = world.producer(world.client(), "t")
    assert producer.diagnose()["state"] == "attached"
    assert 1000.5 < world.world.mono < 1003


@pytest.mark.parametrize("request_name", ["PARTITIONED_METADATA", "LOOKUP", "SUBSCRIBE"])
def test_a_refusal_is_told_at_once(world: PulsarWorld, request_name: str) -> None:
    world.control.answer(request_name, ServerError.AuthorizationError, "not you", times=100)
    client = world.client()
    with pytest.raises(BrokerError, match="not you"):
        world.consumer(client, "t", "s")
    assert world.world.mono < 1001
    assert not client._members


def test_the_operation_has_a_deadline(world: PulsarWorld) -> None:
    world.control.drop("LOOKUP", times=100)
    with pytest.raises(DeadlineError):
        world.producer(world.client(operation_timeout=3), "t")
    assert world.world.mono == pytest.approx(1003, abs=0.2)


def dark(world: PulsarWorld) -> None:
    """The lookup names a broker that takes connections and says nothing."""
    world.world.listen(("dark", 6650), Script())
    world.door.url = "pulsar://dark:6650"


@pytest.mark.parametrize("ask", [producing.open_producer, subscribe])
def test_a_broker_that_cannot_be_reached_is_named(world: PulsarWorld, ask: Any) -> None:
    """Both ends come at one time, that of the connection and that of the operation: the one that knows why is told."""
    dark(world)
    client = world.client(operation_timeout=3, connect_timeout=10)
    with pytest.raises(LinkError, match="dark:6650"):
        world.do(client, lambda: ask(client, "t", {}, None))
    assert world.world.mono == pytest.approx(1003, abs=0.01)


@pytest.mark.parametrize("ask", [producing.open_producer, subscribe])
def test_the_last_try_is_cut_short_and_tells_why(world: PulsarWorld, ask: Any) -> None:
    """Seen where DNS is slow: one try of 2 s, and a second one with a second left."""
    dark(world)
    client = world.client(operation_timeout=3, connect_timeout=2)
    with pytest.raises(LinkError, match="dark:6650"):
        world.do(client, lambda: ask(client, "t", {}, None))
    assert world.world.mono == pytest.approx(1003, abs=0.01)


@pytest.mark.parametrize("ask", [producing.open_producer, subscribe])
def test_the_connection_that_others_wait_for_holds_nobody_up(world: PulsarWorld, ask: Any) -> None:
    """A joins the connection that B began and has more time for: A's operation ends when A said."""
    dark(world)
    client = world.client(connect_timeout=20)
    patient = world.ask(client, lambda: ask(client, "t", {}, 1020.0))
    world.world.advance(1)
    with pytest.raises(LinkError, match="dark:6650"):
        world.do(client, lambda: ask(client, "t", {}, 1003.0))
    assert world.world.mono == pytest.approx(1003, abs=0.01)
    assert not patient.done
    with pytest.raises(LinkError, match="dark:6650"):
        world.world.result(patient)
    assert world.world.mono == pytest.approx(1020, abs=0.01)


@pytest.mark.parametrize("partitions", [0, 2])
def test_who_stands_in_line_until_its_deadline_is_told_so(world: PulsarWorld, partitions: int) -> None:
    if partitions:
        world.door.topics.partition(TopicName.parse("t"), partitions)
    first, client = world.client(), world.client()
    world.producer(first, "t", access="exclusive")
    with pytest.raises(DeadlineError, match="others have it"):
        world.do(client, lambda: producing.open_producer(client, "t", {"access": "wait"}, 1005.0))
    assert world.world.mono == pytest.approx(1005, abs=0.01)
    assert not client._members


def test_unknown_namespaces_and_names(world: PulsarWorld) -> None:
    client = world.client()
    with pytest.raises(BrokerError) as caught:
        world.producer(client, "nobody/there/t")
    assert caught.value.code == ServerError.TopicNotFound
    with pytest.raises(ConfigError, match="topic"):
        world.producer(client, "a/b")
    with pytest.raises(ConfigError, match="a subscription has a name"):
        world.consumer(client, "t", "")


def test_a_reader_keeps_nothing(world: PulsarWorld) -> None:
    client = world.client()
    reader = world.reader(client, "t", "earliest")
    assert (reader.options.durable, reader.options.type) == (False, "exclusive")
    subscriptions = world.door.topics.make("t").subscriptions
    assert list(subscriptions) == [reader.subscription]
    world.face(reader).close()
    assert not subscriptions


def test_unsubscribing(world: PulsarWorld) -> None:
    client = world.client()
    first = world.consumer(client, "t", "s", type="shared")
    second = world.consumer(client, "t", "s", type="shared")
    with pytest.raises(BrokerError):
        world.face(first).unsubscribe()
    world.face(second).unsubscribe(force=True)
    assert "s" not in world.door.topics.make("t").subscriptions


def test_the_names_to_open(world: PulsarWorld) -> None:
    client = world.client()
    assert world.rest("PUT", "persistent/public/default/many/partitions", 2) is None
    names = world.do(client, lambda: opening.partitions(client, "many", None))
    assert names == [f"persistent://public/default/many-partition-{number}" for number in range(2)]
    assert world.do(client, lambda: opening.partitions(client, "one", client.deadline())) == [
        "persistent://public/default/one"
    ]


def test_a_ping_tells_who_answered(world: PulsarWorld) -> None:
    client = world.client()
    assert world.do(client, lambda: opening.ping(client)).startswith("Pulsar Server (mqclient")


def test_a_listener_is_stopped_before_it_is_closed(world: PulsarWorld) -> None:
    client, seen = world.client(), []
    consumer = world.consumer(client, "t", "s", listener=lambda message: seen.append(message.body))
    world.send(world.producer(client, "t"), b"0", b"1")
    world.world.advance(1)
    report = world.do(client, lambda: opening.stop(consumer, 5))
    assert (seen, report) == ([b"0", b"1"], Report(2, 0, 0, 0))
    assert consumer.diagnose()["state"] == "closed"


def test_what_is_retried_later_needs_a_topic_to_wait_in(world: PulsarWorld) -> None:
    client = world.client()
    world.send(world.producer(client, "t"), b"0")
    plain = world.consumer(client, "t", "plain", start="earliest")
    message = world.face(plain).receive(1)
    with pytest.raises(ConfigError, match="retry=True"):
        world.do(client, lambda: opening.retry(plain, message, 1, {}))
    patient = world.multi(client, "t", "patient", start="earliest", type="shared", retry=True)
    face = world.face(patient)
    taken = face.receive(1)
    world.do(client, lambda: opening.retry(patient, taken, 3, {"why": "busy"}))
    with pytest.raises(DeadlineError):
        face.receive(2.5)
    again = face.receive(1)
    assert (again.body, again.properties["why"]) == (b"0", "busy")


def test_seeking_to_the_beginning(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s")
    world.send(world.producer(client, "t"), b"0")
    assert world.take(consumer) == [b"0"]
    world.do(client, lambda: opening.seek(consumer, world.impl.pulsar.EARLIEST))
    assert world.take(consumer) == [b"0"]


def test_names_of_topics(world: PulsarWorld) -> None:
    client = world.client()
    for name in ("orders-1", "orders-2", "other"):
        world.producer(client, name)
    found = world.do(client, lambda: opening.topics(client, "orders-.*", None))
    assert found == ["persistent://public/default/orders-1", "persistent://public/default/orders-2"]

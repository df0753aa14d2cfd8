"""Consumers of all topics that match: found at the start, later, and by the broker's word; forgotten when they go."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mqclient.broker.pulsar import session as session_module
from mqclient.errors import ClosedError, ConfigError
from mqclient.pulsar import opening, subscribing
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.multi import MultiConsumer
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.pattern import Pattern
from tests.support.pulsar_world import PulsarWorld, command_class


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def local(consumer: MultiConsumer) -> list[str]:
    return sorted(topic.rpartition("/")[2] for topic in consumer.topics)


def send(world: PulsarWorld, topic: str, *bodies: bytes) -> None:
    client = world.client()
    world.sender(world.producer(client, topic)).send_many(bodies)
    world.do(client, lambda: opening.close(client))


def take(world: PulsarWorld, consumer: MultiConsumer) -> list[bytes]:
    world.world.run()
    return sorted(message.body for message in world.face(consumer)._take_many(1000))


@pytest.mark.parametrize(
    ("pattern", "topic", "expected"),
    [
        ("orders-.*", "orders-1", True),
        ("orders-.*", "new-orders-1", False),
        ("orders", "orders-1", False),
        ("public/default/.*", "orders", True),
        ("persistent://public/default/.*", "orders", True),
        ("persistent://public/default/.*", "non-persistent://public/default/orders", False),
        ("public/default/.*", "non-persistent://public/default/orders", True),
        ("public/default/.*", "other/default/orders", False),
        (".*", "__change_events", False),
        ("ORDERS", "orders", False),
        ("(?i)ORDERS", "orders", True),
    ],
)
def test_what_matches(pattern: str, topic: str, expected: bool) -> None:
    assert Pattern(re.compile(pattern)).matches(TopicName.parse(topic)) == expected
    assert Pattern(re.compile("ORDERS", re.IGNORECASE)).matches(TopicName.parse("orders"))


@pytest.mark.parametrize("pattern", ["a/b", "pers.*://public/.*/orders", "public//x", re.compile(b"orders")])
def test_what_is_no_pattern(pattern: Any) -> None:
    with pytest.raises(ConfigError, match="pattern"):
        Pattern(re.compile(pattern))


def test_topics_that_match(world: PulsarWorld) -> None:
    client = world.client()
    for topic in ("orders-1", "orders-2", "other"):
        send(world, topic, b"old")
    world.door.topics.partition(TopicName.parse("orders-parts"), 2)
    consumer = world.multi(client, re.compile("orders-.*"), "s", start="earliest")
    assert local(consumer) == ["orders-1", "orders-2", "orders-parts-partition-0", "orders-parts-partition-1"]
    assert consumer.topic == "public/default/orders-.*"
    send(world, "orders-parts-partition-1", b"part")
    assert take(world, consumer) == [b"old", b"old", b"part"]


def test_a_new_topic_is_seen_within_its_period(world: PulsarWorld) -> None:
    client = world.client()
    consumer = world.multi(client, re.compile("orders-.*"), "s", pattern_period=10)
    assert consumer.topics == []
    send(world, "orders-1", b"before we knew")
    world.door.topics.partition(TopicName.parse("orders-parts"), 1)
    world.world.advance(10.5)
    assert take(world, consumer) == [b"before we knew"]
    world.door.topics.partition(TopicName.parse("orders-parts"), 2)
    world.world.advance(10.5)
    assert local(consumer) == ["orders-1", "orders-parts-partition-0", "orders-parts-partition-1"]


def test_a_topic_that_cannot_be_opened_keeps_none_away(world: PulsarWorld, caplog: pytest.LogCaptureFixture) -> None:
    client = world.client()
    consumer = world.multi(client, re.compile("orders-.*"), "s", pattern_period=10)
    world.control.answer("SUBSCRIBE", ServerError.AuthorizationError, "not you", times=1)
    send(world, "orders-1")
    world.world.run()
    assert len(consumer.topics) == 0
    assert "cannot consume" in caplog.text
    send(world, "orders-2")
    world.world.advance(10.5)
    assert local(consumer) == ["orders-1", "orders-2"]


def test_a_topic_that_goes_is_forgotten(world: PulsarWorld) -> None:
    client = world.client()
    send(world, "orders-1")
    send(world, "orders-2")
    consumer = world.multi(client, re.compile("orders-.*"), "s", pattern_period=10)
    gone = world.door.topics.get("orders-1")
    assert gone is not None
    world.door.topics.forget(gone)
    world.world.advance(10.5)
    assert local(consumer) == ["orders-2"]
    send(world, "orders-1", b"again")
    world.world.advance(10.5)
    assert take(world, consumer) == [b"again"]


def test_one_that_is_refused_for_good_is_looked_for_again(world: PulsarWorld) -> None:
    client = world.client()
    send(world, "orders-1")
    consumer = world.multi(client, re.compile("orders-.*"), "s", pattern_period=30)
    world.control.answer("SUBSCRIBE", ServerError.TopicNotFound, "gone", times=1)
    world.cut()
    world.world.advance(5)
    assert consumer.topics == []
    world.world.advance(30)
    assert local(consumer) == ["orders-1"]


class Watching:
    """A broker that has watchers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.watchers: dict[int, Any] = {}
        self.refuse = False
        monkeypatch.setitem(session_module.HANDLERS, 64, self.watch)
        monkeypatch.setitem(session_module.HANDLERS, 67, self.close)

    def watch(self, session: Any, request: Any) -> None:
        if self.refuse:
            fields = {"error": ServerError.NotAllowedError, "message": "no watchers"}
            session.send(14, "CommandError", request_id=request.request_id, **fields)
            return
        self.watchers[request.watcher_id] = session
        session.send(
            65,
            "CommandWatchTopicListSuccess",
            request_id=request.request_id,
            watcher_id=request.watcher_id,
            topics_hash="",
        )

    def close(self, session: Any, request: Any) -> None:
        self.watchers.pop(request.watcher_id)

    def tell(self) -> None:
        for watcher_id, session in self.watchers.items():
            session.send(66, "CommandWatchTopicUpdate", watcher_id=watcher_id, topics_hash="x")


@pytest.fixture
def watching(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> Watching:
    def connected(session: Any, request: Any) -> None:
        plain(session, request)

    plain = session_module.HANDLERS[2]
    monkeypatch.setitem(session_module.HANDLERS, 2, connected)
    send_plain = session_module.Session.send

    def send_more(self: Any, number: int, name: str, **fields: Any) -> None:
        if number == 3:
            fields["feature_flags"] = {"supports_topic_watchers": True}
        send_plain(self, number, name, **fields)

    monkeypatch.setattr(session_module.Session, "send", send_more)
    assert command_class(66) is not None
    return Watching(monkeypatch)


def test_the_brokers_word_makes_it_look_at_once(world: PulsarWorld, watching: Watching) -> None:
    client = world.client()
    consumer = world.multi(client, re.compile("orders-.*"), "s")
    assert len(watching.watchers) == 1
    send(world, "orders-1", b"new")
    watching.tell()
    watching.tell()  # during the look that the first one began: it is made once more
    world.world.run()
    assert take(world, consumer) == [b"new"]
    world.cut()
    watching.watchers.clear()
    world.world.advance(61)  # a new connection has a new watcher after the next look
    assert len(watching.watchers) == 1
    world.face(consumer).close()
    assert watching.watchers == {}
    with pytest.raises(ClosedError):
        world.face(consumer).receive(1)


def test_a_watcher_refused_leaves_the_period(world: PulsarWorld, watching: Watching) -> None:
    watching.refuse = True
    client = world.client()
    consumer = world.multi(client, re.compile("orders-.*"), "s", pattern_period=10)
    send(world, "orders-1", b"new")
    world.world.advance(11)
    assert take(world, consumer) == [b"new"]


def test_what_is_refused(world: PulsarWorld) -> None:
    client = world.client()
    pattern = re.compile("persistent://public/default/orders-.*")
    with pytest.raises(ConfigError, match="finds no topic"):
        world.multi(client, pattern, "s", pattern_mode="non_persistent")
    with pytest.raises(ConfigError, match="the modes are"):
        world.multi(client, pattern, "s", pattern_mode="some")
    with pytest.raises(ConfigError, match="pattern_period"):
        world.multi(client, pattern, "s", pattern_period=0)
    with pytest.raises(ConfigError, match="stands alone"):
        world.multi(client, ["orders", pattern], "s")
    with pytest.raises(ConfigError, match="a reader reads"):
        world.ask(client, lambda: subscribing.open_reader(client, pattern, "earliest", {}, None))

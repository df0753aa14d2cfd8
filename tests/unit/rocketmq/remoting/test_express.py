"""The short way: what a lane does in one call is a send like any other, and so is what it leaves to the engine."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.core.hooking import TraceContext
from mqclient.errors import ConfigError, LinkError
from mqclient.rocketmq.codes import BrokerError
from mqclient.rocketmq.model import Message
from mqclient.rocketmq.remoting import express
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from mqclient.rocketmq.remoting.sending import LARGE
from tests.unit.rocketmq.remoting.cluster import VirtualClient, VirtualCluster


class Catcher:
    """Who gets an answer in the place of a lane."""

    def __init__(self) -> None:
        self.frame: Any = None
        self.error: Any = None

    def on_reply(self, frame: Any) -> None:
        self.frame = frame

    def on_failure(self, error: BaseException) -> None:
        self.error = error


class VirtualLane:
    """The native lane's manners, in a world without sockets. `meanwhile` happens while it waits."""

    able = True

    def __init__(self, late: Callable[[Any], Any]) -> None:
        self.late = late
        self.landed = 0
        self.under_way: set[Any] = set()
        self.open = True
        self.waits = True
        self.meanwhile: Callable[[], None] = lambda: None
        self.driver: Any = None

    def exchange(self, crossing: Any, frame: bytes, count: int = 1) -> Any:
        if not self.open:
            return None
        link, catcher = crossing.passage.link, Catcher()
        self.under_way.add(crossing)
        with self.driver.enter():
            link.inflight.add(crossing.opaque, catcher, float("inf"), "caught")
            link.write(frame)
        self.meanwhile()
        if not self.waits:
            with self.driver.enter():
                link.inflight._slots.pop(crossing.opaque, None)
        else:
            self.driver.world.until(lambda: catcher.frame is not None or getattr(crossing.slot, "done", False))
        self.under_way.discard(crossing)
        if catcher.frame is not None and not catcher.frame.code and crossing.slot is None:
            self.landed += count
            crossing_answered(crossing)
            return catcher.frame
        slot = self.late(crossing)
        if catcher.frame is not None:
            with self.driver.enter():
                link.inflight.complete(crossing.opaque, catcher.frame)
        return slot


def crossing_answered(crossing: Any) -> None:
    crossing.take("answered")


class Rig:
    """A producer whose threads wait alone."""

    def __init__(self, codec: Any, monkeypatch: pytest.MonkeyPatch, brokers: int = 1, **options: Any) -> None:
        self.cluster = VirtualCluster(codec, brokers=brokers)
        self.cluster.world.mono = time.monotonic()  # as the ferry has it
        self.cluster.topic("orders", 4)
        monkeypatch.setattr(codec.remoting, "Lane", VirtualLane)
        self.client: VirtualClient = self.cluster.client()
        driver: Any = self.client.driver
        self.closed_to: set[str] = set()
        driver.passage = self.passage
        with driver.enter():
            engine: Any = ProducerEngine(self.client.engine, "producers", ProducerOptions(**options))
        self.engine = engine
        self.lane: Any = engine.express.lane
        self.lane.driver = driver

    def passage(self, link: Any) -> Any:
        if link.state != "open" or str(link.address) in self.closed_to:
            return None
        return SimpleNamespace(link=link, connection=link.handle, taken=False)

    @property
    def link(self) -> Any:
        """To the first broker."""
        host, port = self.cluster.broker.broker.host
        return self.engine.client.links[f"{host}:{port}"]

    def send(self, body: bytes = b"x", timeout: float | None = None, **more: Any) -> Any:
        return self.engine.at_once(Message("orders", body, **more), None, None, timeout)

    def send_many(self, *messages: Message) -> Any:
        return self.engine.many_at_once(list(messages), None, None)

    def warm(self) -> None:
        """Routes are known and connections are there."""
        for _ in range(len(self.cluster.door.services)):
            self.client.produce(Message("orders", b"warm"))


@pytest.fixture
def rig(codec: Any, monkeypatch: pytest.MonkeyPatch) -> Rig:
    made = Rig(codec, monkeypatch)
    made.warm()
    return made


def test_each_has_its_receipt_and_the_queues_take_turns(rig: Rig) -> None:
    receipts = [rig.send(b"%d" % number) for number in range(8)]
    assert all(receipt.ok for receipt in receipts)
    assert set(Counter(receipt.queue.queue_id for receipt in receipts).values()) == {2}
    assert rig.engine.account()._asdict() == {"stored": 9, "weaker": 0, "failed": 0, "unknown": 0, "pending": 0}
    assert rig.engine.sendings == {}


def test_what_the_lane_does_not_take_keeps_its_turn(rig: Rig) -> None:
    first = rig.send().queue.queue_id
    rig.lane.open = False
    assert rig.send() is None
    (receipt,) = rig.client.produce(Message("orders", b"x"))
    assert receipt.queue.queue_id == (first + 1) % 4


@pytest.mark.parametrize(
    "why", ["closed", "unknown", "hurried", "ailing", "large", "awake", "taken", "keyed", "placed"]
)
def test_what_takes_the_long_way(rig: Rig, why: str) -> None:
    timeout, body, key, queue = None, b"x", None, None
    if why == "closed":
        with rig.client.driver.enter():
            rig.engine.close()
    elif why == "unknown":
        rig.engine.client.routes._routes.clear()
    elif why == "hurried":
        timeout = express.TIMELY / 2
    elif why == "ailing":
        rig.engine.faults.failed("broker-a", rig.cluster.world.mono)
    elif why == "large":
        body = Random(1).randbytes(LARGE)
    elif why == "awake":
        rig.closed_to.update(rig.engine.client.links)
    elif why == "taken":
        assert rig.send().ok
        rig.engine.express.board(str(rig.link.address)).taken = True
    elif why == "keyed":
        key = "k"
    else:
        queue = rig.send().queue
    sent = rig.cluster.control.count("SEND_MESSAGE_V2")
    assert rig.engine.at_once(Message("orders", body), key, queue, timeout) is None
    many = [Message("orders", body), Message("orders", body)]
    if why != "placed":
        assert rig.engine.many_at_once(many, None if key is None else lambda message: key, timeout) is None
    assert rig.cluster.control.count("SEND_MESSAGE_V2") == sent


@pytest.mark.parametrize(
    "given",
    [
        (),
        [Message("orders", b"x")],
        (Message("orders", b"x"), Message("orders", b"y")),
        [Message("orders", b"x"), "no message"],
        ["no message", Message("orders", b"x")],
        [Message("orders", b"x"), Message("others", b"x")],
        [Message("orders", b"x"), Message("orders", b"x", delay_level=1)],
        [Message("orders", b"x"), Message("orders", b"")],
        [Message("orders", b"x"), Message("orders", bytearray(b"x"))],
        [Message("orders", bytearray(b"x")), Message("orders", b"x")],
        [Message("orders", b"x"), Message("orders", bytes(LARGE - 40))],
        [Message("orders", b"x"), Message("orders", bytes(LARGE))],
        [Message("orders", bytes(LARGE // 2))] * 2,
    ],
)
def test_many_that_take_the_long_way(rig: Rig, given: Any) -> None:
    assert rig.engine.many_at_once(given, None, None) is None
    assert rig.lane.landed == 0


@pytest.mark.parametrize(
    "more",
    [{"delay_level": 1}, {"tag": "t"}, {"keys": ["a", "b"]}, {"properties": {"p": "1"}}, {"flag": 7}],
)
def test_what_needs_other_care_goes_this_way_too(rig: Rig, more: dict[str, Any]) -> None:
    assert rig.send(**more).ok
    assert rig.lane.landed == 1


def test_what_is_wrong_with_a_message_is_told(rig: Rig) -> None:
    for wrong, told in (({"body": b""}, "empty"), ({"properties": {"UNIQ_KEY": "1"}}, "UNIQ_KEY")):
        given: Any = {"body": b"x", **wrong}
        with pytest.raises(ConfigError, match=told):
            rig.send(**given)
    assert rig.engine.at_once("no message", None, None, None) is None
    with pytest.raises(TypeError):
        rig.engine.at_once(Message("orders", b"x"), None, None, "soon")


def test_hooks_that_add_are_asked(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(codec, monkeypatch, hooks=[TraceContext()])
    rig.warm()
    receipt = rig.send()
    assert rig.lane.landed == 1
    views, _ = rig.cluster.broker.broker.topics["orders"].queue(receipt.queue.queue_id).log.read(0, 99, 1 << 20)
    found = [message.properties for message in codec.remoting.decode_messages(b"".join(views))]
    assert all(one["traceparent"] for one in found)
    assert rig.send_many(Message("orders", b"x"), Message("orders", b"y")) is None


@pytest.mark.parametrize("option", [{"message_trace": True}, {"rate_limit": 5.0}])
def test_where_each_send_has_more_to_it(codec: Any, option: dict[str, Any]) -> None:
    cluster = VirtualCluster(codec)
    client = cluster.client()
    with client.driver.enter():
        assert ProducerEngine(client.engine, "p", ProducerOptions(**option)).express is None


def test_the_pure_build_and_virtual_drivers_have_none(codec: Any) -> None:
    client = VirtualCluster(codec).client()
    with client.driver.enter():
        assert ProducerEngine(client.engine, "p").express is None


def test_a_refusal_goes_on_with_another_broker(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(codec, monkeypatch, brokers=2)
    rig.warm()
    rig.cluster.control.answer("SEND_MESSAGE_V2", 2, "[TIMEOUT_CLEAN_QUEUE]", times=1)
    before = rig.cluster.control.count("SEND_MESSAGE_V2")
    assert rig.send().ok
    assert rig.cluster.control.count("SEND_MESSAGE_V2") == before + 2
    account = rig.engine.account()
    assert (account.stored, account.pending) == (3, 0)


def test_a_refusal_that_stays_is_raised(rig: Rig) -> None:
    rig.cluster.control.answer("SEND_MESSAGE_V2", 16, "No permission", times=9)
    with pytest.raises(BrokerError, match="No permission"):
        rig.send()
    assert rig.engine.account().failed == 1


def test_an_answer_that_takes_its_time(rig: Rig) -> None:
    """The lane gives up; whoever waits has the answer from the engine."""
    rig.lane.waits = False
    assert rig.send().ok
    account = rig.engine.account()
    assert (account.stored, account.pending, rig.lane.landed) == (2, 0, 0)


def test_a_connection_that_is_lost_meanwhile(codec: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(codec, monkeypatch, attempts=1)
    rig.warm()
    rig.lane.waits = False
    link = rig.link
    rig.cluster.control.drop("SEND_MESSAGE_V2", times=99)

    def lose() -> None:
        link.handle.link = None
        link.handle = None
        with rig.client.driver.enter():
            link.on_lost(ConnectionResetError("reset"))

    rig.lane.meanwhile = lose
    with pytest.raises(LinkError) as caught:
        rig.send()
    assert caught.value.outcome_unknown
    assert rig.engine.account().unknown == 1


def test_a_route_that_changes_says_anew_where_brokers_are(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    tells = rig.engine.client.sending_address

    def sending_address(broker: str) -> str:
        asked.append(broker)
        address: str = tells(broker)
        return address

    monkeypatch.setattr(rig.engine.client, "sending_address", sending_address)
    for _ in range(3):
        assert rig.send().ok
    assert asked == ["broker-a"], "it is looked up once"
    with rig.client.driver.enter():
        rig.engine.client.routes.on_change[0]("orders")
    assert rig.send().ok
    assert asked == ["broker-a"] * 2


def test_a_connection_that_came_back_is_another_one(rig: Rig) -> None:
    assert rig.send().ok
    link = rig.link
    address, old = str(link.address), link.handle
    first = rig.engine.express.board(address)
    old.link = None
    assert rig.engine.express.board(address) is not first
    old.link = link
    assert rig.send().ok


def test_flush_waits_for_what_is_under_way(rig: Rig) -> None:
    flushed = []

    def flush() -> None:
        assert rig.engine.account().pending == 1
        with rig.client.driver.enter():
            flushed.append(rig.engine.flush())
        assert not flushed[0].done
        assert rig.engine.account().pending == 1

    rig.lane.meanwhile = flush
    assert rig.send().ok
    assert flushed[0].done
    assert rig.engine.account()._asdict() == {"stored": 2, "weaker": 0, "failed": 0, "unknown": 0, "pending": 0}


def test_many_as_one_request(rig: Rig) -> None:
    messages = [Message("orders", b"%d" % number) for number in range(5)]
    receipts = rig.send_many(*messages)
    assert len({receipt.message_id for receipt in receipts}) == 5
    assert [receipt.offset for receipt in receipts] == list(range(receipts[0].offset, receipts[0].offset + 5))
    assert rig.engine.account().stored == 6
    rig.lane.open = False
    assert rig.send_many(*messages) is None


def test_many_whose_answer_takes_its_time(rig: Rig) -> None:
    rig.lane.waits = False
    receipts = rig.send_many(Message("orders", b"1"), Message("orders", b"2"))
    assert [receipt.ok for receipt in receipts] == [True, True]
    assert rig.engine.account()._asdict() == {"stored": 3, "weaker": 0, "failed": 0, "unknown": 0, "pending": 0}


def test_an_error_of_many_is_an_outcome(rig: Rig) -> None:
    rig.cluster.control.answer("SEND_BATCH_MESSAGE", 16, "No permission", times=9)
    outcomes = rig.send_many(Message("orders", b"1"), Message("orders", b"2"))
    assert [type(outcome) for outcome in outcomes] == [BrokerError] * 2


def test_a_topic_is_charted_once_it_was_sent_to(rig: Rig) -> None:
    rig.cluster.topic("new", 2)
    assert rig.engine.at_once(Message("new", b"x"), None, None, None) is None
    rig.client.produce(Message("new", b"x"))
    assert rig.engine.at_once(Message("new", b"x"), None, None, None).ok
    courses = rig.engine.express.ferry.courses
    assert [berth.queue.queue_id for berth in courses["new"]] == [0, 1]
    with rig.client.driver.enter():
        rig.engine.client.routes.on_change[0]("new")
    assert courses == {}


def test_not_more_topics_than_so_many_are_charted(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(express, "MOST_COURSES", 1)
    assert rig.send().ok
    rig.cluster.topic("new", 2)
    rig.client.produce(Message("new", b"x"))
    assert rig.engine.at_once(Message("new", b"x"), None, None, None).ok
    assert list(rig.engine.express.ferry.courses) == ["new"]
    assert rig.send().ok


def test_a_forked_child_has_a_way_of_its_own(rig: Rig) -> None:
    old = rig.engine.express
    with rig.client.driver.enter():
        rig.engine.on_fork()
    assert rig.engine.express is not old
    assert rig.engine.account().stored == 0

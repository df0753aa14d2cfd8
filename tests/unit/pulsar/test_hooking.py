"""Hooks of Pulsar's producers and listeners: what they see, what travels, what is told when."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mqclient.core.hooking import TraceContext, traceparent
from mqclient.core.slot import Slot
from mqclient.errors import ConfigError, DeadlineError
from mqclient.hooks import Consumed, Sent
from mqclient.pulsar.hooking import Outgoing
from mqclient.pulsar.schema import STRING
from tests.support.pulsar_world import PulsarWorld
from tests.unit.pulsar.test_listening import Awaited, Tasks

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Hook:
    """Notes what it sees; puts a number into each message."""

    def __init__(self) -> None:
        self.before: list[Outgoing] = []
        self.sent: list[Sent] = []
        self.around: list[Any] = []
        self.consumed: list[Consumed] = []

    def before_send(self, message: Any, properties: dict[str, str]) -> None:
        self.before.append(message)
        properties["number"] = str(len(self.before))

    def after_send(self, sent: Sent) -> None:
        self.sent.append(sent)

    @contextmanager
    def around_consume(self, messages: Any) -> Iterator[None]:
        self.around.append(messages[0].body)
        yield
        self.around.append("left")

    def after_consume(self, consumed: Consumed) -> None:
        self.consumed.append(consumed)


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def received(world: PulsarWorld, count: int, topic: str = "t") -> list[Any]:
    consumer = world.face(world.consumers(world.client(), topic, "s", start="earliest"))
    return [consumer.receive(5) for _ in range(count)]


@pytest.mark.parametrize("batching", [True, False, "key"])
@pytest.mark.parametrize("partitions", [0, 2])
def test_each_message_may_get_properties(world: PulsarWorld, batching: Any, partitions: int) -> None:
    hook = Hook()
    if partitions:
        world.rest("PUT", "persistent/public/default/t/partitions", partitions)
    sender = world.sender(world.producer(world.client(), "t", batching=batching, hooks=[hook]))
    sender.send(b"1", key="k", properties={"own": "o"}, event_time=5)
    sender.send_many([b"2", (b"3", b"\x00\xff"), {"body": None, "deliver_after": 0}])
    sender.submit(b"5").result(5)
    assert [(one.body, one.key, dict(one.properties), one.event_time) for one in hook.before] == [
        (b"1", "k", {"own": "o"}, 5),
        (b"2", None, {}, 0),
        (b"3", b"\x00\xff", {}, 0),
        (None, None, {}, 0),
        (b"5", None, {}, 0),
    ]
    assert hook.before[0].topic == "persistent://public/default/t"
    got = {message.properties["number"]: message for message in received(world, 5)}
    assert got["1"].properties["own"] == "o"
    assert (got["1"].key, got["3"].body, got["4"].body, got["4"].null_value) == ("k", b"3", b"", True)
    assert sum(len(sent.message_ids) for sent in hook.sent) == 5


def test_each_entry_is_told_with_its_outcome(world: PulsarWorld) -> None:
    hook = Hook()
    client = world.client()
    sender = world.sender(world.producer(client, "t", name="p", hooks=[hook]))
    sender.send_many([b"%d" % number for number in range(10)])
    [told] = hook.sent
    assert (told.topic, told.group, told.status, told.error) == ("persistent://public/default/t", "p", "STORED", None)
    assert len(set(told.message_ids)) == 10
    assert told.size > 10
    assert told.seconds >= 0
    assert told.broker == "broker:6650"


def test_what_failed_is_told(world: PulsarWorld) -> None:
    hook = Hook()
    client = world.client()
    sender = world.sender(world.producer(client, "t", hooks=[hook], send_timeout=2))
    with pytest.raises(ConfigError):
        sender.send(bytes(6 << 20))
    world.control.drop("SEND")
    with pytest.raises(DeadlineError):
        sender.send(b"x")
    large, lost = hook.sent
    assert (large.message_ids, large.status, type(large.error)) == ([], "", ConfigError)
    assert (lost.message_ids, lost.status, type(lost.error), round(lost.seconds)) == ([], "", DeadlineError, 2)


def test_what_was_there_already_is_told(world: PulsarWorld) -> None:
    hook = Hook()
    world.rest("POST", "namespaces/public/default/deduplication", True)
    sender = world.sender(world.producer(world.client(), "t", name="p", hooks=[hook]))
    sender.send(b"x", sequence_id=5)
    sender.send(b"x", sequence_id=5)
    assert [told.status for told in hook.sent] == ["STORED", "DUPLICATE"]


def test_a_schema_and_a_routing_function_go_with_hooks(world: PulsarWorld) -> None:
    hook = Hook()
    world.rest("PUT", "persistent/public/default/t/partitions", 3)
    seen: list[Any] = []

    def route(key: str | None, properties: Any, count: int) -> int:
        seen.append(dict(properties))
        return 1

    sender = world.sender(world.producer(world.client(), "t", schema=STRING, routing=route, hooks=[hook]))
    sender.send("hello")
    assert hook.before[0].body == b"hello"
    assert seen == [{"number": "1"}]


def test_a_listener_continues_the_trace(world: PulsarWorld) -> None:
    traces: list[str | None] = []
    hook = Hook()
    client = world.client()
    world.consumer(
        client, "t", "s", listener=lambda message: traces.append(traceparent.get()), hooks=[TraceContext(), hook]
    )
    token = traceparent.set(PARENT)
    world.sender(world.producer(client, "t", hooks=[TraceContext()])).send_many([b"1", b"2"])
    traceparent.reset(token)
    world.world.advance(1)
    assert len({*traces}) == 2
    assert all(trace is not None and trace.startswith(PARENT[:36]) for trace in traces)
    assert hook.around == [b"1", "left", b"2", "left"]
    assert [(one.topic, one.group, one.messages[0].body, one.error) for one in hook.consumed] == [
        ("persistent://public/default/t", "s", b"1", None),
        ("persistent://public/default/t", "s", b"2", None),
    ]


def test_without_listening_hooks_nothing_is_timed(world: PulsarWorld) -> None:
    traces: list[bytes] = []
    client = world.client()
    world.consumer(client, "t", "s", listener=lambda message: traces.append(message.body), hooks=[TraceContext()])
    world.sender(world.producer(client, "t")).send(b"1")
    world.world.advance(1)
    assert traces == [b"1"]


def test_a_handler_that_fails_is_told(world: PulsarWorld) -> None:
    hook = Hook()

    def handle(message: Any) -> None:
        raise ValueError("not yet")

    client = world.client()
    world.consumer(client, "t", "s", listener=handle, hooks=[hook], type="shared")
    world.sender(world.producer(client, "t")).send(b"1")
    world.world.advance(1)
    assert [str(one.error) for one in hook.consumed] == ["not yet"]


def test_coroutines_are_told_when_they_end(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    hook = Hook()
    gates: dict[bytes, Slot[None]] = {}

    async def handle(message: Any) -> None:
        gates[message.body] = Slot()
        await Awaited(gates[message.body])

    client = world.client()
    tasks = Tasks(world, client, monkeypatch)
    world.consumer(client, "t", "s", listener=handle, hooks=[hook], threads=2, type="shared")
    world.sender(world.producer(client, "t")).send_many([b"1", b"2"])
    world.world.advance(1)
    assert hook.consumed == []
    tasks.end(gates[b"2"])
    tasks.end(gates[b"1"], ValueError("not yet"))
    world.world.run()
    assert [(one.messages[0].body, str(one.error)) for one in hook.consumed] == [(b"2", "None"), (b"1", "not yet")]


def test_mistakes(world: PulsarWorld) -> None:
    client = world.client()
    with pytest.raises(ConfigError, match="neither before_send"):
        world.producer(client, "t", hooks=[object()])
    with pytest.raises(ConfigError, match="around_consume"):
        world.consumer(client, "t", "s", hooks=[object()], listener=print)
    with pytest.raises(ConfigError, match="hooks see the calls of a listener"):
        world.consumer(client, "t", "s", hooks=[TraceContext()])

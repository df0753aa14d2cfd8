"""Listeners in virtual time: how many at once, in which order, what returning and raising mean, and how they end."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.errors import ConfigError
from mqclient.pulsar import listening, opening
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.listening import Listening
from tests.support.pulsar_world import PulsarWorld, single


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def send(world: PulsarWorld, *messages: Any, topic: str = "t", **options: Any) -> None:
    client = world.client()
    world.sender(world.producer(client, topic, **options)).send_many(list(messages))
    world.do(client, lambda: opening.close(client))


def listener(engine: Any) -> Listening:
    assert engine.listening is not None
    found: Listening = engine.listening
    return found


@pytest.mark.parametrize("row", [1, 3, 1000])
@pytest.mark.parametrize("queue", [0, 1, 5, 100])
def test_every_message_once_and_in_order(
    world: PulsarWorld, monkeypatch: pytest.MonkeyPatch, queue: int, row: int
) -> None:
    monkeypatch.setattr(listening, "_IN_A_ROW", row)
    seen: list[bytes] = []
    client = world.client()
    consumer = world.consumer(
        client, "t", "s", receiver_queue=queue, listener=lambda message: seen.append(message.body)
    )
    sent = [b"%d" % number for number in range(30)]
    send(world, *sent[:10], batching=False)
    send(world, *sent[10:20])
    send(world, *sent[20:], batching=False)
    world.world.advance(1)
    assert seen == sent
    assert listener(consumer).diagnose() == {"handled": 30, "failed": 0, "running": 0, "parked": 0}
    if queue:
        world.settled(consumer)
    with pytest.raises(ConfigError, match="messages go to the listener"):
        world.face(consumer).receive(1)
    world.face(consumer).close()
    left = world.consumer(client, "t", "s")
    world.world.run()
    assert len(left.mailbox) == 0


def test_raising_refuses(world: PulsarWorld, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[tuple[bytes, int]] = []

    def handle(message: Any) -> None:
        seen.append((message.body, message.redeliveries))
        if message.body == b"1" and message.redeliveries < 2:
            raise ValueError("not yet")

    client = world.client()
    consumer = world.consumer(client, "t", "s", type="shared", listener=handle, nack_delay=1)
    send(world, b"0", b"1", b"2", batching=False)
    world.world.advance(5)
    assert seen == [(b"0", 0), (b"1", 0), (b"2", 0), (b"1", 1), (b"1", 2)]
    assert "not yet" in caplog.text
    assert (listener(consumer).handled, listener(consumer).failed) == (3, 2)
    world.settled(consumer)


class Handlers:
    """Handlers that take as long as a test wants; the fake driver awaits nothing, so the test ends them."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.gates: dict[bytes, Slot[None]] = {}

    def __call__(self, message: Any) -> Any:
        self.begun.append(message)
        gate = self.gates[message.body] = Slot()
        return Awaited(gate)

    @property
    def bodies(self) -> list[bytes]:
        return [message.body for message in self.begun]


class Awaited:
    def __init__(self, gate: Slot[None]) -> None:
        self.gate = gate

    def __await__(self) -> Any:
        while not self.gate.done:
            yield self.gate
        return self.gate.result()


class Tasks:
    """Runs the coroutines that listeners give to the fake driver."""

    def __init__(self, world: PulsarWorld, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        self.running: list[Any] = []
        driver = client.driver
        plain = driver.run_user

        def run_user(call: Any, argument: Any) -> None:
            def start(argument: Any) -> None:
                outcome = call(argument)
                if outcome is not None:
                    self.running.append((copy_context(), outcome.__await__()))
                    self.step()

            plain(start, argument)

        monkeypatch.setattr(driver, "run_user", run_user)

    def step(self) -> None:
        for context, task in list(self.running):
            try:
                context.run(task.send, None)
            except StopIteration:
                self.running.remove((context, task))

    def end(self, gate: Slot[None], error: Exception | None = None) -> None:
        if error is None:
            gate.complete(None)
        else:
            gate.fail(error)
        self.step()
        self.world.world.run()


@pytest.fixture
def slow(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Handlers, Tasks]:
    client = world.client()
    return client, Handlers(), Tasks(world, client, monkeypatch)


def test_so_many_at_once_and_the_queue_holds(world: PulsarWorld, slow: Any) -> None:
    client, handlers, tasks = slow
    consumer = world.consumer(client, "t", "s", type="shared", listener=handlers, threads=3, receiver_queue=4)
    send(world, *[b"%d" % number for number in range(20)], batching=False)
    world.world.run()
    assert handlers.bodies == [b"0", b"1", b"2"]
    assert world.at_broker(consumer).unacked <= 3 + 4 + 2
    tasks.end(handlers.gates[b"1"])
    assert handlers.bodies == [b"0", b"1", b"2", b"3"]
    tasks.end(handlers.gates[b"0"], ValueError("no"))
    assert listener(consumer).failed == 1
    for number in range(2, 20):
        tasks.end(handlers.gates[b"%d" % number])
    assert listener(consumer).handled == 19
    world.settled(consumer)


def test_a_key_keeps_its_order(world: PulsarWorld, slow: Any) -> None:
    client, handlers, tasks = slow
    consumer = world.consumer(client, "t", "s", listener=handlers, threads=4, receiver_queue=50)
    send(world, *[(b"%d" % number, f"key-{number % 5}") for number in range(40)], batching=False)
    world.world.run()
    ended = 0
    while ended < 40:
        assert ended < len(handlers.begun), "a lane stands still"
        running = [message for message in handlers.begun if not handlers.gates[message.body].done]
        keys = [message.key for message in running]
        assert len(keys) == len(set(keys)), "two of one key at once"
        tasks.end(handlers.gates[running[-1].body])
        ended += 1
    for key in range(5):
        numbers = [int(message.body) for message in handlers.begun if message.key == f"key-{key}"]
        assert numbers == sorted(numbers)
        assert len(numbers) == 8
    world.settled(consumer)


def test_what_waits_for_a_busy_key_is_bounded(world: PulsarWorld, slow: Any) -> None:
    client, handlers, tasks = slow
    consumer = world.consumer(client, "t", "s", listener=handlers, threads=2, receiver_queue=4)
    send(world, *[(b"%d" % number, "one") for number in range(30)], batching=False)
    world.world.run()
    assert handlers.bodies == [b"0"]
    assert listener(consumer).diagnose()["parked"] <= 4
    for number in range(30):
        tasks.end(handlers.gates[b"%d" % number])
    assert handlers.bodies == [b"%d" % number for number in range(30)]
    world.settled(consumer)


@pytest.fixture
def hired(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[Any]]:
    """A client, and the calls for which it asked a thread."""
    client = world.client()
    hired: list[Any] = []
    plain = client.driver.run_user

    def run_user(call: Any, argument: Any) -> None:
        hired.append(call)
        plain(call, argument)

    monkeypatch.setattr(client.driver, "run_user", run_user)
    return client, hired


@pytest.mark.parametrize(("after", "hires"), [(listening._MOMENT / 2, 0), (listening._MOMENT * 2, 1)])
def test_a_thread_that_found_nothing_stays_for_a_moment(
    world: PulsarWorld, hired: Any, after: float, hires: int
) -> None:
    client, calls = hired
    seen: list[bytes] = []
    consumer = world.consumer(client, "t", "s", listener=lambda message: seen.append(message.body))
    before = 0

    def later(body: bytes) -> None:
        nonlocal before
        before = len(calls)
        send(world, body)

    world.world.at(world.world.mono + 1, lambda: send(world, b"0"))
    world.world.at(world.world.mono + 1 + after, lambda: later(b"1"))
    world.world.advance(3)
    assert seen == [b"0", b"1"]
    assert len(calls) - before == hires
    assert listener(consumer).diagnose() == {"handled": 2, "failed": 0, "running": 0, "parked": 0}
    world.settled(consumer)


def test_a_message_comes_when_the_moment_is_over(
    world: PulsarWorld, hired: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Sequence: the wait runs out of time, a message comes and makes the lane busy, the thread looks.
    client, calls = hired
    seen: list[bytes] = []
    consumer = world.consumer(client, "t", "s", listener=lambda message: seen.append(message.body))
    plain = client.driver.wait

    def wait(slot: Any, deadline: float | None = None) -> Any:
        try:
            return plain(slot, deadline)
        finally:
            if len(seen) == 1:
                send(world, b"1")

    monkeypatch.setattr(client.driver, "wait", wait)
    send(world, b"0")
    world.world.advance(1)
    assert seen == [b"0", b"1"]
    assert len(calls) == 1
    assert listener(consumer).running == 0
    world.settled(consumer)


def test_a_thread_that_stays_is_no_handler_that_runs(world: PulsarWorld, hired: Any) -> None:
    client, calls = hired
    reports: list[Any] = []
    consumer = world.consumer(client, "t", "s", listener=lambda _: None)
    begun = world.world.mono + 1

    def stop() -> None:
        assert listener(consumer).running == 0
        slot = world.ask(client, lambda: opening.stop(consumer, 10))
        slot.then(lambda done: reports.append((done.result(), world.world.mono)))

    world.world.at(begun, lambda: send(world, b"0"))
    world.world.at(begun + listening._MOMENT / 2, stop)
    world.world.advance(3)
    ((report, when),) = reports
    assert report == (1, 0, 0, 0)
    assert when < begun + listening._MOMENT
    assert len(calls) == 1


def test_a_thread_that_stays_goes_on_when_it_is_resumed(world: PulsarWorld, hired: Any) -> None:
    client, calls = hired
    seen: list[tuple[bytes, float]] = []
    consumer = world.consumer(
        client, "t", "s", listener=lambda message: seen.append((message.body, world.world.mono)), receiver_queue=1
    )
    face = world.face(consumer)
    begun = world.world.mono + 1
    world.world.at(begun, lambda: send(world, b"0"))
    world.world.at(begun + 0.001, face.pause)
    world.world.at(begun + 0.002, face.resume)
    world.world.at(begun + 0.003, lambda: send(world, b"1"))
    world.world.advance(3)
    assert [body for body, _ in seen] == [b"0", b"1"]
    assert seen[1][1] < begun + listening._MOMENT
    assert len(calls) == 1


def test_paused(world: PulsarWorld, slow: Any) -> None:
    client, handlers, tasks = slow
    consumer = world.consumer(client, "t", "s", type="shared", listener=handlers)
    send(world, b"0", b"1", b"2", batching=False)
    world.world.run()
    face = world.face(consumer)
    face.pause()
    tasks.end(handlers.gates[b"0"])
    assert handlers.bodies == [b"0"]
    face.resume()
    world.world.run()
    assert handlers.bodies == [b"0", b"1"]
    many = world.multi(client, ["a", "b"], "s", listener=handlers)
    world.face(many).pause()
    send(world, b"later", topic="a")
    world.world.run()
    assert b"later" not in handlers.bodies
    world.face(many).resume()
    world.world.run()
    assert b"later" in handlers.bodies


def test_closing_waits_for_handlers_and_tells_what_they_did(world: PulsarWorld, slow: Any) -> None:
    client, handlers, tasks = slow
    consumer = world.consumer(client, "t", "s", type="shared", listener=handlers)
    send(world, b"0", b"1", batching=False)
    world.world.run()
    closing = world.ask(client, lambda: opening.stop(consumer, 10))
    world.world.advance(5)
    assert not closing.done
    tasks.end(handlers.gates[b"0"])
    report = world.world.result(closing)
    assert report == (1, 0, 0, 1)
    again = world.consumer(client, "t", "s", type="shared")
    assert world.face(again).receive(1).body == b"1"


def test_the_grace_ends(world: PulsarWorld, slow: Any) -> None:
    client, handlers, _ = slow
    consumer = world.consumer(client, "t", "s", type="shared", listener=handlers, threads=2)
    send(world, b"0", batching=False)
    world.world.run()
    closing = world.ask(client, lambda: opening.stop(consumer, 10))
    world.world.advance(11)
    assert closing.result() == (0, 0, 1, 0)


def test_closed_by_its_own_handler(world: PulsarWorld) -> None:
    client = world.client()
    faces: list[Any] = []
    consumer = world.consumer(client, "t", "s", listener=lambda _: faces[0].close())
    faces.append(world.face(consumer))
    before = world.world.mono
    send(world, b"0", b"1", batching=False)
    world.world.advance(1)
    assert consumer.attachment.state == "closed"
    assert world.world.mono == before + 1
    assert listener(consumer).stopping.done


def test_ends_with_its_consumer(world: PulsarWorld, caplog: pytest.LogCaptureFixture) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", listener=print)
    world.control.answer("SUBSCRIBE", ServerError.TopicNotFound, "gone", times=1)
    world.cut()
    world.world.advance(5)
    assert listener(consumer).stopping.done
    assert "the listener ends" in caplog.text


def test_many_topics(world: PulsarWorld) -> None:
    seen: list[bytes] = []
    client = world.client()
    consumer = world.multi(client, ["a", "b"], "s", listener=lambda message: seen.append(message.body), threads=2)
    send(world, b"a", topic="a")
    send(world, b"b", topic="b")
    world.world.run()
    assert sorted(seen) == [b"a", b"b"]
    assert consumer.diagnose()["listener"]["handled"] == 2
    for child in single(consumer):
        world.settled(child)
    world.face(consumer).close()


def test_what_cannot_be_opened_ends_it(
    world: PulsarWorld, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = world.client()
    consumer = world.consumer(client, "t", "s", listener=print)

    def broken() -> Any:
        raise ImportError("no such library")

    monkeypatch.setattr(listener(consumer), "_take", broken)
    send(world, b"x")
    world.world.run()
    assert "no such library" in caplog.text
    assert listener(consumer).diagnose()["running"] == 0


def test_what_cannot_be(world: PulsarWorld) -> None:
    client = world.client()
    for given, text in (
        ({"listener": 5}, "is a function"),
        ({"listener": print, "threads": 0}, "at least 1"),
        ({"listener": print, "by_batch": True}, "for receiving"),
        ({"on_active": print}, "failover"),
        ({"queue_memory": -1}, "not negative"),
        ({"queue_memory": 1, "receiver_queue": 0}, "needs receiver_queue"),
    ):
        with pytest.raises(ConfigError, match=text):
            world.consumer(client, "t", "s", **given)
    with pytest.raises(ConfigError, match="a reader reads"):
        world.reader(client, "t", "earliest", listener=print)
    with pytest.raises(ConfigError, match="with a listener"):
        world.face(world.consumer(client, "t", "s")).run()


def test_who_is_active(world: PulsarWorld) -> None:
    told: list[tuple[str, str, bool]] = []
    client = world.client()
    members = [
        world.consumer(
            client,
            "t",
            "s",
            type="failover",
            name=name,
            on_active=lambda *event, name=name: told.append((name, *event)),
        )
        for name in "ab"
    ]
    world.world.advance(3)
    active = {name: event for name, _, event in told}
    assert sorted(active.values()) == [False, True]
    (first,) = [member for member in members if member.active]
    assert active[first.name]
    world.face(first).close()
    world.world.advance(3)
    other = "b" if first.name == "a" else "a"
    assert told[-1] == (other, "persistent://public/default/t", True)

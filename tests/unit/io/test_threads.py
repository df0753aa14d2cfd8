"""The threads driver over real sockets: entering, writing, borrowed reading, deadlines."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from mqclient.core.slot import Slot, Wake
from mqclient.errors import ClosedError, DeadlineError, LinkError
from mqclient.io import connection as connection_module
from mqclient.io import threads as threads_module
from mqclient.io.threads import ThreadsDriver
from mqclient.io.waiting import Waiter
from tests.support.calls import LONG, ask, in_threads
from tests.support.echo import EchoEngine, EchoServer

# ---- the way there and back


def test_request_and_reply(engine: EchoEngine) -> None:
    assert [ask(engine, b"%d" % number) for number in range(100)] == [b"%d" % number for number in range(100)]


def test_many_callers_each_get_their_own_reply(engine: EchoEngine) -> None:
    def caller(name: int) -> Callable[[], None]:
        def run() -> None:
            for number in range(300):
                body = b"%d:%d" % (name, number)
                assert ask(engine, body) == body

        return run

    in_threads(*(caller(name) for name in range(8)))


def test_the_order_of_entering_is_the_order_on_the_wire(server: EchoServer, engine: EchoEngine) -> None:
    def caller(name: int) -> Callable[[], list[Slot[bytes]]]:
        return lambda: [engine.submit(b"%d:%d" % (name, number), LONG) for number in range(2_000)]

    slots = in_threads(*(caller(name) for name in range(4)))
    driver = engine.driver
    assert isinstance(driver, ThreadsDriver)
    for slot in (slot for mine in slots for slot in mine):
        driver.wait(slot, driver.deadline(LONG))
    for name in range(4):
        mine = [body for body in server.received if body.startswith(b"%d:" % name)]
        assert mine == [b"%d:%d" % (name, number) for number in range(2_000)]


def test_large_frames_block_the_socket_and_the_reader_thread_finishes_them(engine: EchoEngine) -> None:
    bodies = [bytes([number]) * 3_000_000 for number in range(4)]

    def caller(body: bytes) -> Callable[[], None]:
        def run() -> None:
            assert ask(engine, body) == body

        return run

    in_threads(*(caller(body) for body in bodies))


def test_what_others_append_while_a_write_is_blocked_stays_behind_it(server: EchoServer, engine: EchoEngine) -> None:
    # Sequence: A swaps, its write is partial; B appends; A puts its rest back in front; the reader thread finishes.
    engine.link.usable  # noqa: B018 - the link exists
    slots = [engine.submit(b"A" * 4_000_000, LONG)]
    slots += [engine.submit(b"%d" % number, LONG) for number in range(100)]
    driver = engine.driver
    assert isinstance(driver, ThreadsDriver)
    for slot in slots:
        driver.wait(slot, driver.deadline(LONG))
    assert server.received[1:] == [b"%d" % number for number in range(100)]


def test_pushes_arrive_without_anybody_waiting(engine: EchoEngine) -> None:
    done = threading.Event()
    engine.on_push = lambda body: done.set() if body == b"999" else None
    ask(engine, b"push 1000")
    assert done.wait(LONG)
    assert engine.pushed == [b"%d" % number for number in range(1_000)]


# ---- entering


def test_entering_twice_is_an_error_and_does_not_hold_the_lock(driver: ThreadsDriver) -> None:
    def twice() -> None:
        with driver.enter():
            with pytest.raises(RuntimeError, match="inside the engine"), driver.enter():
                pass
            with pytest.raises(RuntimeError, match="inside the engine"):
                driver.wait(Slot())

    def elsewhere() -> bool:
        with driver.enter():
            return True

    in_threads(twice)
    assert in_threads(elsewhere) == [True]


def test_an_entry_that_ctrl_c_kept_from_leaving_is_left_by_the_next_one(driver: ThreadsDriver) -> None:
    # Sequence: the body of an entry ends, the signal comes before the first step of leaving. Only the main thread.
    told: list[str] = []
    driver.__enter__()
    driver.deliver(told.append, "from the first entry")
    with driver.enter():
        assert told == ["from the first entry"]
    driver.__enter__()
    with pytest.raises(DeadlineError):
        driver.wait(Wake(), driver.deadline(0.01))

    def elsewhere() -> bool:
        with driver.enter():
            return True

    assert in_threads(elsewhere) == [True]


def test_an_error_inside_leaves_the_engine_usable(engine: EchoEngine) -> None:
    with pytest.raises(ZeroDivisionError), engine.driver.enter():
        _ = 1 / 0
    assert ask(engine, b"x") == b"x"


def test_deliveries_come_after_leaving_in_order_and_once(driver: ThreadsDriver) -> None:
    told: list[int] = []

    def call(number: Any) -> None:
        assert not driver._lock._is_owned()  # type: ignore[attr-defined]
        told.append(number)

    with driver.enter():
        for number in range(5):
            driver.deliver(call, number)
        assert told == []
    assert told == list(range(5))


def test_a_failing_delivery_does_not_keep_the_others_from_waking_up(driver: ThreadsDriver) -> None:
    told: list[str] = []

    def fail(_: Any) -> None:
        raise ValueError("a bug")

    def both() -> None:
        with driver.enter():
            driver.deliver(fail, None)
            driver.deliver(told.append, "the other")

    with pytest.raises(ValueError, match="a bug"):
        both()
    assert told == ["the other"]


def test_end_of_turn_is_before_leaving_and_may_ask_again(driver: ThreadsDriver) -> None:
    told: list[str] = []

    def first() -> None:
        assert driver._lock._is_owned()  # type: ignore[attr-defined]
        told.append("first")
        driver.end_of_turn(lambda: told.append("second"))

    with driver.enter():
        driver.end_of_turn(first)
    assert told == ["first", "second"]


def test_one_caller_does_not_write_for_the_others_without_end(engine: EchoEngine) -> None:
    # Sequence: A writes; while it does, B appends again and again; after a few rounds A leaves the rest to the reader.
    ask(engine, b"x")
    handle: connection_module.Connection = engine.link.handle
    rounds = 0
    write = handle.write

    def slow_write(out: list[Any]) -> list[Any]:
        nonlocal rounds
        if threading.current_thread() is threading.main_thread():
            rounds += 1
            other = threading.Thread(target=engine.submit, args=(b"more", LONG))
            other.start()
            other.join()
        return write(out)

    handle.write = slow_write  # type: ignore[method-assign]
    ask(engine, b"mine")
    assert rounds == 8
    del handle.write
    assert ask(engine, b"after") == b"after"


# ---- timers and deadlines


def test_timers_fire_on_time(engine: EchoEngine) -> None:
    fired: list[float] = []
    done = threading.Event()
    with engine.driver.enter() as now:
        for delay in (0.15, 0.05, 0.1):
            engine.timers.at(now.mono + delay, lambda then: fired.append(then.mono))
        engine.timers.at(now.mono + 0.2, lambda _: done.set())
    assert done.wait(LONG)
    late = [then - (now.mono + delay) for then, delay in zip(fired, (0.05, 0.1, 0.15), strict=True)]
    assert all(0 <= one < 1.0 for one in late), late


def test_only_an_earlier_alarm_wakes_the_reader(engine: EchoEngine) -> None:
    ask(engine, b"x")
    driver = engine.driver
    assert isinstance(driver, ThreadsDriver)
    reader = driver._reader
    assert reader is not None
    with driver.enter() as now:
        engine.timers.at(now.mono + 30, lambda _: None)
    time.sleep(0.05)  # now it sleeps until then
    rung: list[float] = []
    ring = reader._bell.ring
    reader._bell.ring = lambda: (rung.append(0), ring())[1]  # type: ignore[method-assign, func-returns-value]
    with driver.enter() as now:
        driver.arm(now.mono + 60)
        assert rung == []
        engine.timers.at(now.mono + 10, lambda _: None)
    assert len(rung) == 1


def test_a_failing_timer_does_not_stop_those_after_it(engine: EchoEngine, caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def fail(_: Any) -> None:
        raise ValueError("a bug in a timer")

    with engine.driver.enter() as now:
        engine.timers.at(now.mono + 0.01, fail)
        engine.timers.at(now.mono + 0.01, lambda _: done.set())
    assert done.wait(LONG)
    assert "a bug in a timer" in caplog.text


def test_the_deadline_of_a_request_is_told_with_its_name(engine: EchoEngine) -> None:
    start = time.monotonic()
    with pytest.raises(DeadlineError, match="ECHO"):
        ask(engine, b"silent", timeout=0.2)
    assert 0.19 < time.monotonic() - start < 5


def test_a_wait_with_its_own_deadline(driver: ThreadsDriver) -> None:
    slot: Slot[None] = Wake()
    for timeout in (0.0, 0.05):
        with pytest.raises(DeadlineError, match="time given"):
            driver.wait(slot, driver.deadline(timeout))
    assert not slot._callbacks, "the waiter is detached"


class DoneInBetween(Slot[str]):
    """Seen pending, and done and woken right after: what another thread may do between two lines."""

    __slots__ = ("_done", "looks", "waiter")

    def __init__(self, waiter: Waiter) -> None:
        super().__init__()
        self.looks, self.waiter = 0, waiter

    @property
    def done(self) -> bool:
        self.looks += 1
        seen: bool = self._done
        if self.looks == 1:
            self.complete("reply")
            self.waiter.wake(None)
        return seen

    @done.setter
    def done(self, value: bool) -> None:
        self._done = value


def test_a_reply_between_two_looks_is_not_taken_for_a_close(driver: ThreadsDriver) -> None:
    slot = DoneInBetween(Waiter(driver.deliver))
    driver._sleep(slot.waiter, slot, None)
    assert (slot.result(), slot.looks) == ("reply", 5)  # two of them by completing and by result


def test_several_threads_may_wait_for_one_slot(driver: ThreadsDriver) -> None:
    slot: Slot[int] = Wake()  # type: ignore[assignment]

    def complete() -> None:
        time.sleep(0.05)
        with driver.enter():
            slot.complete(7)

    assert in_threads(*[lambda: driver.wait(slot, driver.deadline(LONG))] * 5, complete) == [7] * 5 + [None]


def test_ten_thousand_abandoned_waits_lose_no_reply(engine: EchoEngine, driver: ThreadsDriver) -> None:
    # Sequence: the deadline of the wait and the reply race; whatever wins, the request ends by its reply.
    slots = []
    gone = 0
    for number in range(10_000):
        slot = engine.submit(b"%d" % number, LONG)
        slots.append(slot)
        try:
            driver.wait(slot, driver.deadline(random.choice([0, 0, 0, 0.00002, 0.0001])))
        except DeadlineError:
            gone += 1
    assert gone > 1_000
    for number, slot in enumerate(slots):
        assert driver.wait(slot, driver.deadline(LONG)) == b"%d" % number
    assert not driver._waiting


def test_a_blocking_call_on_the_reader_thread_raises_at_once(engine: EchoEngine, driver: ThreadsDriver) -> None:
    outcome: list[object] = []
    done = threading.Event()

    def wait_here(_: Any) -> None:
        try:
            driver.wait(engine.submit(b"x", 1.0))
        except RuntimeError as error:
            outcome.append(str(error))
        done.set()

    def on_push(_: bytes) -> None:
        driver.deliver(wait_here, None)

    engine.on_push = on_push
    engine.submit(b"push 1", LONG)
    assert done.wait(LONG)
    assert outcome == ["a blocking call on the reader thread would wait for itself"]


# ---- user code


def test_user_code_may_send_and_wait(engine: EchoEngine, driver: ThreadsDriver) -> None:
    got: list[bytes] = []
    done = threading.Event()

    def handle(body: bytes) -> None:
        got.append(ask(engine, b"from " + body))
        done.set()

    engine.on_push = lambda body: driver.run_user(handle, body)
    ask(engine, b"push 1")
    assert done.wait(LONG)
    assert got == [b"from 0"]


# ---- Ctrl-C at given moments (at any moment: test_fork.py)


def works(driver: ThreadsDriver, engine: EchoEngine) -> bool:
    """This thread and others get through, at the latest over a new connection."""
    end = time.monotonic() + LONG
    while time.monotonic() < end:
        try:
            return in_threads(lambda: ask(engine, b"after")) == [b"after"] and ask(engine, b"here") == b"here"
        except LinkError:
            time.sleep(0.001)
    return False


def once(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
    """The next call of this by the main thread is interrupted."""
    real = getattr(owner, name)

    def interrupted(*arguments: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return real(*arguments)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)


@pytest.fixture
def again(server: EchoServer, driver: ThreadsDriver) -> Iterator[EchoEngine]:
    """An engine that connects anew."""
    it = EchoEngine(driver, server.address, reconnect=True)
    ask(it, b"x")
    yield it
    it.close()


def test_while_entering(again: EchoEngine, driver: ThreadsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    once(monkeypatch, threads_module, "monotonic")
    with pytest.raises(KeyboardInterrupt):
        again.submit(b"x")
    assert works(driver, again)


def test_inside_between_a_change_and_telling_of_it(
    again: EchoEngine, driver: ThreadsDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Sequence: the link appends to its outbox, the signal comes, the driver was not told: nobody would ever write.
    once(monkeypatch, driver, "wants_write")
    with pytest.raises(KeyboardInterrupt):
        again.submit(b"interrupted")
    assert works(driver, again)
    assert again.lost == []


def test_while_writing(again: EchoEngine, driver: ThreadsDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    # How much went out is not known: the connection is given up, the request says so, the next one goes through.
    once(monkeypatch, again.link.handle, "write")
    with pytest.raises(KeyboardInterrupt):
        again.submit(b"interrupted")
    assert works(driver, again)
    assert again.lost


def test_while_reading_what_is_for_others(
    again: EchoEngine, driver: ThreadsDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Sequence: a caller has read frames for itself and others, the signal comes before they are handed on.
    others = [again.submit(b"silent", LONG) for _ in range(3)]
    once(monkeypatch, again, "on_frames")

    def until_interrupted() -> None:
        while True:
            with suppress(LinkError):
                ask(again, b"x")

    with pytest.raises(KeyboardInterrupt):
        until_interrupted()
    for slot in others:
        with pytest.raises(LinkError):
            driver.wait(slot, driver.deadline(LONG))
    assert works(driver, again)


def test_while_delivering(driver: ThreadsDriver) -> None:
    # The delivery that was cut short is made again, and those behind it are made.
    told: list[str] = []
    signals = [KeyboardInterrupt()]

    def interrupted(_: Any) -> None:
        told.append("first")
        if signals:
            raise signals.pop()

    def leave() -> None:
        with driver.enter():
            driver.deliver(interrupted, None)
            driver.deliver(told.append, "second")

    with pytest.raises(KeyboardInterrupt):
        leave()
    assert told == ["first", "first", "second"]


def test_before_anything_was_written_or_delivered(
    again: EchoEngine, driver: ThreadsDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def interrupted() -> None:
        raise KeyboardInterrupt

    def leave() -> None:
        with driver.enter():
            again.link.write(b"")
            driver.deliver(told.append, "delivered")
            driver.end_of_turn(interrupted)

    with pytest.raises(KeyboardInterrupt):
        leave()
    assert told == ["delivered"]
    assert works(driver, again)


# ---- closing and forking, as the driver sees it


def test_a_closed_driver_refuses(server: EchoServer) -> None:
    driver = ThreadsDriver("test")
    engine = EchoEngine(driver, server.address)
    ask(engine, b"x")
    waits: list[Slot[Any]] = [Wake(), Wake()]

    def wait(slot: Slot[Any]) -> str:
        with pytest.raises(ClosedError) as caught:
            driver.wait(slot)
        return str(caught.value)

    def close() -> str:
        end = time.monotonic() + LONG
        while len(driver._waiting) < 2 and time.monotonic() < end:
            time.sleep(0.001)
        driver.close()
        return "closed"

    assert in_threads(lambda: wait(waits[0]), lambda: wait(waits[1]), close) == [
        "the client was closed during the call",
        "the client was closed during the call",
        "closed",
    ]
    assert wait(Wake()) == "the client is closed"
    with pytest.raises(ClosedError), driver.enter() as now:
        engine.link.connect(now.mono + 1)


def test_after_a_fork_nothing_of_before_is_used(server: EchoServer) -> None:
    # In this very process: the "parent" is the reader thread, which goes on with what it has.
    driver = ThreadsDriver("test")
    engine = EchoEngine(driver, server.address)
    ask(engine, b"x")
    parent = driver._reader
    assert parent is not None
    locks = driver._lock, driver._users, driver._desk
    parent.stop()
    driver.after_fork()
    assert engine.forked == 1
    assert all(now is not then for now, then in zip((driver._lock, driver._users, driver._desk), locks, strict=True))
    assert ask(engine, b"child") == b"child"
    driver.close()


def test_closing_a_link_that_never_connected(driver: ThreadsDriver, server: EchoServer) -> None:
    engine = EchoEngine(driver, server.address)
    engine.close()
    with driver.enter():
        driver.disconnect(engine.link)
    assert engine.lost == []

"""The threads driver over real sockets: races told as sequences, faults, deadlines, closing."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mqclient.core.driver import Address
from mqclient.core.link import Link
from mqclient.core.slot import Slot, Wake
from mqclient.errors import ClosedError, DeadlineError, LinkError, MQError
from mqclient.io import connection as connection_module
from mqclient.io.threads import ThreadsDriver
from tests.support.echo import EchoEngine, EchoServer
from tests.support.leaks import assert_quiet, no_threads_left
from tests.support.proxy import CuttingProxy

LONG = 20.0


@pytest.fixture
def server() -> Iterator[EchoServer]:
    with EchoServer() as it:
        yield it


@pytest.fixture
def driver() -> Iterator[ThreadsDriver]:
    with no_threads_left():
        it = ThreadsDriver("test")
        yield it
        it.close()


@pytest.fixture
def engine(server: EchoServer, driver: ThreadsDriver) -> Iterator[EchoEngine]:
    it = EchoEngine(driver, server.address)
    yield it
    it.close()
    assert_quiet([it.link])


def ask(engine: EchoEngine, body: bytes, timeout: float = LONG) -> bytes:
    driver = engine.driver
    assert isinstance(driver, ThreadsDriver)
    return driver.wait(engine.submit(body, timeout), driver.deadline(timeout))


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """The results in order; the first exception is raised: a thread that died is no success."""
    results: list[Any] = [None] * len(calls)
    errors: list[BaseException] = []

    def run(index: int) -> None:
        try:
            results[index] = calls[index]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a caller hangs"
    if errors:
        raise errors[0]
    return results


# ---- the way there and back


def test_request_and_reply(engine: EchoEngine) -> None:
    assert [ask(engine, b"%d" % number) for number in range(100)] == [b"%d" % number for number in range(100)]


def test_a_caller_reads_for_itself(engine: EchoEngine) -> None:
    ask(engine, b"the connection is there")
    engine.threads.clear()
    for _ in range(50):
        ask(engine, b"x")
    assert threading.current_thread().name in engine.threads


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


def test_pushes_between_borrowed_reads_keep_their_order(engine: EchoEngine) -> None:
    # Sequence: a caller borrows, reads its reply and the first pushes, gives back; the reader thread reads the rest.
    expected: list[bytes] = []
    for _ in range(100):
        ask(engine, b"push 30")
        expected += [b"%d" % number for number in range(30)]
    end = time.monotonic() + LONG
    while len(engine.pushed) < len(expected) and time.monotonic() < end:
        time.sleep(0.001)
    assert engine.pushed == expected
    assert len(engine.threads) == 2, "both the caller and the reader thread read"


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
    assert slot._callback is None, "the waiter is detached"


def test_a_reply_that_takes_longer_than_reading_is_lent(engine: EchoEngine) -> None:
    assert ask(engine, b"late 0.3") == b"late 0.3"


def test_a_slot_completed_by_somebody_else_ends_borrowed_reading(engine: EchoEngine, driver: ThreadsDriver) -> None:
    # Sequence: A writes, borrows the link and polls; B completes A's slot (a retry elsewhere succeeded): no byte comes.
    ask(engine, b"x")
    slot: Slot[bytes] = Slot()

    def complete() -> None:
        time.sleep(0.03)
        with driver.enter():
            slot.complete(b"by another way")

    def wait() -> float:
        engine.submit(b"silent", LONG)
        start = time.monotonic()
        assert driver.wait(slot, driver.deadline(LONG)) == b"by another way"
        return time.monotonic() - start

    took, _ = in_threads(wait, complete)
    assert took < 0.09, "noticed before lent reading ends by itself"


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


# ---- faults


def test_a_lost_connection_fails_what_waits(engine: EchoEngine, driver: ThreadsDriver) -> None:
    slots = [engine.submit(b"silent", LONG) for _ in range(3)]
    with pytest.raises(LinkError, match="closed by the other side"):
        ask(engine, b"close")
    for slot in slots:
        with pytest.raises(LinkError) as caught:
            driver.wait(slot, driver.deadline(LONG))
        assert caught.value.outcome_unknown


def test_a_reset_names_its_cause(engine: EchoEngine) -> None:
    with pytest.raises(LinkError) as caught:
        ask(engine, b"reset")
    assert isinstance(caught.value.__cause__, OSError)


def test_bad_bytes_end_the_connection(engine: EchoEngine) -> None:
    with pytest.raises(LinkError, match="a frame of"):
        ask(engine, b"garbage")
    assert engine.link.state == "lost"


def test_a_bug_of_the_engine_costs_the_connection_not_the_thread(
    server: EchoServer, driver: ThreadsDriver, caplog: pytest.LogCaptureFixture
) -> None:
    engine = EchoEngine(driver, server.address, reconnect=True)

    def bug(_: bytes) -> None:
        raise KeyError("a bug in the engine")

    ask(engine, b"x")
    engine.on_push = bug
    silent = engine.submit(b"silent", LONG)
    slot = engine.submit(b"push 1", LONG)
    with pytest.raises(LinkError, match="a bug in the engine"):
        driver.wait(silent, driver.deadline(LONG))
    assert slot.done
    engine.on_push = None
    assert ask(engine, b"after") == b"after"
    assert "a bug in the engine" in caplog.text
    engine.close()


@pytest.mark.parametrize("reset", [False, True], ids=["fin", "rst"])
def test_callers_survive_cuts_again_and_again(server: EchoServer, driver: ThreadsDriver, reset: bool) -> None:
    with CuttingProxy(("127.0.0.1", server.port)) as proxy:
        engine = EchoEngine(driver, proxy.address, reconnect=True)
        stop = threading.Event()
        answered = [0, 0, 0]

        def caller(name: int) -> Callable[[], int]:
            def run() -> int:
                lost = 0
                while not stop.is_set():
                    body = b"%d:%d" % (name, answered[name])
                    try:
                        assert ask(engine, body) == body
                        answered[name] += 1
                    except LinkError:
                        lost += 1
                return lost

            return run

        def cutter() -> None:
            for _ in range(30):
                time.sleep(0.02)
                proxy.cut(reset=reset)
            before = list(answered)
            end = time.monotonic() + LONG
            while any(now <= then for now, then in zip(answered, before, strict=True)) and time.monotonic() < end:
                time.sleep(0.01)
            stop.set()

        in_threads(*(caller(name) for name in range(3)), cutter)
        assert min(answered) > 0
        assert engine.opened > 5
        engine.close()
        assert_quiet([engine.link])


def test_chopped_streams_are_put_together(server: EchoServer, driver: ThreadsDriver) -> None:
    with CuttingProxy(("127.0.0.1", server.port)) as proxy:
        proxy.piece = 3
        engine = EchoEngine(driver, proxy.address)
        assert ask(engine, b"x" * 2_000) == b"x" * 2_000
        engine.close()


def test_a_peer_that_has_gone_silent_costs_the_deadline_only(server: EchoServer, driver: ThreadsDriver) -> None:
    with CuttingProxy(("127.0.0.1", server.port)) as proxy:
        engine = EchoEngine(driver, proxy.address)
        assert ask(engine, b"x") == b"x"
        proxy.stall()
        with pytest.raises(DeadlineError):
            ask(engine, b"y", timeout=0.2)
        proxy.flow()
        assert ask(engine, b"z") == b"z"
        assert engine.link.inflight.late == 1
        engine.close()


# ---- connecting


def test_a_refused_connection(driver: ThreadsDriver) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: nobody else can
        engine = EchoEngine(driver, Address("127.0.0.1", taken.getsockname()[1], "given"))
        with pytest.raises(LinkError, match="could not connect") as caught:
            ask(engine, b"x")
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)


def test_closing_and_connecting_anew_in_one_entry(engine: EchoEngine, server: EchoServer) -> None:
    ask(engine, b"x")
    for _ in range(50):
        with engine.driver.enter() as now:
            engine.link.close()
            engine.link.connect(now.mono + 5)
        assert ask(engine, b"again") == b"again"
    assert engine.lost == []


# ---- closing


def test_close_writes_what_was_given(server: EchoServer) -> None:
    driver = ThreadsDriver("test")
    engine = EchoEngine(driver, server.address)
    ask(engine, b"x")
    for number in range(500):
        engine.submit(b"%d" % number, LONG)
    engine.submit(b"L" * 2_000_000, LONG)
    engine.close()
    driver.close()
    end = time.monotonic() + LONG
    while len(server.received) < 502 and time.monotonic() < end:
        time.sleep(0.001)
    assert len(server.received) == 502


def test_close_ends_every_wait(server: EchoServer) -> None:
    driver = ThreadsDriver("test")
    engine = EchoEngine(driver, server.address)
    ask(engine, b"x")

    def wait(slot: Slot[Any]) -> Callable[[], str]:
        def run() -> str:
            with pytest.raises(MQError) as caught:
                driver.wait(slot)
            return type(caught.value).__name__

        return run

    def close() -> None:
        time.sleep(0.05)
        driver.close()

    start = time.monotonic()
    calls = [wait(Wake()), wait(engine.submit(b"silent", LONG)), wait(Wake()), close]
    assert in_threads(*calls)[:3] == ["ClosedError"] * 3
    assert time.monotonic() - start < 2
    with pytest.raises(ClosedError):
        driver.wait(Wake())
    with pytest.raises(ClosedError), driver.enter():
        Link(driver, engine.timers, engine, server.address, lambda: engine.link.reader).connect(0)


def test_close_twice_and_close_without_use() -> None:
    driver = ThreadsDriver("test")
    driver.close()
    driver.close()


def test_a_thousand_clients_leave_no_descriptor_open(server: EchoServer) -> None:
    def one() -> None:
        driver = ThreadsDriver("test")
        engine = EchoEngine(driver, server.address)
        ask(engine, b"x")
        engine.close()
        driver.close()

    def ours() -> int:
        return sum(
            os.readlink(f"/proc/self/fd/{fd}").startswith(("socket", "anon_inode"))
            for fd in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{fd}")
        )

    for _ in range(5):
        one()
    server_side = len(server.connections)
    before = ours()
    for _ in range(100):
        one()
    accepted = len(server.connections) - server_side
    end = time.monotonic() + LONG
    while ours() > before + 3 and time.monotonic() < end:
        time.sleep(0.01)
    assert accepted == 100
    assert ours() <= before + 3


# ---- processes


def run_script(text: str, port: int, *, interrupt_after: float | None = None) -> tuple[int, str, str]:
    """Run it in a process of its own; send SIGINT that long after its first line of output."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", textwrap.dedent(text), str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))),
    )
    assert process.stdout is not None
    head = ""
    if interrupt_after is not None:
        head = process.stdout.readline()
        time.sleep(interrupt_after)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return process.returncode, head + out, err


PRELUDE = """
import os, signal, sys, threading, time
from mqclient.core.driver import Address
from mqclient.core.slot import Wake
from mqclient.errors import MQError
from mqclient.io.threads import ThreadsDriver
from tests.support.echo import EchoEngine
driver = ThreadsDriver()
engine = EchoEngine(driver, Address("127.0.0.1", int(sys.argv[1])))
assert driver.wait(engine.submit(b"before")) == b"before"
"""


@pytest.mark.parametrize(
    "wait",
    [
        "driver.wait(engine.submit(b'silent', 60))",
        "driver.wait(engine.submit(b'silent', 60), driver.deadline(60))",
        "driver.wait(Wake(), driver.deadline(60))",
        "driver.wait(Wake())",
    ],
    ids=["request", "request-deadline", "receive", "receive-for-ever"],
)
@pytest.mark.parametrize("after", [0.02, 0.3], ids=["borrowed", "asleep"])
def test_ctrl_c_ends_a_wait_at_once_and_the_client_goes_on(server: EchoServer, wait: str, after: float) -> None:
    script = (
        PRELUDE
        + f"""
sent = 0.0
def note(number, frame):
    global sent
    sent = time.monotonic()
    signal.default_int_handler(number, frame)
signal.signal(signal.SIGINT, note)
print("ready")
try:
    {wait}
except KeyboardInterrupt:
    took = time.monotonic() - sent
    assert driver.wait(engine.submit(b"after")) == b"after"
    print("took", took)
"""
    )
    code, out, err = run_script(script, server.port, interrupt_after=after)
    assert code == 0, err
    assert float(out.split("took")[1]) < 0.05


def test_ctrl_c_at_any_moment_leaves_a_client_that_works(server: EchoServer) -> None:
    script = (
        PRELUDE
        + """
class Stop(Exception): pass
def stop(number, frame): raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
engine.reconnect = True
rounds = broken = 0
end = time.monotonic() + 3
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + (rounds % 97) * 0.00001)
        while True:
            try:
                driver.wait(engine.submit(b"x", 5), driver.deadline(5))
            except MQError:
                broken += 1
    except KeyboardInterrupt:
        rounds += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
print(rounds, broken)
for _ in range(3):
    try:
        assert driver.wait(engine.submit(b"after", 5), driver.deadline(5)) == b"after"
    except MQError:
        pass
assert driver.wait(engine.submit(b"at last", 5), driver.deadline(5)) == b"at last"
assert rounds > 100
"""
    )
    code, out, err = run_script(script, server.port)
    assert code == 0, out + err


def test_exit_without_close_does_not_hang_and_still_writes(server: EchoServer) -> None:
    code, _, err = run_script(PRELUDE + "engine.submit(b'last words')\n", server.port)
    assert (code, err) == (0, "")
    end = time.monotonic() + LONG
    while b"last words" not in server.received and time.monotonic() < end:
        time.sleep(0.001)
    assert server.received == [b"before", b"last words"]


def test_exit_while_daemon_threads_wait(server: EchoServer) -> None:
    script = (
        PRELUDE
        + """
for _ in range(4):
    threading.Thread(target=lambda: driver.wait(Wake()), daemon=True).start()
threading.excepthook = lambda _: None
time.sleep(0.05)
"""
    )
    start = time.monotonic()
    code, _, err = run_script(script, server.port)
    assert (code, err) == (0, "")
    assert time.monotonic() - start < 20


def test_a_forked_child_starts_anew_and_the_parent_notices_nothing(server: EchoServer) -> None:
    script = (
        PRELUDE
        + """
stop = threading.Event()
def busy():  # somebody holds the lock, writes and reads while we fork
    while not stop.is_set():
        driver.wait(engine.submit(b"busy", 30), driver.deadline(30))
threads = [threading.Thread(target=busy, daemon=True) for _ in range(3)]
for thread in threads: thread.start()
children = []
for number in range(20):
    pid = os.fork()
    if pid == 0:
        try:
            assert engine.forked == 1, engine.forked
            for _ in range(3):
                assert driver.wait(engine.submit(b"child", 30), driver.deadline(30)) == b"child"
            driver.close()
            os._exit(0)
        except BaseException:
            import traceback; traceback.print_exc()
            os._exit(1)
    children.append(pid)
    time.sleep(0.005)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 20
stop.set()
for thread in threads: thread.join(30)
assert not any(thread.is_alive() for thread in threads)
assert driver.wait(engine.submit(b"parent")) == b"parent"
assert engine.opened == 1 and engine.lost == [] and engine.forked == 0
"""
    )
    code, out, err = run_script(script, server.port)
    assert code == 0, out + err


def test_a_child_that_does_nothing_and_a_grandchild(server: EchoServer) -> None:
    script = (
        PRELUDE
        + """
pid = os.fork()
if pid == 0:
    grandchild = os.fork()
    if grandchild == 0:
        assert driver.wait(engine.submit(b"grandchild", 30), driver.deadline(30)) == b"grandchild"
        sys.exit(0)
    sys.exit(os.waitpid(grandchild, 0)[1])
assert os.waitpid(pid, 0)[1] == 0
assert driver.wait(engine.submit(b"parent")) == b"parent"
"""
    )
    code, out, err = run_script(script, server.port)
    assert code == 0, out + err

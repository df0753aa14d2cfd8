"""The reader thread: faults of the connection, closing, and what it leaves behind."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from math import inf
from typing import Any

import pytest

from mqclient.config import TLS
from mqclient.core.driver import Address
from mqclient.core.link import Link
from mqclient.core.slot import Slot, Wake
from mqclient.errors import ClosedError, DeadlineError, LinkError, MQError
from mqclient.io.poller import EpollPoller
from mqclient.io.reader import LINGER, PARK
from mqclient.io.threads import ThreadsDriver
from mqclient.io.tls import encrypted
from tests.support.calls import LONG, ask, in_threads
from tests.support.echo import EchoEngine, EchoServer, frame
from tests.support.leaks import assert_quiet
from tests.support.proxy import CuttingProxy
from tests.unit.io.test_borrow import until_parked

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


# ---- the thread itself


def test_what_a_full_socket_did_not_take_is_written_later(server: EchoServer, driver: ThreadsDriver) -> None:
    with CuttingProxy(("127.0.0.1", server.port)) as proxy:
        engine = EchoEngine(driver, proxy.address)
        ask(engine, b"x")
        proxy.stall()
        slots = [engine.submit(bytes([number]) * 6_000_000, LONG) for number in range(3)]
        end = time.monotonic() + LONG
        while not engine.link.handle.blocked and time.monotonic() < end:
            time.sleep(0.001)
        assert engine.link.outbox
        proxy.flow()
        assert [len(driver.wait(slot, driver.deadline(LONG))) for slot in slots] == [6_000_000] * 3
        engine.close()


def test_a_link_left_to_callers_is_listened_to_again(engine: EchoEngine) -> None:
    connection = engine.link.handle
    end = time.monotonic() + LONG
    while not (connection and connection.parked) and time.monotonic() < end:
        ask(engine, b"x")
        connection = engine.link.handle
    while connection.parked and time.monotonic() < end:
        time.sleep(0.001)
    assert not connection.borrowed


@pytest.fixture
def turns(engine: EchoEngine, driver: ThreadsDriver, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the reader thread got up, beside a connection that a caller reads without end."""
    ask(engine, b"the connection is there")
    until_parked(engine).reader.last_borrow = inf
    reader, seen = driver._reader, list[float]()
    assert reader is not None
    turn = reader._turn

    def noted(events: list[tuple[int, int]]) -> None:
        seen.append(time.monotonic())
        turn(events)

    monkeypatch.setattr(reader, "_turn", noted)
    for _ in range(20):  # until what parking rang for is done
        seen.clear()
        time.sleep(10 * PARK)
        if not seen:
            break
    return seen


def test_where_callers_read_it_does_not_get_up(engine: EchoEngine, turns: list[float]) -> None:
    """It would ask for the GIL: beside a thread that burns, all who wait for theirs would wait anew."""
    time.sleep(40 * PARK)
    assert engine.link.handle.parked
    assert turns == []


def test_what_concerns_it_wakes_it_there(engine: EchoEngine, driver: ThreadsDriver, turns: list[float]) -> None:
    reader, end = driver._reader, time.monotonic() + LONG
    assert reader is not None
    reader.hand(engine.link.handle)
    while not turns and time.monotonic() < end:
        time.sleep(0.001)
    assert turns
    fired, began = threading.Event(), time.monotonic()
    with driver.enter() as now:
        engine.timers.at(now.mono + 0.05, lambda now: fired.set())
    assert fired.wait(LONG)
    assert time.monotonic() - began >= 0.05
    assert engine.link.handle.parked, "the caller still reads"


def test_what_came_meanwhile_is_read_once_the_last_caller_has_gone(
    server: EchoServer, engine: EchoEngine, turns: list[float]
) -> None:
    server.connections[0].sendall(frame(0, b"push"))
    time.sleep(10 * PARK)
    assert (engine.pushed, turns) == ([], [])
    engine.link.handle.reader.last_borrow, end = time.monotonic(), time.monotonic() + LONG
    while not engine.pushed and time.monotonic() < end:
        time.sleep(0.001)
    assert engine.pushed == [b"push"]


def test_another_connection_beside_it_is_listened_to_again(
    server: EchoServer, engine: EchoEngine, driver: ThreadsDriver
) -> None:
    other = EchoEngine(driver, server.address)
    for one in (engine, other):
        ask(one, b"the connection is there")
    until_parked(engine).reader.last_borrow = inf
    connection, end = until_parked(other), time.monotonic() + LONG
    while connection.parked and time.monotonic() < end:
        time.sleep(0.001)
    assert not connection.borrowed
    assert engine.link.handle.parked
    other.close()


def test_closing_does_not_wait_for_who_comes_no_more(engine: EchoEngine, turns: list[float]) -> None:
    began = time.monotonic()
    engine.close()
    while engine.link.handle is not None or engine.link.inflight:
        assert time.monotonic() - began < LONG
    driver = engine.driver
    assert isinstance(driver, ThreadsDriver)
    driver.close()
    assert time.monotonic() - began < LINGER
    assert turns


class Copy:
    """What a child has of the parent's: closed or abandoned, once the poller is out of reach."""

    def __init__(self, poller: Any) -> None:
        self._poller = poller
        self.closed = 0

    def close(self) -> None:
        with pytest.raises(ValueError, match="closed"):
            self._poller.wait(0)
        self.closed += 1

    abandon = close


def test_a_child_closes_its_copies_after_the_poller_which_is_the_parents_too() -> None:
    driver = ThreadsDriver("test")
    with driver.enter() as now:
        driver.arm(now.mono + 1_000)
    reader = driver._reader
    assert reader is not None
    driver.close()
    reader._poller = EpollPoller()
    connection, dial = Copy(reader._poller), Copy(reader._poller)
    reader._connections[-1] = connection  # type: ignore[assignment]
    reader._dials[connection] = dial  # type: ignore[index, assignment]
    reader.after_fork()
    assert (connection.closed, dial.closed) == (1, 1)


def test_a_bug_of_ours_is_told_and_does_not_end_it(
    engine: EchoEngine, driver: ThreadsDriver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ask(engine, b"x")
    reader = driver._reader
    assert reader is not None

    def bug(_: object) -> None:
        monkeypatch.undo()
        raise ValueError("a bug of ours")

    monkeypatch.setattr(reader, "_tend", bug)
    reader.hand(engine.link.handle)
    end = time.monotonic() + LONG
    while "a bug of ours" not in caplog.text and time.monotonic() < end:
        time.sleep(0.001)
    assert ask(engine, b"after") == b"after"


def test_closing_the_driver_ends_what_the_engine_left_open(server: EchoServer) -> None:
    driver = ThreadsDriver("test")
    engine = EchoEngine(driver, server.address)
    ask(engine, b"x")
    engine.submit(b"last words", LONG)
    driver.close()
    assert engine.link.handle is None
    end = time.monotonic() + LONG
    while len(server.received) < 2 and time.monotonic() < end:
        time.sleep(0.001)
    assert server.received == [b"x", b"last words"]


def test_closing_the_driver_gives_up_connections_being_made() -> None:
    driver = ThreadsDriver("test")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address("127.0.0.1", silent.getsockname()[1], tls=encrypted(TLS()))
        EchoEngine(driver, address)
        accepted, _ = silent.accept()
        driver.close()
        accepted.settimeout(LONG)
        while accepted.recv(4096):  # the beginning of a handshake, then the end
            continue
        accepted.close()


def test_a_peer_that_does_not_close_is_waited_for_a_moment_only() -> None:
    driver = ThreadsDriver("test")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        engine = EchoEngine(driver, Address("127.0.0.1", listener.getsockname()[1]))
        stubborn, _ = listener.accept()
        engine.submit(b"x", LONG)
        assert stubborn.recv(100)
        start = time.monotonic()
        engine.close()
        driver.close()
        assert time.monotonic() - start < 3
        stubborn.close()

"""The reader thread: faults of the connection, closing, and what it leaves behind."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mqclient.core.driver import Address
from mqclient.core.link import Link
from mqclient.core.slot import Slot, Wake
from mqclient.errors import ClosedError, DeadlineError, LinkError, MQError
from mqclient.io.threads import ThreadsDriver
from tests.support.calls import LONG, ask, in_threads
from tests.support.echo import EchoEngine, EchoServer
from tests.support.leaks import assert_quiet
from tests.support.proxy import CuttingProxy

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

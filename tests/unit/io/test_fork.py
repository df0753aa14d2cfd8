"""What needs a process of its own: Ctrl-C, the end of the interpreter, fork."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest

from mqclient.io import fork
from tests.support.calls import LONG
from tests.support.echo import EchoServer

ROOT = Path(__file__).resolve().parents[3]


def run_script(text: str, port: int, *, interrupt_after: float | None = None) -> tuple[int, str, str]:
    """Run it in a process of its own; send SIGINT that long after its first line of output."""
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", textwrap.dedent(text), str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
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


def test_a_child_of_one_whose_caller_reads_by_himself(server: EchoServer) -> None:
    """The parent's reader thread looks after the connection meanwhile; the child has neither."""
    script = (
        PRELUDE
        + """
while not engine.link.handle.parked:
    assert driver.wait(engine.submit(b"x")) == b"x"
reading = engine.link.reader
reading.last_borrow = float("inf")
pid = os.fork()
if pid == 0:
    assert engine.link.reader.last_borrow == 0.0
    assert driver.wait(engine.submit(b"child", 30), driver.deadline(30)) == b"child"
    driver.close()
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert engine.link.handle.parked
reading.last_borrow = time.monotonic()
end = time.monotonic() + 20
while engine.link.handle.parked and time.monotonic() < end: time.sleep(0.001)
assert not engine.link.handle.parked
assert driver.wait(engine.submit(b"parent")) == b"parent"
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


def test_an_engine_that_fails_after_a_fork_does_not_take_the_others_with_it(server: EchoServer) -> None:
    script = (
        PRELUDE
        + """
import logging; logging.basicConfig()
bad = ThreadsDriver()
broken = EchoEngine(bad, Address("127.0.0.1", int(sys.argv[1])))
def fail(): raise ValueError("a bug after the fork")
broken.on_fork = fail
pid = os.fork()
if pid == 0:
    assert driver.wait(engine.submit(b"child", 30), driver.deadline(30)) == b"child"
    driver.close()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
"""
    )
    code, out, err = run_script(script, server.port)
    assert code == 0, out + err
    assert "a bug after the fork" in err


def test_an_asyncio_client_of_the_parent_refuses_and_names_the_cure(server: EchoServer) -> None:
    script = """
import asyncio, os, sys
from mqclient.core.driver import Address
from mqclient.errors import MQError
from mqclient.io.aio import AsyncioDriver
from tests.support.echo import EchoEngine
async def main():
    driver = AsyncioDriver()
    engine = EchoEngine(driver, Address("127.0.0.1", int(sys.argv[1])))
    assert await driver.wait(engine.submit(b"before")) == b"before"
    pid = os.fork()
    if pid == 0:
        try:
            engine.submit(b"child")
        except MQError as error:
            os._exit(0 if "a forked process" in str(error) and "Cure" in str(error) else 2)
        os._exit(3)
    assert os.waitpid(pid, 0)[1] == 0
    assert await driver.wait(engine.submit(b"parent")) == b"parent"
    await driver.close()
asyncio.run(main())
"""
    code, out, err = run_script(script, server.port)
    assert code == 0, out + err
    assert b"child" not in server.received


class Told:
    """A driver that notes what it is told, and fails if asked to."""

    def __init__(self, log: list[str], name: str, fails: bool) -> None:
        self._log = log
        self._name = name
        self._fails = fails
        self._alarmed = None

    def after_fork(self) -> None:
        self._log.append(f"{self._name} forked")
        if self._fails:
            raise ValueError("a bug after the fork")

    def close(self) -> None:
        self._log.append(f"{self._name} closed")


def test_every_driver_is_told_of_forks_and_of_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fork, "_drivers", WeakSet())
    log: list[str] = []
    drivers = [Told(log, name, fails=name == "a") for name in "abc"]
    for driver in drivers:
        fork.watch(driver)
    fork.forget(drivers[2])
    fork._in_child()
    fork._at_exit()
    assert sorted(log) == ["a closed", "a forked", "b closed", "b forked"]
    assert "a bug after the fork" in caplog.text


def test_nobody_is_kept_alive_by_being_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork, "_drivers", WeakSet())
    log: list[str] = []
    driver = Told(log, "a", fails=False)
    fork.watch(driver)
    del driver
    gc.collect()
    fork._in_child()
    assert log == []


class Util:
    """In place of `multiprocessing.util`."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def register_after_fork(self, owner: Any, call: Any) -> None:
        self.told.append(("after fork", call))

    def Finalize(self, owner: Any, call: Any, exitpriority: int) -> None:
        self.told.append(("at end", call, exitpriority))


@pytest.mark.parametrize("parent", [None, "parent"])
def test_children_of_multiprocessing_are_told_of_their_end(monkeypatch: pytest.MonkeyPatch, parent: Any) -> None:
    util = Util()
    monkeypatch.setitem(sys.modules, "multiprocessing.util", util)
    monkeypatch.setitem(sys.modules, "multiprocessing.process", SimpleNamespace(parent_process=lambda: parent))
    monkeypatch.setattr(fork, "_drivers", WeakSet())
    monkeypatch.setattr(fork, "_children", set())
    fork._in_child()
    assert util.told == [("after fork", fork._at_end_of_child)]
    for _ in range(2):
        fork.watch(Told([], "a", fails=False))
    assert util.told[1:] == ([("at end", fork._at_exit, 0)] if parent else [])  # once a process

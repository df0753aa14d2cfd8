"""A client is used by what may come at any moment: signal handlers and finalizers, also at the interpreter's end."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import mqclient
from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker
from tests.support.seen import unique

LONG = 30.0


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as it:
        yield it


@contextmanager
def sender(broker: EmbeddedBroker, system: str) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """A producer and what submits to it."""
    client: Any
    message: Any
    if system == "rocketmq":
        client = rocketmq.Client(broker.name_server)
        producer, message = client.producer("p"), rocketmq.Message(unique("signals"), b"x")
    else:
        client = pulsar.Client(broker.pulsar_url)
        producer, message = client.producer(unique("signals")), b"x"
    with client:
        producer.send(message)
        yield producer, lambda: producer.submit(message)


class Knot:
    """Garbage that does something when it is collected."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.me = self
        self.act = act

    def __del__(self) -> None:
        self.act()


@contextmanager
def signals(act: Callable[[], None]) -> Iterator[None]:
    """One after the other: the next one comes when the last one has been handled. No alarm: pytest has a use for it."""
    handled, over, main = threading.Event(), threading.Event(), threading.get_ident()

    def handler(*_: Any) -> None:
        act()
        handled.set()

    def send() -> None:
        while not over.is_set():
            handled.clear()
            signal.pthread_kill(main, signal.SIGUSR1)
            handled.wait(LONG)

    former = signal.signal(signal.SIGUSR1, handler)
    sends = threading.Thread(target=send)
    sends.start()
    try:
        yield
    finally:
        over.set()
        sends.join()
        signal.signal(signal.SIGUSR1, former)


@contextmanager
def finalizers() -> Iterator[None]:
    """Garbage is looked for all the time."""
    limits = gc.get_threshold()
    gc.set_threshold(7)
    try:
        yield
    finally:
        gc.set_threshold(*limits)
        gc.collect()


@pytest.mark.parametrize("system", ["rocketmq", "pulsar"])
@pytest.mark.parametrize("when", ["signal", "finalizer"])
def test_who_comes_while_the_client_is_at_work_is_told_so_and_disturbs_nobody(
    broker: EmbeddedBroker, system: str, when: str
) -> None:
    if system == "pulsar" and mqclient.__impl__ == "pure":
        pytest.skip("a batch of the pure twin has a lock, which may be found held; the native one has none")
    with sender(broker, system) as (producer, submit):
        futures: list[Any] = []
        refused: list[str] = []

        def act(*_: Any) -> None:
            try:
                futures.append(submit())
            except RuntimeError as error:
                refused.append(str(error))

        act()  # outside of an entry it is like any other call
        with signals(act) if when == "signal" else finalizers():
            end = time.monotonic() + LONG
            while not refused and time.monotonic() < end:
                if when == "finalizer":
                    Knot(act)
                futures.append(submit())
        assert "do not use a client: set a flag" in refused[0]
        producer.flush(timeout=LONG)
        assert all(future.exception(0) is None for future in futures)


AT_THE_END = """
import sys, threading, time
from mqclient import pulsar, rocketmq
from mqclient.errors import ClosedError

if sys.argv[1] == "rocketmq":
    producer = rocketmq.Client(sys.argv[2]).producer("p")
    message = rocketmq.Message("at-the-end", b"x")
else:
    producer = pulsar.Client(sys.argv[2]).producer("at-the-end", batching=False)
    message = b"x"
producer.send(message)

def work():
    while True:
        try:
            producer.send(message)
        except ClosedError:
            return
        except BaseException as error:
            sys.stderr.write(f"{error!r}\\n")
            return

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.parametrize("system", ["rocketmq", "pulsar"])
def test_daemon_threads_that_send_till_the_end_get_no_error_of_ours(broker: EmbeddedBroker, system: str) -> None:
    url = broker.name_server if system == "rocketmq" else broker.pulsar_url
    for _ in range(5):
        program = [sys.executable, "-c", AT_THE_END, system, url]
        ended = subprocess.run(program, capture_output=True, text=True, timeout=LONG)
        assert ended.returncode == 0
        assert "Error" not in ended.stderr, ended.stderr

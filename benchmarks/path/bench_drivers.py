"""Request and reply through a driver, against a bare blocking socket loop in the same run: what the house costs.

The peer is a process of its own that sends back whatever comes. Frames are RocketMQ's, with 100 bytes of body.

Both run on one processor: over two the asyncio ratio was 3.3 on a quiet machine and 5.4 beside other work, presumably
for what it costs to wake a processor that sleeps.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.support import Compare, Contender
from mqclient._impl import select
from mqclient.core.driver import Address, Driver, Now
from mqclient.core.link import Link
from mqclient.core.slot import Slot
from mqclient.core.timers import Timers
from mqclient.errors import MQError
from mqclient.io.aio import AsyncioDriver
from mqclient.io.threads import ThreadsDriver

BODY = b"x" * 100
ROUNDS = 50
PEER = """
import socket, threading
def serve(sock):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    room = memoryview(bytearray(1 << 18))
    while count := sock.recv_into(room):
        sock.sendall(room[:count])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"""


@pytest.fixture(scope="module")
def one_processor() -> Iterator[None]:
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture(scope="module")
def port(one_processor: None) -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", PEER], stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdout is not None
        yield int(peer.stdout.readline())
        peer.kill()


class Echo:
    """The smallest engine: one link, requests by number."""

    def __init__(self, driver: Driver, remoting: Any, port: int) -> None:
        self.driver = driver
        self.timers = Timers(driver)
        self._encode = remoting.encode_frame
        self._ids = 0
        with driver.enter() as now:
            driver.attach(self)
            self.link = Link(driver, self.timers, self, Address("127.0.0.1", port), remoting.FrameReader)
            self.link.connect(now.mono + 5)

    def submit(self, body: bytes) -> Slot[Any]:
        slot: Slot[Any] = Slot()
        with self.driver.enter() as now:
            self._ids = number = self._ids + 1
            self.link.send(number, self._encode(10, number, body=body), slot, now.mono + 3, "ECHO")
        return slot

    def on_open(self, link: Link) -> None:
        """Nothing to greet."""

    def on_frames(self, link: Link, frames: Sequence[Any]) -> None:
        for frame in frames:
            link.inflight.complete(frame.opaque, frame)

    def on_lost(self, link: Link, cause: MQError) -> None:
        """Whoever waits is told."""

    def on_timer(self, now: Now) -> None:
        self.timers.fire(now)


def bare(port: int, stack: ExitStack) -> Callable[[], None]:
    """The floor of any Python: one blocking socket, no other thread."""
    sock = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    frame = select("pure").remoting.encode_frame(10, 1, body=BODY)

    def run() -> None:
        for _ in range(ROUNDS):
            sock.sendall(frame)
            received = 0
            while received < len(frame):
                received += len(sock.recv(65536))

    return run


def by_threads(port: int, stack: ExitStack, name: str) -> Callable[[], None]:
    remoting = select(name).remoting
    driver = ThreadsDriver("bench", send_now=remoting.send_now)
    stack.callback(driver.close)
    echo = Echo(driver, remoting, port)
    driver.wait(echo.submit(BODY))

    def run() -> None:
        wait, submit = driver.wait, echo.submit
        for _ in range(ROUNDS):
            wait(submit(BODY), driver.deadline(3))

    return run


def by_asyncio(port: int, stack: ExitStack) -> Callable[[], None]:
    loop = asyncio.new_event_loop()
    stack.callback(loop.close)
    remoting = select("native").remoting

    async def start() -> tuple[AsyncioDriver, Echo]:
        driver = AsyncioDriver("bench")
        echo = Echo(driver, remoting, port)
        await driver.wait(echo.submit(BODY))
        return driver, echo

    driver, echo = loop.run_until_complete(start())
    stack.callback(lambda: loop.run_until_complete(driver.close()))

    async def all_of_them() -> None:
        for _ in range(ROUNDS):
            await driver.wait(echo.submit(BODY))

    return lambda: loop.run_until_complete(all_of_them())


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as it:
        yield it


def bench_request_reply(compare: Compare, port: int, stack: ExitStack) -> None:
    compare(
        "drivers.request_reply",
        per=ROUNDS,
        native=Contender(by_threads(port, stack, "native")),
        pure=Contender(by_threads(port, stack, "pure")),
        asyncio=Contender(by_asyncio(port, stack)),
        bare=Contender(bare(port, stack)),
        asked="p50 <= bare + 15 us",
    )

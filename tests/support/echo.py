"""A tiny protocol for tests of the drivers: frames of length, id and body; the peer echoes them or obeys orders."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from mqclient._pure.parked import look_after
from mqclient.core.driver import Address, Driver, Now
from mqclient.core.link import Link
from mqclient.core.slot import Slot
from mqclient.core.timers import Timers
from mqclient.errors import MQError, ProtocolError

Frame = tuple[int, bytes]
HEAD = struct.Struct(">II")
MAX_FRAME = 1 << 24


def frame(request_id: int, body: bytes) -> bytes:
    return HEAD.pack(len(body), request_id) + body


class EchoReader:
    """Cuts the stream into frames; a length above the limit is its error."""

    look_after = staticmethod(look_after)

    def __init__(self) -> None:
        self.last_borrow = 0.0
        self.error: ProtocolError | None = None
        self._rest = bytearray()

    def feed(self, data: bytes | bytearray | memoryview, /) -> list[Frame]:
        frames: list[Frame] = []
        if self.error is not None:
            return frames
        rest = self._rest
        rest += data
        start = 0
        while len(rest) - start >= HEAD.size:
            length, request_id = HEAD.unpack_from(rest, start)
            if length > MAX_FRAME:
                self.error = ProtocolError(f"a frame of {length} bytes")
                break
            end = start + HEAD.size + length
            if end > len(rest):
                break
            frames.append((request_id, bytes(rest[start + HEAD.size : end])))
            start = end
        del rest[:start]
        return frames


class EchoEngine:
    """The smallest engine: one link, requests by id, and a record of what it was told."""

    def __init__(self, driver: Driver, address: Address, *, reconnect: bool = False) -> None:
        self.driver = driver
        self.timers = Timers(driver)
        self.address = address
        self.reconnect = reconnect
        self.opened = 0
        self.lost: list[MQError] = []
        self.pushed: list[bytes] = []
        self.on_push: Callable[[bytes], None] | None = None
        self.threads: set[str] = set()
        self.forked = 0
        self._ids = 0
        with driver.enter() as now:
            driver.attach(self)
            self.link = Link(driver, self.timers, self, address, EchoReader)
            self.link.connect(now.mono + 5)

    def on_fork(self) -> None:
        self.forked += 1
        self.timers = Timers(self.driver)
        self.link = Link(self.driver, self.timers, self, self.address, EchoReader)
        self.link.connect(self.driver.now.mono + 5)

    def submit(self, body: bytes, timeout: float = 5.0) -> Slot[bytes]:
        slot: Slot[bytes] = Slot()
        with self.driver.enter() as now:
            self._ids += 1
            self.link.send(self._ids, frame(self._ids, body), slot, now.mono + timeout, "ECHO")
        return slot

    def close(self) -> None:
        with self.driver.enter():
            self.link.close()
            self.timers.clear()

    # ---- told by the link and the driver

    def on_open(self, link: Link) -> None:
        self.opened += 1

    def on_frames(self, link: Link, frames: Sequence[Any]) -> None:
        self.threads.add(threading.current_thread().name)
        for request_id, body in frames:
            if request_id:
                link.inflight.complete(request_id, body)
            else:
                self.pushed.append(body)
                if self.on_push is not None:
                    self.on_push(body)

    def on_lost(self, link: Link, cause: MQError) -> None:
        self.lost.append(cause)
        if self.reconnect:
            link.connect(self.driver.now.mono + 5)

    def on_timer(self, now: Now) -> None:
        self.timers.fire(now)


class EchoServer:
    """Echoes every frame, one thread a connection; bodies that begin with a word below are orders.

    b"silent": no answer. b"close": close the connection. b"reset": reset it. b"garbage": send a bad length.
    b"push N": N frames of id 0 after the echo. b"late S": answer after S seconds. b"hold": read on when `go` is set.
    """

    def __init__(self, *, tls: Any = None) -> None:
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.received: list[bytes] = []
        self.go = threading.Event()
        self.connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.port, "test")

    def __enter__(self) -> EchoServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for sock in [self._listener, *self.connections]:
            with suppress(OSError):  # already gone
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections.append(sock)
            thread = threading.Thread(target=self._serve, args=(sock,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
                self.connections.append(sock)
            reader = EchoReader()
            while data := sock.recv(1 << 18):
                for request_id, body in reader.feed(data):
                    self.received.append(body)
                    self._answer(sock, request_id, body)
                if reader.error is not None:
                    break
        except OSError:
            pass  # the test closed one side
        finally:
            sock.close()

    def _answer(self, sock: socket.socket, request_id: int, body: bytes) -> None:
        word, _, argument = body.partition(b" ")
        if word == b"silent":
            return
        if word == b"close":
            sock.shutdown(socket.SHUT_RDWR)
        elif word == b"reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        elif word == b"garbage":
            sock.sendall(b"\xff" * 8)
        elif word == b"late":
            timer = threading.Timer(float(argument), self._late, (sock, frame(request_id, body)))
            timer.daemon = True
            timer.start()
        else:
            if word == b"hold":
                self.go.wait(30)
            sock.sendall(frame(request_id, body))
            if word == b"push":
                sock.sendall(b"".join(frame(0, b"%d" % index) for index in range(int(argument))))

    def _late(self, sock: socket.socket, data: bytes) -> None:
        with suppress(OSError):  # the connection may have ended
            sock.sendall(data)

"""A TCP proxy that misbehaves on order: cuts, stalls, chops, refuses; between a client and any server."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from math import log
from random import Random

from mqclient.core.driver import Address


class Noise:
    """Changes bytes of one stream, each with the same chance; the same seed changes the same ones."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)
        self._chance = 0.0
        self._gap = 0
        """Bytes that stay before the next one that does not."""

    def over(self, data: bytes, chance: float) -> bytes:
        if not chance:
            return data
        if chance != self._chance:
            self._chance, self._gap = chance, self._next(chance)
        out, at = bytearray(data), 0
        while self._gap < len(data) - at:
            at += self._gap
            out[at] ^= self._random.randrange(1, 256)
            at += 1
            self._gap = self._next(chance)
        self._gap -= len(data) - at
        return bytes(out)

    def _next(self, chance: float) -> int:
        return 0 if chance >= 1 else int(log(1 - self._random.random()) / log(1 - chance))


class CuttingProxy:
    """Forwards bytes until told otherwise. Orders hold for the connections there are and for those to come.

    `piece`: forward at most so many bytes at once. `cut_after`: end each connection after so many bytes to the client.
    `tap(data)` is shown what clients send. `refuse`: end new connections at once. `stall()`: keep connections, forward
    nothing. `hold_answers()`: as that, but only towards clients; `held` counts the bytes. `latency`: seconds that each
    piece takes. `bandwidth`: bytes a second, of each connection and direction. `corrupt`: how likely it is that a byte
    is changed; which, and to what, follows from `seed`, the connection's number, and the byte's place in it: not from
    how the bytes came.
    """

    def __init__(self, target: tuple[str, int], *, seed: int = 0) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.piece: int | None = None
        self.cut_after: int | None = None
        self.refuse = False
        self.latency = 0.0
        self.bandwidth: int | None = None
        self.corrupt = 0.0
        self._seed = seed
        self.tap: Callable[[bytes], object] | None = None
        self.accepted = 0
        self.held = 0
        self._holding = False
        self._flowing = threading.Event()
        self._flowing.set()
        self._closed = False
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lost: set[tuple[socket.socket, socket.socket]] = set()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.port, "proxy")

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- orders

    def cut(self, *, reset: bool = False) -> None:
        """End all connections: with FIN to both sides, or with RST."""
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            self._end(pair, reset=reset)

    def stall(self) -> None:
        """Keep the connections and forward nothing, as a peer does whose machine has gone."""
        self._flowing.clear()

    def hold_answers(self) -> None:
        """What servers say from now on reaches nobody before `flow`, and never if the connection ends first."""
        self.held = 0
        self._holding = True
        self._flowing.clear()

    def flow(self) -> None:
        self._holding = False
        self._flowing.set()

    def lose(self) -> None:
        """A black hole for the connections there are: neither side hears of the other again, not even of its end."""
        with self._lock:
            self._lost |= self._pairs

    def close(self) -> None:
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._flowing.set()
        self.cut()
        for thread in self._threads:
            thread.join(5)

    # ---- the work

    def _start(self, call: object, *arguments: object) -> None:
        thread = threading.Thread(target=call, args=arguments, name="proxy", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            if self.refuse:
                client.close()
                continue
            try:
                server = socket.create_connection(self._target, timeout=5)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            for sock in (client, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pair = (client, server)
            with self._lock:
                self._pairs.add(pair)
            self._start(self._forward, pair, client, server, self.accepted)
            self._start(self._forward, pair, server, client, self.accepted)

    def _forward(
        self, pair: tuple[socket.socket, socket.socket], source: socket.socket, target: socket.socket, number: int
    ) -> None:
        to_client = target is pair[0]
        forwarded = 0
        noise = Noise(f"{self._seed} {number} {to_client}")
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if to_client and self._holding:
                    self.held += len(data)
                if to_client or not self._holding:
                    self._flowing.wait()
                if pair in self._lost:
                    continue
                if not to_client and self.tap is not None:
                    self.tap(data)
                if to_client and self.cut_after is not None:
                    data = data[: max(0, self.cut_after - forwarded)]
                step = self.piece or len(data) or 1
                for start in range(0, len(data), step):
                    target.sendall(self._worse(data[start : start + step], noise))
                forwarded += len(data)
                if to_client and self.cut_after is not None and forwarded >= self.cut_after:
                    break
        if pair not in self._lost:
            self._end(pair)

    def _worse(self, piece: bytes, noise: Noise) -> bytes:
        """Later than it came, and perhaps not as it was."""
        seconds = self.latency + (len(piece) / self.bandwidth if self.bandwidth else 0)
        if seconds:
            time.sleep(seconds)
        return noise.over(piece, self.corrupt)

    def _end(self, pair: tuple[socket.socket, socket.socket], *, reset: bool = False) -> None:
        with self._lock:
            if pair not in self._pairs:
                return
            self._pairs.discard(pair)
        for sock in pair:
            with suppress(OSError):
                if reset:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    sock.shutdown(socket.SHUT_RD)  # says nothing to the peer, but ends the recv that holds the socket
                else:
                    sock.shutdown(socket.SHUT_RDWR)
            sock.close()

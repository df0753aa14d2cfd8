"""A lane of native sends over a socket pair: what the driver and the engine do for it, and what it asked of them."""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from mqclient.core.budget import Budget
from mqclient.core.slot import Slot
from mqclient.io.poller import Bell


class Road:
    """A lane over a socket pair: what the driver and the engine do for it, and what it asked of them."""

    def __init__(self, codec: Any, flight: Any = None) -> None:
        self.codec = codec
        ours, self.peer = socket.socketpair()
        ours.setblocking(False)
        self.sock = ours
        self.reader_bell, self.end_bell = Bell(), Bell()
        self.reading = threading.RLock()
        self.handed: deque[Any] = deque()
        self.inside = False
        self.budget = Budget()
        self.link = SimpleNamespace(outbox=[], outbox_bytes=0, last_read=0.0)
        self.connection = SimpleNamespace(
            parked=True, writing=False, handed=False, closing=False, broken=None, link=self.link, last_borrow=0.0
        )
        self.flight = codec.EntryFlight(1, "me", -1, 1 << 20) if flight is None else flight
        self.reader = codec.FrameReader()
        self.dispatched: list[tuple[list[Any], int]] = []
        self.lane = codec.Lane(self.budget, Slot, self.give_up)

    def open(self, number: int = 5) -> bool:
        opened: bool = self.lane.open(self.flight, self, number)
        return opened

    @property
    def fd(self) -> int:
        return self.sock.fileno()

    def mine(self) -> bool:
        return self.inside

    @property
    def ring(self) -> int:
        return self.reader_bell.ring_fd

    @property
    def bell(self) -> int:
        return self.end_bell.fd

    def rung(self) -> bool:
        try:
            return bool(os.read(self.reader_bell.fd, 8))
        except BlockingIOError:
            return False

    def dispatch(self, connection: Any, events: list[Any], got: int) -> None:
        self.dispatched.append((events, got))
        if self.reader.error is not None or not got:
            self.connection.link = None  # as the driver does with a stream that has ended, or that nobody can read
        self.lane.shut(9.0)
        self.flight.take_receipts([event for event in events if event[0] == self.codec.SEND_RECEIPT], 0)

    def give_up(self) -> None:
        self.lane.shut(9.0)

    def answer(self, *numbers: int, before: bytes = b"", seconds: float = 0.0) -> threading.Thread:
        """Receipts once something has come, or after a while."""

        def work() -> None:
            self.peer.recv(65536)
            if seconds:
                threading.Event().wait(seconds)
            self.peer.sendall(before + b"".join(self.codec.encode_receipt(1, number, 7, number) for number in numbers))

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def clog(self) -> None:
        """The other end reads nothing, until there is no room."""
        with suppress(BlockingIOError):
            while self.sock.send(bytes(65536)):
                pass

    def close(self) -> None:
        self.sock.close()
        self.peer.close()

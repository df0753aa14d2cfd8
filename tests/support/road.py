"""Lanes of native requests over a socket pair: what the driver and the engine do for them, and what they asked."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

from mqclient.core.budget import Budget
from mqclient.core.slot import Slot
from mqclient.io.poller import Bell

PATIENCE_MS = 20_000
"""A thread of a test may be kept off a busy machine's processors for more than the usual 100."""


class Pair:
    """A passage over a socket pair: what the driver does for a lane, and what it was asked to."""

    def __init__(self, codec: Any) -> None:
        self.codec = codec
        ours, self.peer = socket.socketpair()
        ours.setblocking(False)
        self.sock = ours
        self.reader_bell, self.end_bell = Bell(), Bell()
        self.reading = threading.RLock()
        self.taken = False
        self.handed: deque[Any] = deque()
        self.inside = False
        self.link: Any = SimpleNamespace(outbox=[], outbox_bytes=0, last_read=0.0)
        self.connection: Any = SimpleNamespace(
            parked=True,
            lent=0,
            writing=False,
            handed=False,
            closing=False,
            broken=None,
            link=self.link,
        )
        self.reader = codec.FrameReader()
        self.dispatched: list[tuple[list[Any], int]] = []

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

    def answered_by(self, answer: bytes, seconds: float = 0.0) -> threading.Thread:
        """Once something has come, or after a while."""

        def work() -> None:
            self.peer.recv(65536)
            if seconds:
                threading.Event().wait(seconds)
            self.peer.sendall(answer)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    @contextmanager
    def interrupting(self) -> Iterator[None]:
        """Ctrl-C when a request is on its way, so that its sender, the main thread, waits, or will at once."""

        def work() -> None:
            self.peer.recv(1, socket.MSG_PEEK)
            time.sleep(0.005)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield
        except KeyboardInterrupt:
            return
        finally:
            thread.join()
        raise AssertionError("no Ctrl-C came out of it")

    def clog(self) -> None:
        """The other end reads nothing, until there is no room."""
        with suppress(BlockingIOError):
            while self.sock.send(bytes(65536)):
                pass

    def check_left_over(self, slot: Slot[Any]) -> None:
        """What the socket did not take is in the outbox, and the reader thread was told to write it."""
        assert not slot.done
        (rest,) = self.link.outbox
        assert self.link.outbox_bytes == len(rest) > 100
        assert self.connection.writing
        assert self.connection.handed
        assert list(self.handed) == [self.connection]
        assert self.rung()

    def close(self) -> None:
        self.sock.close()
        self.peer.close()


class Road(Pair):
    """Pulsar's."""

    def __init__(self, codec: Any, flight: Any = None) -> None:
        super().__init__(codec)
        self.budget = Budget()
        self.flight = codec.EntryFlight(1, "me", -1, 1 << 20) if flight is None else flight
        self.lane = codec.Lane(self.budget, Slot, self.give_up)
        self.lane.patience_ms = PATIENCE_MS

    def open(self, number: int = 5) -> bool:
        opened: bool = self.lane.open(self.flight, self, number)
        return opened

    def dispatch(self, connection: Any, events: list[Any], got: int) -> None:
        super().dispatch(connection, events, got)
        self.lane.shut(9.0)
        self.flight.take_receipts([event for event in events if event[0] == self.codec.SEND_RECEIPT], 0)

    def open_until_the_stream_ends(self) -> None:
        """Nothing else is dispatched, and then the engine gives the connection up."""

        def dispatch(connection: Any, events: list[Any], got: int) -> None:
            assert (events, got) == ([], 0)
            self.lane.shut(9.0)
            connection.link = None
            connection.closing = True

        self.dispatch = dispatch  # type: ignore[method-assign]
        self.lane.shut(9.0)
        assert self.open()

    def give_up(self) -> None:
        self.lane.shut(9.0)

    def answer(self, *numbers: int, before: bytes = b"", seconds: float = 0.0) -> threading.Thread:
        """Receipts once something has come, or after a while."""
        receipts = [self.codec.encode_receipt(1, number, 7, number) for number in numbers]
        return self.answered_by(before + b"".join(receipts), seconds)


class RemotingRoad(Pair):
    """RocketMQ's."""

    def __init__(self, codec: Any) -> None:
        super().__init__(codec)
        self.lane = codec.Lane(self.late)
        self.lane.patience_ms = PATIENCE_MS
        self.waiting: dict[int, Slot[Any]] = {}
        """By number: who waits for what the engine is told."""

    def late(self, crossing: Any) -> Any:
        if crossing.slot is None:
            slot: Slot[Any] = Slot()
            assert crossing.take(slot)
            self.waiting[crossing.opaque] = slot
        return crossing.slot

    def dispatch(self, connection: Any, events: list[Any], got: int) -> None:
        super().dispatch(connection, events, got)
        for frame in events:
            slot = self.waiting.pop(frame.opaque, None)
            if slot is not None:
                slot.complete(frame)

    def crossing(self, number: int) -> Any:
        return self.codec.Crossing(self, number, "mine")

    def request(self, number: int) -> bytes:
        frame: bytes = self.codec.encode_frame(310, number, fields={"b": "t"}, body=b"x" * 100)
        return frame

    def reply(self, number: int, code: int = 0) -> bytes:
        frame: bytes = self.codec.encode_frame(code, number, flag=1, fields={"queueOffset": str(number)})
        return frame

"""Owns one open socket of the threads driver: its two claims (who reads, who writes) and the calls that move bytes."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from threading import get_ident
from time import monotonic, sleep
from typing import Any

from mqclient.core.link import Buffer, Link, unsent
from mqclient.io.poller import READ, WRITE
from mqclient.io.sockets import GATHER

SendNow = Callable[[int, Sequence[Buffer]], int]
AGAIN = (-errno.EAGAIN, -errno.EWOULDBLOCK, -errno.EINTR)
_READ_SIZE = 256 * 1024


class Connection:
    """The driver's handle of a link, for one epoch of it.

    `reading` is held by whoever reads: the reader thread, or a caller that borrowed it, also while it enters with what
    it read, so frames keep their order. `writing` is changed inside entries only: set from the moment when somebody
    took on to write until the outbox was seen empty; `handed` while that somebody is the reader thread.
    The socket is closed by the reader thread alone, holding both claims, so no number of a descriptor is ever used by
    one thread while another closes it and a third one gets it anew.
    """

    def __init__(self, link: Link, send_now: SendNow | None) -> None:
        self.link: Link | None = link
        self.sock: socket.socket | None = None
        self.fd = -1
        self.reading = threading.RLock()  # it tells whether it is ours, also after Ctrl-C
        self.borrowed = False
        """Switched off in the poller: a caller reads, or did a moment ago."""
        self.lent = 0
        """Not 0: a row of callers reads, one after the other (`Lane` in mqclient/_native/pulsar.pyi), and nobody else,
        whoever holds `reading`; but the thread of this number, which tells the engine what it read. Set by who holds
        `reading`, taken back by the last one of the row."""
        self.parked = False
        """Nobody listens to it: the next caller is about to come, and the reader thread looks whether they still do."""
        self.can_park = hasattr(link.reader, "look_after")
        self.streak = 0
        """Borrowed reads since the reader thread read something last."""
        self.writing = False
        self.handed = False
        self.blocked = False
        """The reader thread waits until it can write."""
        self.closing = False
        self.half_closed = False
        """All is written and our end said so; what still comes is read and dropped, until the other end closes."""
        self.linger_until = inf
        self.remote = link.remote
        self.broken: BaseException | None = None
        """Why writing or reading failed; the reader thread ends the connection."""
        self.final: list[Buffer] = []
        """What the outbox held when the link left."""
        self.reader: Any = link.reader
        self._send_now = send_now
        self.receive_now: Callable[[], tuple[list[Any], int]] | None = None
        """`receive` in one native call, where the reader has it."""
        self.wait: Callable[[int, int, int], int] | None = None
        """Waits for bytes, where the reader can: descriptor, milliseconds, and a bell that ends it."""
        self.writes_at_once = False
        """Sending neither blocks nor lets others run meanwhile: `write_all` may be used."""
        self._tls_lock: threading.Lock | None = None
        self._room = memoryview(b"")

    def opened(self, sock: socket.socket, remote: str) -> None:
        """The socket is connected; choose how to move bytes."""
        self.sock = sock
        self.remote = remote
        self.fd = sock.fileno()
        if isinstance(sock, ssl.SSLSocket):
            self._tls_lock = threading.Lock()  # OpenSSL allows one call at a time on one connection
            self._send_now = None
        else:
            native = getattr(self.reader, "receive_into", None)
            if native is not None:
                self.receive_now = partial(native, self.fd)
            self.wait = getattr(self.reader, "wait", None)
            self.writes_at_once = self._send_now is not None
        if self.receive_now is None:
            self._room = memoryview(bytearray(_READ_SIZE))

    @property
    def mask(self) -> int:
        """What the reader thread wants to be told of."""
        return (0 if self.borrowed else READ) | (WRITE if self.blocked else 0)

    def expired(self, now: float) -> bool:
        """It is being closed and took too long over its last bytes."""
        return self.closing and now >= self.linger_until

    # ---- reading, by whoever holds `reading`

    def claim(self) -> bool:
        """Whether `reading` is ours now, without waiting."""
        if not self.reading.acquire(False):
            return False
        if self.lent and self.lent != get_ident():
            self.reading.release()
            return False
        return True

    def take_over(self, seconds: float) -> None:
        """Take `reading`, whoever has it, at the latest after so long: all who read are told to go."""
        until = monotonic() + seconds
        self.reading.acquire(timeout=seconds)
        while self.lent and monotonic() < until:  # who holds `reading` keeps new ones out
            sleep(0.001)

    def receive(self) -> tuple[list[Any], int]:
        """The frames of one read; bytes read, 0 at the end of the stream, or -errno."""
        if self.receive_now is not None:
            return self.receive_now()
        try:
            if self._tls_lock is not None:
                return self._receive_tls()
            assert self.sock is not None
            count = self.sock.recv_into(self._room)
        except BlockingIOError:
            return [], -errno.EAGAIN
        except OSError as error:
            self.broken = error
            return [], -(error.errno or errno.EIO)
        return (self.reader.feed(self._room[:count]) if count else []), count

    def _receive_tls(self) -> tuple[list[Any], int]:
        """All that is decrypted already: the poller does not see what OpenSSL holds."""
        assert isinstance(self.sock, ssl.SSLSocket)
        assert self._tls_lock is not None
        frames: list[Any] = []
        total = 0
        while True:
            try:
                with self._tls_lock:
                    count = self.sock.recv_into(self._room)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return frames, total or -errno.EAGAIN
            except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
                count = 0
            except OSError:
                # OpenSSL 3.6 (CPython 3.14) answers by itself what it reads, and the other side may be gone.
                if not frames:
                    raise
                count = 0
            if not count:
                return frames, total  # the next read tells the end again
            total += count
            frames += self.reader.feed(self._room[:count])

    # ---- writing, by whoever has claimed it

    def swap(self) -> list[Buffer]:
        """Take the outbox (inside an entry)."""
        if self.link is None:
            out, self.final = self.final, []
        else:
            out, self.link.outbox = self.link.outbox, []
            self.link.outbox_bytes = 0
        return out

    def put_back(self, rest: list[Buffer]) -> None:
        """What could not be written goes in front of what others appended meanwhile (inside an entry)."""
        if self.link is None:
            self.final[:0] = rest
        else:
            self.link.outbox[:0] = rest
            self.link.outbox_bytes += sum(map(len, rest))

    def write_all(self) -> bool:
        """Write the outbox under the lock, and give the claim back; False if the reader thread has to go on with it.

        The call never blocks and keeps the GIL, so that nobody could use the lock meanwhile: letting go of it and
        taking it again would be all that it costs.
        """
        link = self.link
        if link is None:
            out, self.final = self.final, []
            size = sum(map(len, out))
        else:
            out, size = link.outbox, link.outbox_bytes
            link.outbox, link.outbox_bytes = [], 0
        try:
            assert self._send_now is not None
            sent = self._send_now(self.fd, out)
            if sent == size:
                self.writing = self.handed = False
                return True
            rest = self._go_on(out, sent)
        except BaseException as error:  # Ctrl-C: how much went out is not known, the connection is of no use
            self.broken = error
            raise
        if rest:
            self.put_back(rest)
            self.blocked = True
        elif self.broken is None:
            self.writing = self.handed = False
        return not self.writing

    def _go_on(self, out: list[Buffer], sent: int) -> list[Buffer]:
        """After a first send that did not take all."""
        if sent in AGAIN:
            return out
        if sent < 0:
            self.broken = OSError(-sent, os.strerror(-sent))
            return []
        return self.write(unsent(out, sent))

    def write(self, out: list[Buffer]) -> list[Buffer]:
        """Write until all is out or the socket takes no more; what is left. An error is kept in `broken`."""
        while out:
            part = out if len(out) <= GATHER else out[:GATHER]
            sent = self._send(part)
            if sent < 0:
                if sent not in AGAIN:
                    self.broken = self.broken or OSError(-sent, os.strerror(-sent))
                    return []
                return out
            out = [] if part is out and sent == sum(map(len, part)) else unsent(out, sent)
        return out

    def _send(self, part: list[Buffer]) -> int:
        if self._send_now is not None:
            return self._send_now(self.fd, part)
        assert self.sock is not None
        try:
            if self._tls_lock is None:
                return self.sock.sendmsg(part)
            with self._tls_lock:
                return self.sock.send(part[0] if len(part) == 1 else b"".join(part))
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return -errno.EAGAIN
        except OSError as error:
            self.broken = error
            return -(error.errno or errno.EIO)

    def half_close(self, until: float) -> None:
        """Say that nothing more comes. Closing with bytes unread would reset the connection, and the peer would lose
        what we wrote last."""
        self.half_closed = True
        self.linger_until = min(self.linger_until, until)
        assert self.sock is not None
        try:
            self.sock.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.broken = error

    def close(self) -> None:
        """Close without any goodbye; what the goodbye was stood in the outbox."""
        if self.sock is not None:
            self.sock.close()
            self.sock = None

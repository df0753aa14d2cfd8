"""Owns the way to an open socket: look the name up, try its addresses, shake hands; all under one deadline."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

from mqclient.core.driver import Address
from mqclient.io.poller import READ, WRITE, Poller
from mqclient.io.sockets import tune
from mqclient.io.tls import Encrypted

_IN_PROGRESS = (0, errno.EINPROGRESS, errno.EWOULDBLOCK)
Candidate = tuple[int, int, int, str, Any]


class Dial:
    """One attempt of the threads driver, advanced by its reader thread and never blocking it.

    `advance` goes on as far as it can. Then either it ended (`done`, with `sock` or `error`), or it waits for its
    socket, which it told the poller, for the lookup thread, or for `until`, when the next address gets its turn.
    """

    def __init__(self, address: Address, deadline: float, poller: Poller, wake: Callable[[], None]) -> None:
        self.address = address
        self.deadline = deadline
        self.until = deadline
        self.sock: socket.socket | None = None
        self.done = False
        self.error: BaseException | None = None
        self._poller = poller
        self._wake = wake
        self._candidates: list[Candidate] | None = None
        self._stage: Callable[[float], bool] = self._look_up

    def advance(self, now: float) -> bool:
        """Go on; True when it ended."""
        if not self.done and now >= self.deadline:
            self._end(self.error or TimeoutError("no connection in time"))
        try:
            while not self.done and self._stage(now):
                pass
        except (OSError, ValueError) as error:  # ValueError: a host name that cannot be one
            self._end(error)
        return self.done

    def abandon(self) -> None:
        """Nobody wants it any more."""
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        self.done = True
        self.error = error
        self._drop()

    def _drop(self) -> None:
        if self.sock is not None:
            self._poller.forget(self.sock.fileno())
            self.sock.close()
            self.sock = None

    # ---- stages: True means that the next one can be tried at once

    def _look_up(self, now: float) -> bool:
        numeric = _numeric(self.address)
        if numeric is not None:
            self._candidates = [numeric]
            self._stage = self._next
            return True
        # A lookup can take as long as the system likes: it gets a thread of its own, which nobody waits for.
        self._stage = self._looking_up
        threading.Thread(target=self._resolve, name=f"mqclient-lookup-{self.address.host}", daemon=True).start()
        return False

    def _resolve(self) -> None:
        try:
            self._candidates = list(socket.getaddrinfo(self.address.host, self.address.port, type=socket.SOCK_STREAM))
        except (OSError, ValueError) as error:
            self.error = error
            self._candidates = []
        self._wake()

    def _looking_up(self, now: float) -> bool:
        if self._candidates is None:
            return False
        self._stage = self._next
        return True

    def _next(self, now: float) -> bool:
        """Begin with the next address; each gets its share of the time that is left."""
        self._drop()
        if not self._candidates:
            self._end(self.error or OSError(f"{self.address.host} has no address"))
            return False
        family, kind, protocol, _, target = self._candidates.pop(0)
        self.until = now + (self.deadline - now) / (len(self._candidates) + 1)
        self.sock = socket.socket(family, kind, protocol)
        tune(self.sock)
        code = self.sock.connect_ex(target)
        if code not in _IN_PROGRESS:
            self.error = OSError(code, os.strerror(code))
            return True
        self._stage = self._connecting
        self._poller.set(self.sock.fileno(), WRITE)
        return code == 0

    def _connecting(self, now: float) -> bool:
        assert self.sock is not None
        code = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code == 0:
            try:
                self.sock.getpeername()
            except OSError:  # not there yet
                if now < self.until:
                    return False
                code = errno.ETIMEDOUT
        if code:
            self.error = OSError(code, os.strerror(code))
            self._stage = self._next
            return True
        if self.address.tls is None:
            self.done = True
            return False
        assert isinstance(self.address.tls, Encrypted)
        self.sock = self.address.tls.context.wrap_socket(
            self.sock, server_hostname=self.address.tls.server_name or self.address.host, do_handshake_on_connect=False
        )
        self.until = self.deadline
        self._stage = self._shaking_hands
        return True

    def _shaking_hands(self, now: float) -> bool:
        assert isinstance(self.sock, ssl.SSLSocket)
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            self._poller.set(self.sock.fileno(), READ)
        except ssl.SSLWantWriteError:
            self._poller.set(self.sock.fileno(), WRITE)
        else:
            self.done = True
        return False


def _numeric(address: Address) -> Candidate | None:
    """The host as an address that needs no lookup."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, address.host)
        except OSError:
            continue
        return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address.host, address.port))
    return None

"""Owns the reader thread: what it sleeps on, connections being made, read, finished and closed."""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from math import inf
from threading import get_ident
from time import monotonic
from typing import Any, Protocol

from mqclient.core.driver import Address, Now
from mqclient.core.link import Link
from mqclient.io.connect import Dial
from mqclient.io.connection import AGAIN, Connection
from mqclient.io.passage import Passage
from mqclient.io.poller import READ, WRITE, Bell, NoBell, new_poller
from mqclient.io.sockets import name_of

logger = logging.getLogger("mqclient.io")

PARK = 0.005
"""Seconds for which a connection stays switched off after borrowed reading, if its callers come one after the other."""
LINGER = 3.0
"""Seconds for the last bytes of a connection that is being closed."""
_DRAIN = 0.5
"""Seconds that the other end then has to close, too."""


class Entered(AbstractContextManager[Now], Protocol):
    """What the reader thread needs of its driver."""

    alarm: float

    def fire(self) -> None: ...

    def write_rest(self, connection: Connection) -> None: ...


class ReaderThread:
    """Started by the first connection or alarm; daemon, so that a forgotten client never keeps a process alive.

    Everything private runs on the thread itself, except `read` and `lose`, which also callers use that borrowed a
    connection's reading.
    """

    def __init__(self, driver: Entered, name: str) -> None:
        self._driver = driver
        self._poller = new_poller()
        self._bell = Bell()
        self._poller.set(self._bell.fd, READ)
        self._new: deque[tuple[Connection, Address, float]] = deque()
        self._handed: deque[Connection] = deque()
        self._dials: dict[Connection, Dial] = {}
        self._connections: dict[int, Connection] = {}
        self._parked: set[Connection] = set()
        self._asleep_until = -inf
        self._stop_at: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"{name}-reader", daemon=True)
        self._thread.start()
        self.ident = self._thread.ident
        self.lends = self._poller.shared
        """Whether callers may borrow reading."""

    # ---- called by any thread

    def connections(self) -> list[Connection]:
        """Those that are open."""
        return list(self._connections.values())

    def dial(self, connection: Connection, address: Address, deadline: float) -> None:
        self._new.append((connection, address, deadline))
        self.wake()

    def hand(self, connection: Connection) -> None:
        """Go on with it: write its rest, watch it, end it or close it, as its state says."""
        self._handed.append(connection)
        self.wake()

    def passage(self, connection: Connection, link: Link, bell: Bell, mine: Callable[[], bool]) -> Passage:
        return Passage(connection, link, self.read, self._handed, self._bell, bell, mine)

    def wake(self) -> None:
        if get_ident() != self._thread.ident:
            self._bell.ring()

    def park(self, connection: Connection) -> None:
        """Leave it switched off for the next caller; listen to it again when none came for a while."""
        connection.parked = True
        self._parked.add(connection)
        self.wake()

    def gives_up(self, connection: Connection, now: float) -> bool:
        """Whether it is parked now for callers that are about to come, where callers may read at all."""
        if self.lends:
            connection.reader.last_borrow = now
            connection.borrowed = True
            self.watch(connection)
            self.park(connection)
        return self.lends

    def alarm_is(self, when: float) -> None:
        """Race: the thread notes until when it sleeps, *then* looks at the alarm again; the driver wrote the alarm,
        *then* looks here until when it sleeps. A later alarm, or one while it is awake, costs no wake-up."""
        if when < self._asleep_until:
            self.wake()

    def watch(self, connection: Connection) -> None:
        """Tell the poller what the connection waits for. Lock-free: two threads may change flags at once, and each
        looks again after its call, so the last call was made with the last flags."""
        mask = -1
        while mask != connection.mask and connection.sock is not None:
            mask = connection.mask
            self._poller.set(connection.fd, mask)

    def read(self, connection: Connection, frames: list[Any] | None = None, count: int = 0) -> None:
        """One read and what it brought, by whoever holds `reading`; or what somebody else read, holding it."""
        try:
            if frames is None:
                frames, count = (connection.receive_now or connection.receive)()
            if count > 0:
                with self._driver:
                    if connection.link is not None:
                        connection.link.on_frames(frames)
        except Exception as error:
            logger.exception("what %s sent could not be handled", connection.remote)
            self.lose(connection, error)
        except BaseException as error:
            connection.broken = error  # Ctrl-C, perhaps with frames in hand: the stream has a hole now
            raise
        else:
            if count == 0:
                self.lose(connection, None)
            elif count < 0 and count not in AGAIN:
                self.lose(connection, connection.broken or OSError(-count, os.strerror(-count)))

    def lose(self, connection: Connection, cause: BaseException | None) -> None:
        """The connection ended by itself: tell the link, then close."""
        with self._driver:
            link, connection.link = connection.link, None
            connection.closing = True
            connection.broken = connection.broken or cause or ConnectionResetError("closed by the other side")
            connection.final = []
            if link is not None:
                link.handle = None
                link.on_lost(cause)
        self.hand(connection)

    def stop(self) -> None:
        """Finish writing, close all, end the thread; returns when that is done, or soon after a second."""
        self._stop_at = monotonic() + LINGER
        self.wake()
        if self._thread.ident != get_ident():
            self._thread.join(LINGER + 1.0)

    def after_fork(self) -> None:
        """In the child: close our copies of the descriptors, without a word to the other side.

        The poller first: it is the parent's too, so nothing may be changed in it.
        """
        self._poller.close()
        for connection in self._connections.values():
            connection.close()
        for dial in self._dials.values():
            dial.abandon()

    # ---- the thread

    def _run(self) -> None:
        while not self._finished():
            events = self._wait(self._sleep_seconds())
            self._asleep_until = -inf
            try:
                self._turn(events)
            except Exception:  # a bug of ours or of an engine must not end the thread that everybody waits for
                logger.exception("the reader thread met an error")
        for connection in list(self._connections.values()):
            connection.take_over(LINGER)  # who borrowed it was woken before
            self._close_connection(connection)
        for dial in self._dials.values():
            dial.abandon()
        self._poller.close()
        self._bell = NoBell()  # the driver and we refer to each other: do not leave its closing to the collector

    def _finished(self) -> bool:
        if self._stop_at is None:
            return False
        return not (self._new or self._handed or self._connections) or monotonic() >= self._stop_at

    def _wait(self, seconds: float) -> list[tuple[int, int]]:
        """What the poller has; nothing as well, if somebody is to look whether callers still come."""
        parked = [connection.reader for connection in list(self._parked)]
        if parked and seconds:
            parked[0].look_after(self._poller.fd, parked, PARK, seconds)  # its bell, also for a new one
            seconds = 0.0
        return self._poller.wait(None if seconds == inf else seconds)

    def _sleep_seconds(self) -> float:
        if self._handed or self._new:  # by ourselves: nobody rang
            return 0.0
        while True:
            self._asleep_until = until = self._driver.alarm
            if self._driver.alarm >= until:
                break
        for dial in self._dials.values():
            until = min(until, dial.until)
        for connection in self._connections.values():
            if connection.closing:
                until = min(until, connection.linger_until)
        if self._stop_at is not None:
            until = min(until, self._stop_at)
        return max(0.0, until - monotonic())

    def _turn(self, events: list[tuple[int, int]]) -> None:
        bell = self._bell
        for fd, mask in events:
            connection = self._connections.get(fd)
            if fd == bell.fd:
                bell.silence()
            elif connection is not None:
                self._ready(connection, mask)
        while self._new:
            connection, address, deadline = self._new.popleft()
            self._dials[connection] = Dial(address, deadline, self._poller, self.wake)
        for connection, dial in list(self._dials.items()):
            self._advance(connection, dial)
        for _ in range(len(self._handed)):
            self._tend(self._handed.popleft())
        for connection in list(self._connections.values()):
            if connection.closing and monotonic() >= connection.linger_until:
                self._tend(connection)
        if self._parked:
            self._unpark(monotonic() - PARK)
        if self._stop_at is not None:
            for connection in list(self._connections.values()):
                self._let_go(connection, self._stop_at)
        if self._driver.alarm <= monotonic():
            self._driver.fire()

    def _unpark(self, before: float) -> None:
        for connection in list(self._parked):
            if connection.reader.last_borrow < before and connection.claim():
                self._parked.discard(connection)
                connection.parked = connection.borrowed = False
                self.watch(connection)
                connection.reading.release()

    def _let_go(self, connection: Connection, until: float) -> None:
        """The driver stops: end what the engine left open."""
        if not connection.closing:
            with self._driver:
                link, connection.link = connection.link, None
                connection.closing = True
                connection.linger_until = until
                if link is not None:
                    connection.final, link.outbox, link.handle = link.outbox, [], None
            self._handed.append(connection)

    def _ready(self, connection: Connection, mask: int) -> None:
        if mask & WRITE and connection.blocked:
            connection.blocked = False
            self.watch(connection)
            self._handed.append(connection)
        if mask & ~WRITE:
            if connection.claim():
                try:
                    connection.streak = 0
                    self.read(connection)
                finally:
                    connection.reading.release()
            else:  # a caller borrowed it and is about to switch it off: help, or we would come back at once
                self.watch(connection)

    def _advance(self, connection: Connection, dial: Dial) -> None:
        if connection.closing:
            dial.abandon()
        elif not dial.advance(monotonic()):
            return
        del self._dials[connection]
        if dial.sock is not None:
            self._open(connection, dial)
        elif not connection.closing:
            self.lose(connection, dial.error)

    def _open(self, connection: Connection, dial: Dial) -> None:
        assert dial.sock is not None
        try:
            local, remote = name_of(dial.sock.getsockname()), name_of(dial.sock.getpeername())
        except OSError as error:  # reset in this very moment
            dial.abandon()
            self.lose(connection, error)
            return
        connection.opened(dial.sock, remote)
        self._connections[connection.fd] = connection
        self.watch(connection)
        with self._driver:
            if connection.link is not None:
                connection.link.on_open(local, remote)

    def _tend(self, connection: Connection) -> None:
        """Finish what a caller could not, in the order: broken, writing, closing."""
        if connection.sock is None:
            return
        if connection.broken is not None and connection.link is not None:
            self.lose(connection, connection.broken)
        elif (
            connection.writing
            and connection.handed
            and connection.broken is None
            and not connection.expired(monotonic())
        ):
            if connection.blocked:
                self.watch(connection)
                return
            self._driver.write_rest(connection)
        if connection.closing and (not connection.writing or connection.handed):
            self._retire(connection)

    def _retire(self, connection: Connection) -> None:
        """Close what is over, unless a caller reads; it hands the connection over again when it left."""
        now = monotonic()
        over = connection.broken is not None or connection.expired(now)
        if not over and not connection.writing and not connection.half_closed:
            connection.half_close(now + _DRAIN)
            over = connection.broken is not None
        if over and connection.claim():
            self._close_connection(connection)

    def _close_connection(self, connection: Connection) -> None:
        del self._connections[connection.fd]
        self._parked.discard(connection)
        self._poller.forget(connection.fd)
        connection.close()

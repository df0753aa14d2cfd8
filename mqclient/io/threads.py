"""Owns the threads driver: one reader thread a client, callers that write and at times read for themselves."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from math import inf
from threading import get_ident
from time import monotonic, time_ns
from types import TracebackType
from typing import Any, TypeVar

from mqclient.core.driver import Address, Alarmed, Now
from mqclient.core.link import Link
from mqclient.core.slot import Slot
from mqclient.errors import ClosedError, DeadlineError
from mqclient.io import fork
from mqclient.io.borrow import borrow, glance, streams
from mqclient.io.connection import Connection, SendNow
from mqclient.io.nested import EnteredTwice, refuse_nested
from mqclient.io.passage import Passage
from mqclient.io.poller import Bell
from mqclient.io.pool import UserThreads
from mqclient.io.reader import LINGER, ReaderThread
from mqclient.io.waiting import Desk, Waiter

T = TypeVar("T")
_new = tuple.__new__  # half the time of calling the class
Delivery = tuple[Callable[[Any], None], Any]
logger = logging.getLogger("mqclient.io")

_ROUNDS = 8
"""How often a leaving caller looks for more to write: one caller must not write for all others without end."""
_BORROWERS = 2
"""With more callers waiting, one reader thread serves them better (measured)."""


class ThreadsDriver:
    """The engine under one lock; see DESIGN 3.2.

    Leaving an entry: calls for the end of the turn, then deliveries are swapped (always, before the lock is released
    for the first time), then outboxes are written outside the lock, then deliveries are made.
    `send_now` is the native sending call; without it the socket object sends.
    """

    def __init__(self, name: str = "mqclient", *, send_now: SendNow | None = None) -> None:
        self.name = name
        self.now = Now(monotonic(), time_ns() // 1_000_000)
        self._send_now = send_now
        self._alarmed: Alarmed | None = None
        self._closed = False
        self._context = copy_context()
        self._reset()
        fork.watch(self)

    def _reset(self) -> None:
        """The state of a driver without thread and connections: new, or in a forked child."""
        # An RLock tells whether it is ours, even if Ctrl-C came between its taking and our noting it.
        self._lock = threading.RLock()
        self._inside = False
        self._deliveries: list[Delivery] = []
        self._turn_ends: list[Callable[[], None]] = []
        self._dirty: list[Connection] = []
        self._last: Connection | None = None
        self._waiting: set[Waiter] = set()
        self._callers: set[Waiter] = set()
        """Those that wait for a reply; the others wait until there is something to do."""
        self._desk = Desk()
        self._gong: Bell | None = None
        """For those who wait without an entry: rung once, when the client is closed."""
        self._users = UserThreads(self.name, self._context)
        self._reader: ReaderThread | None = None
        self.alarm = inf

    # ---- entering and leaving

    def enter(self) -> ThreadsDriver:
        return self

    def __enter__(self) -> Now:
        lock = self._lock
        try:
            lock.acquire()
            if self._inside:  # nobody else can be: the lock is ours
                self._inside_already()
            self._inside = True
            self.now = now = _new(Now, (monotonic(), time_ns() // 1_000_000))
            return now
        except EnteredTwice:
            lock.release()
            raise
        except BaseException:  # Ctrl-C
            while lock._is_owned():  # type: ignore[attr-defined]
                self._inside = False
                lock.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        dirty: list[Connection] = []
        deliveries: list[Delivery] = []
        left: Iterator[Delivery] | None = None
        delivery: Delivery | None = None
        try:
            if kind is not None and not issubclass(kind, Exception):
                self._mend()
            while self._turn_ends:
                calls, self._turn_ends = self._turn_ends, []
                for call in calls:
                    call()
            # What is there is swapped before the lock is released for the first time: two threads that share one list
            # would make the same deliveries.
            if self._deliveries:
                deliveries, self._deliveries = self._deliveries, []
            if self._dirty:
                dirty, self._dirty = self._dirty, []
                while dirty:
                    connection = dirty[0]
                    if not connection.writes_at_once:
                        self._write(connection)
                    elif not connection.write_all() or connection.closing:
                        self._hand(connection)
                    del dirty[0]
            self._inside = False
            self._lock.release()
            if deliveries:
                left = iter(deliveries)
                for delivery in left:
                    delivery[0](delivery[1])
        except BaseException as failure:
            again = [] if delivery is None or isinstance(failure, Exception) else [delivery]
            self._leave_after(dirty, again, deliveries if left is None else left)
            raise

    def _inside_already(self) -> None:
        """We hold the lock and come in again: a bug, or Ctrl-C in the moment before leaving began.

        Only the main thread is interrupted so; there we leave for the one that could not. That one's frames are gone;
        where there are any, a signal handler or a finalizer came while they were at work, and may not disturb them.
        """
        refuse_nested(sys._getframe(1))
        self._lock.release()  # the lock counts, and this was the second time
        self.__exit__(None, None, None)
        self._lock.acquire()

    def _mend(self) -> None:
        """Ctrl-C came inside: perhaps between a change and the call that tells us of it, so look ourselves."""
        for connection in self._reader.connections() if self._reader is not None else []:
            if connection.link is not None and connection.link.outbox:
                self.wants_write(connection.link)
        self.arm(self.now.mono)

    def _leave_after(self, dirty: list[Connection], again: list[Delivery], left: Iterable[Delivery]) -> None:
        """Leaving was cut short by an error or Ctrl-C: others still wait for the lock and for what is to be delivered.

        A delivery that Ctrl-C cut short is made again; repeating one does no harm.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]
            deliveries, self._deliveries = self._deliveries, []
            left = [*left, *deliveries]
            dirty, self._dirty = [*dirty, *self._dirty], []
            for connection in dirty:
                self._hand(connection)
            self._inside = False
            self._lock.release()
        for call, argument in [*again, *left]:
            try:
                call(argument)
            except Exception:
                logger.exception("a delivery failed")

    def _write(self, connection: Connection) -> None:
        """Write outside the lock, which is held on entry and on return; `writing` is ours.

        Sequence: claim (in `wants_write`), swap, release, write, take, look again; only an outbox seen empty inside
        gives the claim back, so nothing that others append meanwhile is forgotten.
        """
        for _ in range(_ROUNDS):
            out = connection.swap()
            if not out:
                connection.writing = connection.handed = False
                if connection.closing:
                    self._hand(connection)
                return
            self._inside = False
            try:
                self._lock.release()
                rest = connection.write(out)
                self._lock.acquire()
            except BaseException as error:  # Ctrl-C: how much went out is not known, the connection is of no use
                connection.broken = error
                if not self._lock._is_owned():  # type: ignore[attr-defined]
                    self._lock.acquire()
                raise
            finally:
                self._inside = True
            if connection.broken is not None:
                break
            if rest:
                connection.put_back(rest)
                connection.blocked = True
                break
        self._hand(connection)

    def _hand(self, connection: Connection) -> None:
        """The reader thread goes on with it: writes the rest, or ends it."""
        connection.handed = True
        self._start().hand(connection)

    def _start(self) -> ReaderThread:
        if self._reader is None:
            self._reader = ReaderThread(self, self.name)
        return self._reader

    # ---- what links and engines call, inside an entry

    def attach(self, alarmed: Alarmed) -> None:
        self._alarmed = alarmed

    def connect(self, address: Address, link: Link, deadline: float) -> None:
        if self._closed:
            raise ClosedError("the client is closed")
        connection = link.handle = Connection(link, self._send_now)
        self._start().dial(connection, address, deadline)

    def disconnect(self, link: Link) -> None:
        connection: Connection | None = link.handle
        if connection is None:
            return
        link.handle = None
        connection.final = link.outbox
        connection.link = None
        link.outbox = []
        link.outbox_bytes = 0
        connection.closing = True
        connection.linger_until = self.now.mono + LINGER
        if not connection.writing and connection.sock is not None:
            connection.writing = True
            self._dirty.append(connection)
        self._start().wake()

    def wants_write(self, link: Link) -> None:
        connection: Connection | None = link.handle
        if connection is None:  # the driver has ended, and tells who waits
            return
        self._last = connection
        if not connection.writing:
            connection.writing = True
            self._dirty.append(connection)

    def arm(self, when: float) -> None:
        if when < self.alarm:
            self.alarm = when
            self._start().alarm_is(when)

    def end_of_turn(self, call: Callable[[], None]) -> None:
        self._turn_ends.append(call)

    def deliver(self, call: Callable[[Any], None], argument: Any) -> None:
        self._deliveries.append((call, argument))

    def run_user(self, call: Callable[[Any], Any], argument: Any) -> None:
        self._deliveries.append((self._users.run, [(call, argument)]))

    def passage(self, link: Link, company: bool = False) -> Passage | None:
        """Where native code may send and read the answer by itself, see io/passage.py; None while callers do not come
        one after the other, nor, with `company` (inside an entry), several of them all the time."""
        connection: Connection | None = link.handle
        reader = self._reader
        if connection is None or reader is None or not connection.writes_at_once:
            return None
        if not connection.parked and not (company and reader.gives_up(connection, self.now.mono)):
            return None
        return reader.passage(connection, link, self._own_gong(), self._lock._is_owned)  # type: ignore[attr-defined]

    def _own_gong(self) -> Bell:
        """Race: two threads that made one each would wait for one that nobody rings."""
        gong = self._gong
        if gong is None:
            with self._lock:
                gong = self._gong = self._gong or Bell()
        return gong

    # ---- what the face calls

    def deadline(self, timeout: float | None) -> float | None:
        return None if timeout is None else monotonic() + timeout

    def wait(self, slot: Slot[T], deadline: float | None = None) -> T:
        """Block until the slot is done; DeadlineError at the deadline. Ctrl-C ends it, the request goes on."""
        if slot.done:
            return slot.result()
        reader = self._reader
        if reader is not None and get_ident() == reader.ident:
            raise RuntimeError("a blocking call on the reader thread would wait for itself")
        if self._lock._is_owned():  # type: ignore[attr-defined]
            with self._lock:
                self._inside_already()
        connection = self._last
        if (
            (connection is not None and connection.parked)
            and (reader is not None and self._alone(slot))
            and glance(connection, reader, slot, deadline, self._own_gong().fd)
        ):
            return slot.result()
        waiter = Waiter(self.deliver)
        # Race: we note ourselves, *then* look whether it is closed; closing says so, *then* wakes whoever is noted.
        waiting = self._callers if slot.expects_reply else self._waiting
        waiting.add(waiter)
        slot.watch(waiter.on_done)
        try:
            if self._closed and not slot.done:
                raise ClosedError("the client is closed").about(outcome_unknown=slot.expects_reply)
            if connection is not None and reader is not None and self._lends(reader, waiting, connection):
                borrow(connection, reader, self._desk, waiter, slot, deadline)
            if not slot.done:
                self._sleep(waiter, slot, deadline)
            return slot.result()
        finally:
            waiting.discard(waiter)
            if not slot.done:
                slot.drop(waiter.on_done)

    def _alone(self, slot: Slot[Any]) -> bool:
        return slot.expects_reply and not self._callers

    def _lends(self, reader: ReaderThread, waiting: set[Waiter], connection: Connection) -> bool:
        return len(waiting) <= _BORROWERS and reader.lends and (waiting is self._callers or streams(connection))

    def _sleep(self, waiter: Waiter, slot: Slot[Any], deadline: float | None) -> None:
        while not slot.done:
            left = None if deadline is None else deadline - monotonic()
            # Race: the slot may have become done, *then* woken us, since the look above: so look again, after `woken`.
            if waiter.woken and not slot.done:
                raise ClosedError("the client was closed during the call").about(outcome_unknown=slot.expects_reply)
            if left is None or left > 0:
                waiter.sleep(left)
                continue
            self.fire()  # the engine may have the same deadline, and a better word for it
            if not slot.done:
                raise DeadlineError("the time given ran out")

    def close(self) -> None:
        """Write what is left, close the connections, end the threads; whoever still waits gets a ClosedError."""
        with self._lock:
            self._closed = True
            waiting = [*self._waiting, *self._callers]
        if self._gong is not None:
            self._gong.ring()
        for waiter in waiting:
            waiter.wake(None)
        if self._reader is not None:
            self._reader.stop()
        self._users.close()
        self._desk = Desk()
        fork.forget(self)

    def after_fork(self) -> None:
        """In the child: no thread, no lock and no connection of the parent is ours."""
        reader = self._reader
        self._reset()
        if reader is not None:
            reader.after_fork()
        on_fork = getattr(self._alarmed, "on_fork", None)
        if on_fork is not None:
            with self:
                on_fork()

    # ---- what the reader thread calls

    def fire(self) -> None:
        """Tell the engine that its alarm is due, if it is."""
        with self as now:
            if self.alarm > now.mono or self._alarmed is None:
                return
            self.alarm = inf
            try:
                self._alarmed.on_timer(now)
            except Exception:
                logger.exception("a timer failed")
                self.arm(now.mono)  # the ones after it are still to come

    def write_rest(self, connection: Connection) -> None:
        """Go on writing what a caller handed over; the claim went with it."""
        with self:
            connection.handed = False
            self._dirty.append(connection)

"""Owns the asyncio driver: everything runs on the loop that made it, and no thread is ours."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from asyncio import _get_running_loop
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from inspect import isawaitable
from threading import get_ident
from time import time_ns
from types import TracebackType
from typing import Any, TypeVar, cast

from mqclient.core.driver import Address, Alarmed, Now
from mqclient.core.link import Link
from mqclient.core.slot import Slot
from mqclient.errors import ClosedError, DeadlineError, MQError
from mqclient.io import leaving
from mqclient.io.sockets import name_of, reading_into, tune
from mqclient.io.tls import Encrypted

T = TypeVar("T")
_new = tuple.__new__  # half the time of calling the class
logger = logging.getLogger("mqclient.io")

_FORGETS_TO_PAUSE = (3, 12) <= sys.version_info < (3, 12, 9) or (3, 13) <= sys.version_info < (3, 13, 2)
"""There `writelines` never tells that the transport is full (CVE-2024-12254); and one to a transport that is closing
makes the loop watch a descriptor that is about to be closed: its next owner would never be read."""
LINGER = 3.0
"""Seconds for the last bytes of a connection that is being closed."""
_DRAIN = 0.5
"""Seconds that the other end has to close, too."""


class AsyncioDriver:
    """Entering is nearly free, as one loop runs one thing at a time; what it buys is order.

    Outboxes are written once per turn of the loop, so many sends of one turn become one write. Deliveries are made on
    leaving. `send_now` is for the threads driver, which sends by itself: here the loop's transports do.
    """

    def __init__(self, name: str = "mqclient", *, send_now: object = None) -> None:
        self.name = name
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time
        self.loop = self._loop
        """Of tasks that may await what `Slot.awaitable` says."""
        self._thread = get_ident()
        self.now = Now(self._loop.time(), time_ns() // 1_000_000)
        self._context = copy_context()
        self._alarmed: Alarmed | None = None
        self._alarm: asyncio.Handle | None = None
        self._due = 0.0  # of the alarm: handles of uvloop do not tell, if the time was over when they were made
        self._inside = False
        self._deliveries: list[tuple[Callable[[Any], None], Any]] = []
        self._turn_ends: list[Callable[[], None]] = []
        self._dirty: list[Connection] = []
        self._turn_asked = False
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False
        self.pid = os.getpid()
        self.left: dict[str, int] = {}
        """What was unsettled when somebody ended our tasks, until we are connected again."""
        leaving.note(self)

    def __del__(self) -> None:
        if not getattr(self, "_closed", True) and self.pid == os.getpid() and not sys.is_finalizing():
            leaving.tell(self)

    # ---- entering and leaving

    def enter(self) -> AsyncioDriver:
        return self

    def __enter__(self) -> Now:
        if _get_running_loop() is not self._loop:
            raise _elsewhere()
        if self._inside:
            raise RuntimeError("entered twice: a callback ran inside the engine")
        self._inside = True
        self.now = now = _new(Now, (self._time(), time_ns() // 1_000_000))
        return now

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside = False
        if self._deliveries:
            deliveries, self._deliveries = self._deliveries, []
            for call, argument in deliveries:
                call(argument)

    def _ask_turn(self) -> None:
        if not self._turn_asked:
            self._turn_asked = True
            self._loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._turn_asked = False
        if self._turn_ends:
            with self:
                calls, self._turn_ends = self._turn_ends, []
                for call in calls:
                    call()
        dirty, self._dirty = self._dirty, []
        for connection in dirty:
            connection.flush()

    # ---- what links and engines call, inside an entry

    def attach(self, alarmed: Alarmed) -> None:
        self._alarmed = alarmed

    def connect(self, address: Address, link: Link, deadline: float) -> None:
        if self._closed:
            raise ClosedError("the client is closed")
        connection = link.handle = Connection(self, link)
        self._connections.add(connection)
        connection.dialing = self._task(self._dial(connection, address, deadline))
        # Not by the task itself: one that is cancelled before its first step runs none of its lines.
        connection.dialing.add_done_callback(connection.dialed)

    def disconnect(self, link: Link) -> None:
        connection: Connection | None = link.handle
        if connection is not None:
            connection.leave()

    def wants_write(self, link: Link) -> None:
        self._dirty.append(link.handle)
        self._ask_turn()

    def arm(self, when: float) -> None:
        if self._alarm is not None:
            if self._due <= when:
                return
            self._alarm.cancel()
        self._due, self._alarm = when, self._loop.call_at(when, self._fire)

    def end_of_turn(self, call: Callable[[], None]) -> None:
        self._turn_ends.append(call)
        self._ask_turn()

    def deliver(self, call: Callable[[Any], None], argument: Any) -> None:
        self._deliveries.append((call, argument))

    def run_user(self, call: Callable[[Any], Any], argument: Any) -> None:
        self._deliveries.append((self._start_user, (call, argument)))

    # ---- what the face calls

    def here(self) -> bool:
        """Whether this is the loop's thread; asking for the running loop would cost a system call, a process id's."""
        return get_ident() == self._thread

    def deadline(self, timeout: float | None) -> float | None:
        return None if timeout is None else self._loop.time() + timeout

    def wait(self, slot: Slot[T], deadline: float | None = None) -> Awaitable[T]:
        """The slot's outcome, without a turn of the loop if it is there; cancelling only detaches this waiter.

        Give a deadline only for slots that the engine does not end at one: it costs a timer each.
        """
        if deadline is None and slot.awaitable:
            return slot  # type: ignore[return-value]
        return self._wait(slot, deadline)

    async def _wait(self, slot: Slot[T], deadline: float | None) -> T:
        if slot.done:
            return slot.result()
        if _get_running_loop() is not self._loop:
            raise _elsewhere()
        if self._closed:
            raise ClosedError("the client is closed")
        future = self._loop.create_future()
        timer = None if deadline is None else self._loop.call_at(deadline, self._overdue, future, deadline)

        def done(_: Slot[T]) -> None:
            if not future.done():
                future.set_result(None)  # a wake, never the value: a value in a cancelled future would be lost

        slot.then(done)
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)
            slot.drop(done)
            if timer is not None:
                timer.cancel()
        return slot.result()

    def _overdue(self, future: asyncio.Future[None], deadline: float) -> None:
        if self._alarm is not None and self._due <= deadline:
            self._fire()  # the engine has the same deadline, and a better word for it
        if not future.done():
            future.set_exception(DeadlineError("the time given ran out"))

    async def close(self) -> None:
        """Write what is left, close the connections; whoever still waits gets a ClosedError."""
        self._closed = True
        leaving.forget(self)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._end_turn()
        for connection in list(self._connections):
            connection.leave()
        for future in list(self._waiting):
            if not future.done():
                future.set_exception(ClosedError("the client was closed during the call"))
        ended = [connection.ended for connection in self._connections]
        if ended:
            await asyncio.wait(ended, timeout=LINGER + 0.5)

    # ---- the loop's side

    def _fire(self) -> None:
        if self._alarm is None:
            return
        self._alarm.cancel()
        self._alarm = None
        with self as now:
            if now.mono < self._due:  # loops wake a little early, by the resolution of their clock
                now = self.now = Now(self._due, now.wall_ms)
            if self._alarmed is not None:
                self._tell(self._alarmed, now)

    def _tell(self, alarmed: Alarmed, now: Now) -> None:
        try:
            alarmed.on_timer(now)
        except Exception:
            logger.exception("a timer failed")
            self.arm(now.mono)  # the ones after it are still to come

    async def _dial(self, connection: Connection, address: Address, deadline: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        timer = self._loop.call_at(deadline, task.cancel)
        options: dict[str, Any] = {}
        if address.tls is not None:
            assert isinstance(address.tls, Encrypted)
            options = {"ssl": address.tls.context, "server_hostname": address.tls.server_name or address.host}
        try:
            await self._loop.create_connection(lambda: connection, address.host, address.port, **options)
        except asyncio.CancelledError:
            pass  # at the deadline, or nobody wants it any more
        except (OSError, ValueError) as error:  # ValueError: a host name that cannot be one
            connection.cause = error
        finally:
            timer.cancel()

    def _task(self, coroutine: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._context.run(self._loop.create_task, coroutine)
        self._tasks.add(task)  # the loop itself holds tasks weakly
        task.add_done_callback(self._tasks.discard)
        return task

    def _start_user(self, job: tuple[Callable[[Any], Any], Any]) -> None:
        self._task(self._run_user(*job))

    async def _run_user(self, call: Callable[[Any], Any], argument: Any) -> None:
        try:
            outcome = call(argument)
            if isawaitable(outcome):
                await outcome
        except Exception:
            logger.exception("a user function failed")


class Connection(asyncio.BufferedProtocol):
    """The driver's handle of a link, for one epoch of it: the protocol of a transport.

    It reads into the frame reader's buffer, without a copy, or, where that has no vacancy, into one of its own: fresh
    `bytes` of the loop's 256 KiB would cost more than the rest of a small read.
    """

    def __init__(self, driver: AsyncioDriver, link: Link) -> None:
        self.link: Link | None = link
        self.transport: asyncio.Transport | None = None
        self.dialing: asyncio.Task[None] | None = None
        self.cause: BaseException = TimeoutError("no connection in time")
        self.ended: asyncio.Future[None] = driver._loop.create_future()
        self._driver = driver
        self._linger: asyncio.TimerHandle | None = None
        self._paused = False
        self._vacancy, self._filled = reading_into(link.reader)

    # ---- called by the driver

    def flush(self) -> None:
        """Hand the outbox to the transport, unless that has enough: what waits is to be seen in the outbox."""
        link = self.link
        if link is None or self.transport is None or self._paused or self.transport.is_closing():
            return
        out, link.outbox = link.outbox, []
        link.outbox_bytes = 0
        if len(out) == 1:
            self.transport.write(out[0])
        elif out and _FORGETS_TO_PAUSE:
            self.transport.write(b"".join(out))
        elif out:
            self.transport.writelines(out)

    def leave(self) -> None:
        """The link goes; what it wrote still goes out, within a limit."""
        self._paused = False
        self.flush()
        if self.link is not None:
            self.link.handle = None
            self.link = None
        if self.transport is not None:
            # Closing with bytes unread would reset the connection, and the peer would lose what we wrote last: so say
            # that nothing more comes, and read and drop until the other end closes.
            if self.transport.can_write_eof():
                self.transport.write_eof()
            else:
                self.transport.close()
            self._linger = self._driver._loop.call_later(_DRAIN, self._give_up)
        elif self.dialing is not None:
            self.dialing.cancel()

    def dialed(self, attempt: asyncio.Task[None]) -> None:
        """The attempt is over; `connection_made` was called if it succeeded."""
        if self.transport is None:
            if attempt.cancelled() and self.link is not None:
                self._driver.left = leaving.unsettled(self._driver)  # as `asyncio.run` ends: nobody asks any more
            self.connection_lost(self.cause)

    def _give_up(self) -> None:
        """The other end did not close in time; what is not written yet gets a little longer."""
        assert self.transport is not None
        if self.transport.get_write_buffer_size() and not self.transport.is_closing():
            self._linger = self._driver._loop.call_later(LINGER, self.transport.abort)
        else:
            self.transport.abort()

    # ---- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if (sock := transport.get_extra_info("socket")) is not None:
            tune(sock)
        if self.link is None:
            self.transport.abort()
            return
        self._driver.left = {}
        with self._driver.enter():
            local, remote = map(transport.get_extra_info, ("sockname", "peername"))
            self.link.on_open(name_of(local), name_of(remote))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._vacancy()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            with self._driver.enter():
                if self.link is not None:
                    self.link.on_frames(self._filled(nbytes))
        except Exception as error:
            logger.exception("what %s sent could not be handled", self.link.remote if self.link else "a peer")
            self._lose(error)
            assert self.transport is not None
            self.transport.abort()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        # Not at once: asyncio, which calls this while it writes, would end a connection twice whose next write fails.
        self._paused = False
        self._driver._loop.call_soon(self.flush)

    def connection_lost(self, error: BaseException | None) -> None:
        self._lose(error)
        self._driver._connections.discard(self)
        if self._linger is not None:
            self._linger.cancel()
        if not self.ended.done():
            self.ended.set_result(None)

    def _lose(self, cause: BaseException | None) -> None:
        link, self.link = self.link, None
        if link is not None:
            link.handle = None
            with self._driver.enter():
                link.on_lost(cause)


def _elsewhere() -> MQError:
    return MQError(
        "this asyncio client belongs to the event loop that made it; it was used from another thread, another loop or "
        "a forked process. Cure: make a client there, or use the sync client, which may be shared"
    )

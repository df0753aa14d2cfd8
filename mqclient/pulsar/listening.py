"""Owns handing messages to the user's handler: how many at once, in which order, and what its end means."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from mqclient.core.slot import Slot, Wake
from mqclient.core.steps import Steps
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.pulsar.hooking import observed

if TYPE_CHECKING:
    from mqclient.pulsar.subscribing import Engine

log = logging.getLogger("mqclient.pulsar")

GRACE = 30.0
"""Seconds that running handlers get when their consumer is closed."""
_IN_A_ROW, _IN_A_TURN = 10_000, 32
"""Messages that a lane does before it asks for its next turn: on a thread, and in an event loop that has other work."""
_MOMENT = 0.01
"""Seconds for which a thread that found nothing stays. While it waits it reads for itself, so what comes next needs no
hand-over from the reader thread."""
_inside: ContextVar[Any] = ContextVar("mqclient_pulsar_listening", default=None)
"""In handlers: whose they are. Closing a consumer from its own handler must not wait for that handler."""


class Report(NamedTuple):
    """What became of a consumer that served."""

    handled: int
    failed: int
    """Handlers that raised: their messages were refused, and come again."""
    unfinished: int
    """Handlers that were still running when the grace was over."""
    handed_back: int
    """Messages that were here and had not been begun: others get them."""


class Lane:
    """One handler at a time. `idle`: no thread or task is at it, or one that waits for the next message."""

    __slots__ = ("idle", "near", "parked", "wake")

    def __init__(self) -> None:
        self.idle = True
        self.near = False
        """A thread is at it, which sees by itself that it is not idle any more."""
        self.parked: deque[Any] = deque()
        """Messages whose key belongs to this lane, found by others."""
        self.wake: Wake | None = None


class Listening:
    """`threads` lanes take from the mailbox, one message at a time, so that what waits still counts for the queue.

    A handler that returns acknowledges its message, one that raises refuses it. Where order counts and there are
    several lanes, messages of one key (without a key: of one topic or partition) go through one lane.
    """

    def __init__(self, engine: Engine, handle: Callable[[Any], Any], threads: int) -> None:
        if not callable(handle):
            raise ConfigError("a listener is a function that is called with each message")
        if threads < 1:
            raise ConfigError("threads is at least 1")
        if engine.options.by_batch:
            raise ConfigError("by_batch=True is for receiving, not for a listener")
        self._engine = engine
        self._handle = observed(engine, handle)
        self._driver: Any = engine.client.driver
        self._mailbox = engine.mailbox
        self._take = engine.mailbox.take
        self._add = engine.acks.add
        self._lanes = [Lane() for _ in range(threads)]
        self._keyed = threads > 1 and engine.options.type != "shared"
        self._token: deque[bool] = deque([True])
        """Of many lanes one at a time takes and shares out: else two messages of a key might change places."""
        self._full = False
        """Too many messages are parked to take more."""
        self._most = max(engine.options.receiver_queue, threads)
        self._stays = engine.client.blocking
        self._row = _IN_A_ROW if self._stays else _IN_A_TURN
        self._paused = False
        self._stopped = self._over = False
        self._ended: list[Slot[None]] = []
        self.stopping: Slot[None] = Wake()
        """Done when nothing more will be begun."""
        self.handled = 0
        self.failed = 0

    # ---- inside entries

    def start(self) -> None:
        for lane in self._lanes:
            self._rest(lane)

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self._hire_all()

    @property
    def parked(self) -> int:
        return sum(len(lane.parked) for lane in self._lanes)

    @property
    def running(self) -> int:
        return sum(not lane.idle for lane in self._lanes)

    def stop_steps(self, grace: float) -> Steps[Report]:
        """Begin nothing more; done when all handlers have ended, or the grace is over."""
        self._stopped = True
        self.stopping.complete(None)
        ended: Slot[None] = Slot()
        self._ended.append(ended)
        for lane in self._lanes:
            wake, lane.wake = lane.wake, None
            if wake is not None:
                self._mailbox.leave(wake)
                wake.complete(None)  # for the thread that waits for it
        if _inside.get() is self or not self.running or self._over:
            ended.complete(None)
        else:
            self._engine.client.timers.after(grace, lambda _: self._on_grace_over(ended))
        yield ended
        left = len(self._mailbox) + self.parked
        return Report(self.handled, self.failed, 0 if _inside.get() is self else self.running, left)

    def _on_grace_over(self, ended: Slot[None]) -> None:
        self._over = self.running > 0
        ended.complete(None)

    def diagnose(self) -> dict[str, int]:
        return {"handled": self.handled, "failed": self.failed, "running": self.running, "parked": self.parked}

    def refuse(self, *_: Any) -> Any:
        """What `receive` does on a consumer that has a listener."""
        raise ConfigError("messages go to the listener: there is nothing to receive")

    def _rest(self, lane: Lane) -> None:
        """No more work in sight: go home until a message comes."""
        lane.idle = True
        if self._stopped:
            if not self.running:
                for ended in self._ended:
                    ended.complete(None)
        elif lane.parked:
            self._hire(lane)
        elif not self._paused and lane.wake is None and not (self._keyed and (self._full or not self._token)):
            lane.wake = self._mailbox.join()
            lane.wake.then(lambda wake: self._on_wake(lane, wake))

    def _on_wake(self, lane: Lane, wake: Slot[None]) -> None:
        if wake.error is not None:  # closed: nothing comes any more
            self._stopped = True
            self.stopping.complete(None)
            if isinstance(wake.error, MQError) and not isinstance(wake.error, ClosedError):
                log.error("%s: the listener ends: %s", self._engine.topic, wake.error)
            self._rest(lane)
        elif lane.idle:
            self._hire(lane)

    def _hire(self, lane: Lane) -> None:
        if lane.idle and not self._stopped:
            lane.idle, wake, lane.wake = False, lane.wake, None
            if wake is not None and not wake.done:
                self._mailbox.leave(wake)
                wake.complete(None)  # for the thread that waits for it
            self._go_on(lane)

    def _go_on(self, lane: Lane) -> None:
        if not lane.near:
            self._driver.run_user(self._work, lane)

    def _hire_all(self) -> None:
        for lane in self._lanes:
            self._hire(lane)

    # ---- outside, where user code runs

    def _work(self, lane: Lane) -> Awaitable[None] | None:
        lane.near = self._stays
        while True:
            token = _inside.set(self)
            try:
                step = self._advance(lane)
            finally:
                _inside.reset(token)
            if step is not None:
                lane.near = False
                return self._drive(lane, *step)
            if not (lane.near and self._linger(lane)):
                return None

    def _linger(self, lane: Lane) -> bool:
        """On a thread: wait a moment for the next message; whether it is there.

        Race: the moment is over, and a message comes. Who brings it, in an entry, makes the lane busy; we, in another
        one, say that we are not near any more. So either we see it busy and go on, or it sees us gone and hires.
        """
        wake = lane.wake
        if wake is not None:
            with suppress(MQError):  # the moment is over; or nothing comes any more, as `_on_wake` is told, too
                self._driver.wait(wake, self._driver.deadline(_MOMENT))
        with self._driver.enter():
            lane.near = not lane.idle
            return lane.near

    def _advance(self, lane: Lane) -> tuple[Any, Awaitable[Any]] | None:
        """Handle messages until a handler has to be awaited (it is given back), or the lane rests."""
        handle, add, take, keyed = self._handle, self._add, self._take, self._keyed
        done = 0
        for _ in range(self._row):
            try:
                message = None if self._paused or self._stopped else self._next_keyed(lane) if keyed else take()
            except Exception:
                self._break_off()
                message = None
            if message is None:
                self._leave(lane, done)
                return None
            try:
                outcome = handle(message)
            except BaseException as error:
                self._refuse(message, error)
                if self._stays or isinstance(error, Exception):
                    continue
                self._leave(lane, done)
                raise
            if outcome is not None and isawaitable(outcome):
                self._count(done)
                return message, outcome
            done += 1
            with suppress(MQError):  # its topic is not consumed any more, or nothing is
                if signal := add(message):
                    with self._driver.enter():
                        self._engine.acks_due(signal)
        with self._driver.enter():
            self.handled += done
            self._go_on(lane)
        return None

    async def _drive(self, lane: Lane, message: Any, outcome: Awaitable[Any]) -> None:
        _inside.set(self)
        step: tuple[Any, Awaitable[Any]] | None = (message, outcome)
        while step is not None:
            message, outcome = step
            try:
                await outcome
            except BaseException as error:
                self._refuse(message, error)
                if isinstance(error, GeneratorExit) or not (self._stays or isinstance(error, Exception)):
                    self._leave(lane, 0)  # our own coroutine is closed, or cancelled: the lane goes on
                    raise
            else:
                with self._driver.enter():
                    self.handled += 1
                    with suppress(MQError):  # its topic is not consumed any more
                        self._engine.acks_due(self._add(message))
            step = self._advance(lane)

    def _break_off(self) -> None:
        """Such as a compression whose library is missing: what cannot be opened stays where it is, and so do we."""
        log.exception("%s: the listener ends", self._engine.topic)
        self._stopped = True

    def _next_keyed(self, lane: Lane) -> Any:
        """The next message whose key is this lane's; those of others are parked with them."""
        if lane.parked:
            message = lane.parked.popleft()
            if self._full and self.parked <= self._most // 2:
                self._full = False
                self._look()
            return message
        try:
            token = self._token.pop()
        except IndexError:
            return None  # another lane shares out just now: it will look after us
        try:
            message, others = self._share_out(lane)
        finally:
            self._token.append(token)
        if others or any(other.idle and other.wake is None for other in self._lanes):
            self._look()
        return message

    def _share_out(self, lane: Lane) -> tuple[Any, bool]:
        """With the token: take until something is for this lane; whether others were given something, too."""
        others = False
        while not lane.parked and self.parked < self._most:
            message = self._take()
            owner = lane if message is None else self._owner(message)
            if owner is lane:
                return message, others
            owner.parked.append(message)
            others = True
        self._full = not lane.parked
        return lane.parked.popleft() if lane.parked else None, others

    def _look(self) -> None:
        """Race: a lane that is about to rest looks for parked messages and the token inside an entry. We parked, and
        gave the token back, before we enter: so either it sees that, or we see it idle."""
        with self._driver.enter():
            for lane in self._lanes:
                if lane.idle and (lane.parked or lane.wake is None):
                    self._rest(lane)

    def _owner(self, message: Any) -> Lane:
        key = message.ordering_key or message.key or message.topic or ""
        data = key if isinstance(key, bytes) else key.encode()
        return self._lanes[crc32(data) % len(self._lanes)]

    def _refuse(self, message: Any, error: BaseException) -> None:
        log.warning("%s: the handler of %s failed", message.topic, message.message_id, exc_info=error)
        with self._driver.enter():
            self.failed += 1
            self._engine.nack([message])

    def _count(self, done: int) -> None:
        with self._driver.enter():
            self.handled += done

    def _leave(self, lane: Lane, done: int) -> None:
        with self._driver.enter():
            self.handled += done
            self._rest(lane)


def stopping(engine: Engine) -> Slot[None]:
    """Done when the consumer's listener begins nothing more."""
    if engine.listening is None:
        raise ConfigError("run() is for consumers with a listener")
    return engine.listening.stopping

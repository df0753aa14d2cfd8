"""Owns what a test scripts: faults by request kind (answer, delay, drop, cut, trickle), pauses, shut doors, a clock."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, Literal

Action = Literal["answer", "delay", "drop", "cut", "cut_after", "trickle"]


class Alarm:
    """One call to come on the broker's clock."""

    __slots__ = ("call", "when")

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Clock:
    """The broker's time: real time plus what a test added. Calls to come follow it when it is moved."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self._alarms: list[tuple[float, int, Alarm]] = []
        self._order = count()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._handle: asyncio.TimerHandle | None = None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def mono(self) -> float:
        return time.monotonic() + self._ahead

    def wall_ms(self) -> int:
        return int((time.time() + self._ahead) * 1000)

    def peers_ms(self) -> int:
        """What the clocks of others say, who know nothing of a moved one."""
        return int(time.time() * 1000)

    def after(self, seconds: float, call: Callable[[], None]) -> Alarm:
        """Call on the loop when the clock has gone on by this much."""
        alarm = Alarm(self.mono() + seconds, call)
        heappush(self._alarms, (alarm.when, next(self._order), alarm))
        if self._alarms[0][2] is alarm:
            self._arm()
        return alarm

    def move(self, seconds: float) -> None:
        """On the loop: what is due by the new time is called at once, in its order."""
        self._ahead += seconds
        self._fire()

    def _fire(self) -> None:
        self._handle = None
        while self._alarms and self._alarms[0][0] <= self.mono():
            alarm = heappop(self._alarms)[2]
            call, alarm.call = alarm.call, None
            if call is not None:
                call()
        self._arm()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._alarms and self._loop is not None:
            self._handle = self._loop.call_later(max(0.0, self._alarms[0][0] - self.mono()), self._fire)


class Fault:
    """What happens to requests of one kind, a number of times, after some were let through."""

    __slots__ = ("action", "chance", "code", "left", "peer", "random", "remark", "request", "seconds", "seen", "skip")

    def __init__(
        self,
        request: str,
        action: Action,
        code: int = 0,
        remark: str = "",
        seconds: float = 0.0,
        *,
        times: int = 1,
        skip: int = 0,
        peer: str = "",
        chance: float = 1.0,
    ) -> None:
        self.request = request
        self.action: Action = action
        self.left = times
        self.skip = skip
        self.peer = peer
        self.chance = chance
        self.random = Random(0)
        self.code = code
        self.remark = remark
        self.seconds = seconds
        self.seen = 0
        """How many requests it met, let through or not."""

    def meets(self, request: str, peer: str) -> bool:
        """Whether this one is of those that are counted."""
        return self.request == request and (not self.peer or self.peer == peer)

    def happens(self) -> bool:
        """To the next one that it meets."""
        self.seen += 1
        return self.seen > self.skip and (self.chance >= 1 or self.random.random() < self.chance)


class Control:
    """Scripted faults and the clock of one embedded broker; every method may be called from any thread.

    A request is named by the protocol's own word, e.g. "PULL_MESSAGE" or "SUBSCRIBE". Faults of one kind apply in the
    order in which they were asked for; each lets `skip` requests through, then happens to each with the same `chance`,
    and ends when it happened `times` times. By the same `seed` the same requests are met, counted from the fault's
    beginning: each fault has chances of its own.
    """

    def __init__(self, clock: Clock, seed: int = 0) -> None:
        self.clock = clock
        self.seed = seed
        self._lock = threading.Lock()
        self._faults: list[Fault] = []
        self._asked = count()
        self._counts: dict[str, int] = {}
        self._paused: threading.Event | None = None
        self.refusing = False
        """While it is true, new connections end at once; those that are there stay."""
        self.unloads: list[Callable[[str], None]] = []
        """Doors that can unload a topic."""
        self.migrations: list[Callable[[str, str, str], None]] = []
        """Doors that can send a topic to another cluster."""

    def answer(
        self,
        request: str,
        code: int,
        remark: str = "",
        *,
        times: int = 1,
        skip: int = 0,
        peer: str = "",
        chance: float = 1.0,
    ) -> Fault:
        """Answer with this code instead of doing the work."""
        return self._add(Fault(request, "answer", code, remark, times=times, skip=skip, peer=peer, chance=chance))

    def delay(
        self, request: str, seconds: float, *, times: int = 1, skip: int = 0, peer: str = "", chance: float = 1.0
    ) -> Fault:
        """Do the work only after this time of the broker's clock."""
        return self._add(Fault(request, "delay", seconds=seconds, times=times, skip=skip, peer=peer, chance=chance))

    def drop(self, request: str, *, times: int = 1, skip: int = 0, peer: str = "", chance: float = 1.0) -> Fault:
        """Neither do the work nor answer."""
        return self._add(Fault(request, "drop", times=times, skip=skip, peer=peer, chance=chance))

    def cut(
        self, request: str, *, after: bool = False, times: int = 1, skip: int = 0, peer: str = "", chance: float = 1.0
    ) -> Fault:
        """Close the connection before the work is done; `after`: when it is done, instead of the answer."""
        return self._add(
            Fault(request, "cut_after" if after else "cut", times=times, skip=skip, peer=peer, chance=chance)
        )

    def trickle(
        self, request: str, seconds: float = 0.0, *, times: int = 1, skip: int = 0, peer: str = "", chance: float = 1.0
    ) -> Fault:
        """Do the work; from this answer on the connection is written to a byte at a time, so long after each other."""
        return self._add(Fault(request, "trickle", seconds=seconds, times=times, skip=skip, peer=peer, chance=chance))

    def unload(self, topic: str) -> None:
        """As when a topic of Pulsar moves to another broker: everybody on it is told to come again."""
        for unload in self.unloads:
            self.call(unload, topic)

    def migrate(self, topic: str, url: str, url_tls: str = "") -> None:
        """As when a topic of Pulsar goes to another cluster: producers are sent there at once, consumers when they have
        acknowledged what is here."""
        for migrate in self.migrations:
            self.call(migrate, topic, url, url_tls)

    @contextmanager
    def refuse(self) -> Iterator[None]:
        """Nobody new is let in meanwhile."""
        self.refusing = True
        try:
            yield
        finally:
            self.refusing = False

    @contextmanager
    def pause(self) -> Iterator[None]:
        """The broker does nothing meanwhile: it neither reads nor answers; the system takes connections for it."""
        stopped, self._paused = threading.Event(), threading.Event()
        go_on = self._paused
        loop = self.clock._loop
        if loop is None:
            raise RuntimeError("the broker is not running")

        def stop() -> None:
            stopped.set()
            go_on.wait()

        loop.call_soon_threadsafe(stop)
        stopped.wait()
        try:
            yield
        finally:
            self.resume()

    def resume(self) -> None:
        """End a pause."""
        if self._paused is not None:
            self._paused.set()

    def clear(self) -> None:
        """End all faults."""
        with self._lock:
            self._faults.clear()

    def count(self, request: str) -> int:
        """How many requests of this kind came so far."""
        with self._lock:
            return self._counts.get(request, 0)

    def move_clock(self, seconds: float) -> None:
        """Put the broker's clock forward; returns when everything that became due has been done."""
        loop = self.clock._loop
        if loop is None or not loop.is_running():
            self.clock.move(seconds)
            return
        self.call(self.clock.move, seconds)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call on the broker's loop and wait for it: the way for tests to look at the broker's state, or change it."""

        async def run() -> Any:
            return function(*arguments)

        loop = self.clock._loop
        if loop is None:
            raise RuntimeError("the broker is not running")
        return asyncio.run_coroutine_threadsafe(run(), loop).result(10)

    # ---- asked by the doors, on the loop

    def fault(self, request: str, peer: str) -> Fault | None:
        """What to do with this request, which just came; None: serve it."""
        with self._lock:
            self._counts[request] = self._counts.get(request, 0) + 1
            for fault in self._faults:
                if fault.meets(request, peer):
                    if not fault.happens():
                        return None
                    fault.left -= 1
                    if fault.left <= 0:
                        self._faults.remove(fault)
                    return fault
        return None

    def _add(self, fault: Fault) -> Fault:
        with self._lock:
            fault.random.seed(f"{self.seed} {next(self._asked)} {fault.request}")
            self._faults.append(fault)
        return fault

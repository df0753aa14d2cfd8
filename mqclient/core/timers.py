"""Owns a deadline heap over the one alarm that a driver keeps."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

from mqclient.core.driver import Driver, Now
from mqclient.core.slot import Slot


class Timer:
    """One call to come; `cancel()` is free, the heap forgets it when its time comes or when many have gathered."""

    __slots__ = ("_owner", "call", "when")

    def __init__(self, owner: Timers, when: float, call: Callable[[Now], None]) -> None:
        self._owner = owner
        self.when = when
        self.call: Callable[[Now], None] | None = call

    def cancel(self) -> None:
        if self.call is not None:
            self.call = None
            self._owner._cancelled()


class Timers:
    """Calls at monotonic times, in their order; equal times in the order in which they were asked for."""

    __slots__ = ("_dead", "_driver", "_heap", "_order")

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = count()
        self._dead = 0

    def at(self, when: float, call: Callable[[Now], None]) -> Timer:
        timer = Timer(self, when, call)
        first = not self._heap or when < self._heap[0][0]
        heappush(self._heap, (when, next(self._order), timer))
        if first:
            self._driver.arm(when)
        return timer

    def after(self, seconds: float, call: Callable[[Now], None]) -> Timer:
        return self.at(self._driver.now.mono + seconds, call)

    def sleep(self, seconds: float) -> Slot[None]:
        """For `*_steps`: a slot that completes after this time."""
        slot: Slot[None] = Slot()
        self.after(seconds, lambda _: slot.complete(None))
        return slot

    def within(self, slot: Slot[Any], seconds: float) -> Slot[None]:
        """For `*_steps`: done when that one is, whatever came of it, and after this time at the latest."""
        done: Slot[None] = Slot()
        if slot.done:
            done.complete(None)
            return done

        def over(_: Slot[Any]) -> None:
            alarm.cancel()
            done.complete(None)

        alarm = self.after(seconds, lambda _: done.complete(None))
        slot.then(over)
        return done

    def fire(self, now: Now) -> None:
        """Make the calls that are due and arm the alarm for the next one."""
        heap = self._heap
        while heap and heap[0][0] <= now.mono:
            timer = heappop(heap)[2]
            call, timer.call = timer.call, None
            if call is None:
                self._dead -= 1
            else:
                call(now)
        if heap:
            self._driver.arm(heap[0][0])

    def clear(self) -> None:
        """Forget all of them: the owner is closing."""
        for _, _, timer in self._heap:
            timer.call = None
        self._heap.clear()
        self._dead = 0

    def _cancelled(self) -> None:
        # A request that is answered cancels its deadline: without this the heap would hold a minute of them.
        self._dead += 1
        if self._dead > 64 and self._dead * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].call is not None]
            heapify(self._heap)
            self._dead = 0

"""Owns how many user calls run at once, and the order of those that share a key."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from inspect import isawaitable
from typing import Any, Generic, TypeVar

from mqclient.core.driver import Driver
from mqclient.core.slot import Slot, Wake

J = TypeVar("J")

_IN_A_ROW = 32
"""Jobs that one worker does before it asks for its next turn: under asyncio the loop has other things to do."""


class Workers(Generic[J]):
    """At most `limit` jobs run at once; jobs of one key run one after the other, in the order in which they came.

    `call(job)` is user code: it runs outside of entries, on a listener thread or as a task, and may be a coroutine
    function. `done(job, outcome, error)` is told inside an entry. A worker that finished a job takes the next one by
    itself, without a hand-over.
    """

    def __init__(
        self,
        driver: Driver,
        call: Callable[[J], Any],
        done: Callable[[J, Any, BaseException | None], None],
        limit: int,
    ) -> None:
        self._driver = driver
        self._call = call
        self._done = done
        self.limit = limit
        self.running = 0
        self._ready: deque[tuple[Hashable, J]] = deque()
        self._lanes: dict[Hashable, deque[J]] = {}
        """What waits behind the job of the same key; a key is here while one of its jobs is ready or running."""
        self._keys: set[Hashable] = set()
        """Keys of which a job runs."""
        self._idle: list[Wake] = []
        self._own_threads = getattr(driver, "loop", None) is None
        """So that whatever a job raises, as SystemExit, ends the job and nothing else; a loop is the user's."""

    @property
    def waiting(self) -> int:
        return len(self._ready) + sum(map(len, self._lanes.values()))

    def submit(self, job: J, key: Hashable = None) -> None:
        """Have it done when it is its turn (inside an entry)."""
        if key is not None:
            lane = self._lanes.get(key)
            if lane is not None:
                lane.append(job)
                return
            self._lanes[key] = deque()
        self._ready.append((key, job))
        self._hire()

    def drop(self, key: Hashable) -> list[J]:
        """Take out what waits under this key; the job that runs goes on."""
        dropped = [job for other, job in self._ready if other == key]
        if dropped:
            self._ready = deque(entry for entry in self._ready if entry[0] != key)
        lane = self._lanes.pop(key, None)
        if lane is not None:
            dropped += lane
            if key in self._keys:
                self._lanes[key] = deque()  # what comes anew still waits for the one that runs
        self._look_idle()
        return dropped

    def clear(self) -> list[J]:
        """Take out all that waits; what runs goes on."""
        dropped = [job for key, job in self._ready if key is None]
        self._ready = deque(entry for entry in self._ready if entry[0] is not None)
        for key in list(self._lanes):
            dropped += self.drop(key)
        self._look_idle()
        return dropped

    def idle(self) -> Slot[None]:
        """Done when nothing runs and nothing waits."""
        wake = Wake()
        self._idle.append(wake)
        self._look_idle()
        return wake

    # ---- inside an entry

    def _hire(self) -> None:
        if self.running < self.limit and self._ready:
            self.running += 1
            self._driver.run_user(self._work, None)

    def _next(self) -> tuple[Hashable, J] | None:
        """The next job for a worker, or None: it goes home."""
        if not self._ready or self.running > self.limit:
            self.running -= 1
            self._look_idle()
            return None
        entry = self._ready.popleft()
        if entry[0] is not None:
            self._keys.add(entry[0])
        self._hire()  # the others need not wait for us to come back
        return entry

    def _leave(self) -> None:
        self.running -= 1
        self._hire()
        self._look_idle()

    def _free(self, key: Hashable) -> None:
        """A job of this key has ended: the next one may run."""
        if key is not None:
            self._keys.discard(key)
            lane = self._lanes[key]
            if lane:
                self._ready.append((key, lane.popleft()))
            else:
                del self._lanes[key]

    def _look_idle(self) -> None:
        if not self.running and not self._ready:
            idle, self._idle = self._idle, []
            for wake in idle:
                wake.complete(None)

    # ---- outside, where user code runs

    def _work(self, _: object) -> Awaitable[None] | None:
        with self._driver.enter():
            entry = self._next()
        for left in reversed(range(_IN_A_ROW)):
            if entry is None:
                break
            outcome: Any = None
            error: BaseException | None = None
            try:
                outcome = self._call(entry[1])
            except BaseException as failure:
                error = failure
                if not (self._own_threads or isinstance(failure, Exception)):
                    self._end(entry, None, error, more=False)
                    raise
            if error is None and isawaitable(outcome):
                return self._await(entry, outcome)
            entry = self._end(entry, outcome, error, more=left > 0)
        return None

    async def _await(self, entry: tuple[Hashable, J], awaitable: Awaitable[Any]) -> None:
        outcome: Any = None
        error: BaseException | None = None
        try:
            outcome = await awaitable
        except BaseException as failure:
            error = failure
            if isinstance(failure, GeneratorExit) or not (self._own_threads or isinstance(failure, Exception)):
                raise  # closed or cancelled: the job ends all the same
        finally:
            self._end(entry, outcome, error, more=False)

    def _end(
        self, entry: tuple[Hashable, J], outcome: Any, error: BaseException | None, *, more: bool
    ) -> tuple[Hashable, J] | None:
        """Tell the outcome; the next job of this worker, if it takes one."""
        with self._driver.enter():
            self._free(entry[0])
            try:
                self._done(entry[1], outcome, error)
            except BaseException:
                self._leave()
                raise
            if more:
                return self._next()
            self._leave()
            return None

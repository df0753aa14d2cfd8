"""Owns the rule "at most one run, no lost poke": what rebalance, discovery and flushes are driven by."""

from __future__ import annotations

from collections.abc import Callable

from mqclient.core.slot import Slot, completed
from mqclient.core.steps import Steps, run_steps


class Coalesce:
    """Runs a sequence whenever poked, one at a time; pokes during a run cause exactly one more.

    The sequence runs inside entries, as all steps do. Why no poke is lost: `_again` is cleared before a run begins, so
    whatever the poker changed is either seen by that run or causes the next one.
    """

    __slots__ = ("_again", "_closed", "_now", "_on_error", "_steps", "_then", "running")

    def __init__(self, steps: Callable[[], Steps[None]], on_error: Callable[[BaseException], None]) -> None:
        self._steps = steps
        self._on_error = on_error
        self._again = False
        self._closed = False
        self._now: Slot[None] = completed(None)
        self._then: Slot[None] = Slot()
        self.running = False

    def poke(self) -> Slot[None]:
        """Run, now or once more; the slot is done when a run that began after this poke has ended, however."""
        if self._closed:
            return completed(None)
        self._again = True
        covering = self._then
        if not self.running:
            self._run()
        return covering

    @property
    def idle(self) -> Slot[None]:
        """Done when the run that goes on now, if any, has ended."""
        return self._now

    def close(self) -> None:
        """No further run; the one that goes on ends by itself."""
        self._closed = True
        self._again = False
        self._then.complete(None)

    def _run(self) -> None:
        # A loop, not recursion: a sequence that never waits may be poked a thousand times by itself.
        while self._again:
            self._again = False
            self.running = True
            self._now, self._then = self._then, Slot()
            outcome = run_steps(self._steps())
            if not outcome.done:
                outcome.then(self._resume)
                return
            self._end(outcome)

    def _resume(self, outcome: Slot[None]) -> None:
        self._end(outcome)
        self._run()

    def _end(self, outcome: Slot[None]) -> None:
        self.running = False
        if outcome.error is not None:
            self._on_error(outcome.error)
        self._now.complete(None)

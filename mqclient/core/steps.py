"""Owns the runner of `*_steps` generators: sequences with waits in between, resumed when a slot completes.

    def open_steps(self) -> Steps[Route]:
        reply = yield self.link.request(...)     # a Slot; its value comes back, its error is raised here
        return parse(reply)

    slot = run_steps(self.open_steps())

The runner has no loop of its own: the first part runs at once, each next part inside the event that completed the
slot. Nothing per message is a generator.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

from mqclient.core.slot import Slot

T = TypeVar("T")
Steps = Generator[Slot[Any], Any, T]


def run_steps(steps: Steps[T]) -> Slot[T]:
    """Start the sequence; the slot is its outcome. An exception that the sequence lets out fails the slot."""
    outcome: Slot[T] = Slot()
    _resume(steps, outcome, None)
    return outcome


def _resume(steps: Steps[T], outcome: Slot[T], done: Slot[Any] | None) -> None:
    # A loop, not recursion: a sequence that finds a hundred slots done already needs one frame.
    while True:
        try:
            if done is None:
                waiting = next(steps)
            elif done.error is not None:
                waiting = steps.throw(done.error)
            else:
                waiting = steps.send(done.result())
        except StopIteration as stop:
            outcome.complete(stop.value)
            return
        except Exception as error:
            outcome.fail(error)
            return
        if not waiting.done:
            waiting.then(lambda slot: _resume(steps, outcome, slot))
            return
        done = waiting


def gather(slots: list[Slot[Any]]) -> Slot[list[Slot[Any]]]:
    """Done when all are, whether they succeeded or not; the value is the list itself."""
    outcome: Slot[list[Slot[Any]]] = Slot()
    left = len(slots)
    if not left:
        outcome.complete(slots)
        return outcome

    def one(_: Slot[Any]) -> None:
        nonlocal left
        left -= 1
        if not left:
            outcome.complete(slots)

    for slot in slots:
        slot.then(one)
    return outcome

"""At most one run, no lost poke."""

from __future__ import annotations

from random import Random

import pytest

from mqclient.core.coalesce import Coalesce
from mqclient.core.slot import Slot, completed
from mqclient.core.steps import Steps


class Runs:
    """Runs that end when the test says so."""

    def __init__(self) -> None:
        self.gates: list[Slot[None]] = []
        self.errors: list[BaseException] = []
        self.live = 0
        self.coalesce = Coalesce(self._steps, self.errors.append)

    def _steps(self) -> Steps[None]:
        self.live += 1
        assert self.live == 1, "two runs at once"
        gate: Slot[None] = Slot()
        self.gates.append(gate)
        try:
            yield gate
        finally:
            self.live -= 1

    def end(self, error: Exception | None = None) -> None:
        gate = self.gates[-1]
        if error is None:
            gate.complete(None)
        else:
            gate.fail(error)


def test_pokes_during_a_run_cause_exactly_one_more() -> None:
    runs = Runs()
    first = runs.coalesce.poke()
    during = [runs.coalesce.poke() for _ in range(5)]
    assert len(runs.gates) == 1
    runs.end()
    assert first.done
    assert len(runs.gates) == 2
    assert not any(slot.done for slot in during)
    runs.end()
    assert all(slot.done for slot in during)
    assert len(runs.gates) == 2
    assert not runs.coalesce.running


def test_a_failed_run_is_told_and_does_not_stop_the_next() -> None:
    runs = Runs()
    runs.coalesce.poke()
    again = runs.coalesce.poke()
    runs.end(ValueError("no"))
    assert [str(error) for error in runs.errors] == ["no"]
    runs.end()
    assert again.done
    assert len(runs.gates) == 2


def test_a_sequence_that_pokes_itself_needs_no_stack() -> None:
    count = 0

    def steps() -> Steps[None]:
        nonlocal count
        count += 1
        if count < 5_000:
            coalesce.poke()
        yield completed(None)

    errors: list[BaseException] = []
    coalesce = Coalesce(steps, errors.append)
    assert coalesce.poke().done
    assert count == 5_000
    assert not errors


def test_close_lets_the_run_end_and_starts_no_other() -> None:
    runs = Runs()
    runs.coalesce.poke()
    covering = runs.coalesce.poke()
    idle = runs.coalesce.idle
    runs.coalesce.close()
    assert (covering.done, idle.done) == (True, False)
    runs.end()
    assert (covering.done, idle.done) == (True, True)
    assert runs.coalesce.poke().done
    assert len(runs.gates) == 1


@pytest.mark.parametrize("seed", range(50))
def test_no_poke_is_lost_in_any_order(seed: int) -> None:
    random, runs = Random(seed), Runs()
    pokes: list[tuple[int, Slot[None]]] = []
    for _ in range(200):
        if random.random() < 0.5:
            before = len(runs.gates)
            pokes.append((before, runs.coalesce.poke()))
        elif runs.coalesce.running:
            runs.end(ValueError() if random.random() < 0.2 else None)
        for before, slot in pokes:
            ended = len(runs.gates) - runs.coalesce.running
            assert slot.done == (ended > before), "done exactly when a run that began after the poke has ended"
    while runs.coalesce.running:
        runs.end()
    assert all(slot.done for _, slot in pokes)

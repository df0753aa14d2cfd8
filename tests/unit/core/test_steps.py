"""Sequences with waits in between."""

from __future__ import annotations

import pytest

from mqclient.core.slot import Slot, completed, failed
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import DeadlineError


def test_values_come_back_and_the_return_is_the_outcome() -> None:
    first: Slot[int] = Slot()

    def steps() -> Steps[str]:
        number = yield first
        more = yield completed(number + 1)
        return f"{number},{more}"

    outcome = run_steps(steps())
    assert not outcome.done
    first.complete(1)
    assert outcome.result() == "1,2"


def test_errors_are_raised_where_they_were_awaited() -> None:
    def steps() -> Steps[str]:
        try:
            yield failed(DeadlineError("gone"))
        except DeadlineError as error:
            return f"caught {error}"
        return "not raised"

    assert run_steps(steps()).result() == "caught gone"


def test_what_the_sequence_lets_out_fails_the_outcome() -> None:
    def steps() -> Steps[None]:
        yield completed(None)
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        run_steps(steps()).result()


def test_ten_thousand_done_slots_need_no_stack() -> None:
    def steps() -> Steps[int]:
        total = 0
        for _ in range(10_000):
            total += yield completed(1)
        return total

    assert run_steps(steps()).result() == 10_000


def test_gather_waits_for_all_however_they_end() -> None:
    slots: list[Slot[int]] = [Slot(), Slot(), completed(3)]
    outcome = gather(list(slots))
    slots[0].fail(DeadlineError("no"))
    assert not outcome.done
    slots[1].complete(2)
    assert outcome.result() == slots
    assert gather([]).done

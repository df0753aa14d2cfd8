"""Back-pressure by bytes and items."""

from __future__ import annotations

from random import Random

import pytest

from mqclient.core.budget import Budget
from mqclient.core.slot import Slot
from mqclient.errors import ClosedError


def test_reservations_within_the_limit_are_immediate() -> None:
    budget = Budget(max_bytes=100, max_items=3)
    assert [budget.take(30), budget.take(70), budget.take(1)] == [True, True, False]
    budget.give(70)
    assert budget.reserve(1).done
    assert budget.reserve(1).done
    assert not budget.take(1)  # three items


def test_no_limit() -> None:
    budget = Budget()
    assert all(budget.take(1 << 30) for _ in range(100))


def test_first_come_first_served() -> None:
    budget = Budget(max_bytes=100)
    assert budget.take(60)
    large, small = budget.reserve(80), budget.reserve(10)
    assert (large.done, small.done) == (False, False)  # the small one would fit, but the large one came first
    assert not budget.take(1)
    budget.give(60)
    assert (large.done, small.done) == (True, True)
    assert (budget.bytes, budget.items, budget.waiting) == (90, 2, 0)


def test_one_larger_than_all_goes_alone() -> None:
    budget = Budget(max_bytes=100)
    assert budget.take(500)
    after = budget.reserve(1)
    assert budget.waiting == 1
    budget.give(500)
    assert after.done


def test_who_stops_waiting_lets_the_next_go() -> None:
    budget = Budget(max_bytes=100)
    assert budget.take(60)
    large, small = budget.reserve(80), budget.reserve(10)
    budget.abandon(large, 80)
    assert small.done
    assert budget.bytes == 70


def test_a_grant_that_came_in_the_moment_of_cancelling_is_given_back() -> None:
    budget = Budget(max_bytes=100)
    assert budget.take(100)
    slot = budget.reserve(50)
    budget.give(100)
    assert slot.done
    budget.abandon(slot, 50)
    assert (budget.bytes, budget.items) == (0, 0)


def test_close_fails_who_waits_and_abandoning_then_gives_nothing_back() -> None:
    budget = Budget(max_bytes=1)
    assert budget.take(1)
    slot = budget.reserve(1)
    budget.close(ClosedError("closed"))
    assert isinstance(slot.error, ClosedError)
    budget.abandon(slot, 1)
    assert budget.bytes == 1


@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_lost_or_granted_twice(seed: int) -> None:
    random, budget = Random(seed), Budget(max_bytes=1000, max_items=20)
    waiting: list[tuple[Slot[None], int]] = []
    held: list[int] = []
    for _ in range(500):
        move = random.random()
        if move < 0.5:
            size = random.randrange(1, 400)
            waiting.append((budget.reserve(size), size))
        elif move < 0.8 and held:
            budget.give(held.pop(random.randrange(len(held))))
        elif waiting:
            slot, size = waiting.pop(random.randrange(len(waiting)))
            budget.abandon(slot, size)
        held += [size for slot, size in waiting if slot.done]
        waiting = [(slot, size) for slot, size in waiting if not slot.done]
        assert (budget.bytes, budget.items) == (sum(held), len(held))
        assert budget.bytes <= 1000
        assert budget.items <= 20
        assert budget.waiting == len(waiting)
        assert not waiting or held, "somebody waits while all is free"

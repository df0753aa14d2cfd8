"""Who waits is woken in turn; a wake that is not used is passed on, and none is lost at the end."""

from __future__ import annotations

from random import Random

import pytest

from mqclient.core.slot import Wake
from mqclient.core.waiters import Waiters
from mqclient.errors import ClosedError


def test_as_many_are_woken_as_came_the_first_first() -> None:
    there: list[int] = []
    waiters = Waiters(lambda: there)
    wakes = [waiters.join() for _ in range(4)]
    there += [1, 2]
    waiters.arrived(2)
    assert [wake.done for wake in wakes] == [True, True, False, False]
    assert len(waiters) == 2
    waiters.all()
    assert all(wake.done for wake in wakes)
    assert waiters.join().done  # there is something


def test_who_leaves_without_taking_wakes_the_next() -> None:
    there: list[int] = []
    waiters = Waiters(lambda: there)
    first, second, third = (waiters.join() for _ in range(3))
    waiters.leave(second)  # gave up before anything came
    there.append(1)
    waiters.arrived(1)
    waiters.leave(first)  # cancelled after it was woken
    assert third.done
    there.clear()
    waiters.leave(third)
    waiters.look()
    assert not waiters


def test_the_end_is_told_to_who_waits_and_to_who_comes_later() -> None:
    there: list[int] = []
    waiters = Waiters(lambda: there)
    waits = waiters.join()
    waiters.close(ClosedError("over"))
    for wake in (waits, waiters.join()):
        with pytest.raises(ClosedError, match="over"):
            wake.result()
    there.append(1)
    assert waiters.join().error is None  # what is there can still be taken


@pytest.mark.parametrize("seed", range(30))
def test_nobody_sleeps_while_something_is_there(seed: int) -> None:
    chance, there = Random(seed), 0
    waiters = Waiters(lambda: there)
    asleep: list[Wake] = []
    for _ in range(300):
        act = chance.random()
        if act < 0.4:
            asleep.append(waiters.join())
        elif act < 0.6:
            came = chance.randint(1, 3)
            there += came
            waiters.arrived(came)
        elif asleep:
            wake = asleep.pop(chance.randrange(len(asleep)))
            if wake.done and there and chance.random() < 0.7:  # otherwise it is cancelled
                there -= 1
            waiters.leave(wake)
        woken = [wake for wake in asleep if wake.done]
        assert not (there and len(waiters)) or woken, "messages are there, somebody sleeps, and nobody is woken"

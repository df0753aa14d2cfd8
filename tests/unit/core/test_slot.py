"""The completion cell."""

from __future__ import annotations

import threading

import pytest

from mqclient.core.slot import Slot, Wake, completed, failed
from mqclient.errors import DeadlineError, MQError


def test_a_value_is_given_once() -> None:
    slot: Slot[int] = Slot()
    before = slot.done
    slot.complete(1)
    slot.complete(2)
    slot.fail(DeadlineError("late"))
    assert (before, slot.done) == (False, True)
    assert slot.error is None
    assert slot.result() == 1


def test_an_error_is_raised_as_often_as_asked() -> None:
    slot: Slot[int] = failed(DeadlineError("too late"))
    assert slot.done
    for _ in range(2):
        with pytest.raises(DeadlineError, match="too late"):
            slot.result()


def test_none_is_a_value() -> None:
    slot: Slot[None] = Slot()
    slot.complete(None)
    assert slot.done
    slot.result()


def test_asking_a_pending_slot_is_an_error() -> None:
    with pytest.raises(MQError, match="pending"):
        Slot[int]().result()


def test_callbacks_run_once_in_order_and_at_once_when_done() -> None:
    slot: Slot[int] = Slot()
    told: list[str] = []
    for name in "abc":
        slot.then(lambda _, name=name: told.append(name))  # type: ignore[misc]
    slot.complete(1)
    slot.complete(2)
    assert told == ["a", "b", "c"]
    slot.then(lambda done: told.append(str(done.result())))
    assert told == ["a", "b", "c", "1"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_dropping_one_waiter_keeps_the_others(count: int) -> None:
    slot: Slot[int] = Slot()
    told: list[int] = []
    callbacks = [lambda _, index=index: told.append(index) for index in range(count)]
    for callback in callbacks:
        slot.then(callback)
    slot.drop(callbacks[0])
    slot.drop(lambda _: None)  # somebody who never waited
    slot.complete(1)
    assert told == list(range(1, count))


def test_dropping_all() -> None:
    slot: Slot[int] = Slot()
    slot.then(lambda _: pytest.fail("dropped"))
    slot.drop()
    slot.complete(1)
    assert completed(5).result() == 5


def test_bound_methods_can_be_dropped() -> None:
    # Each access of a bound method makes a new object: they are equal, not identical.
    class Waiter:
        told = 0

        def on_done(self, _: object) -> None:
            self.told += 1

    waiter, slot = Waiter(), Slot[int]()
    slot.then(waiter.on_done)
    slot.drop(waiter.on_done)
    slot.complete(1)
    assert waiter.told == 0


def test_a_wake_expects_no_reply() -> None:
    assert Slot().expects_reply
    assert not Wake().expects_reply


def test_a_watcher_looks_for_himself_and_a_later_callback_does_not_run_his() -> None:
    slot: Slot[int] = completed(1)
    told: list[str] = []
    slot.watch(lambda _: told.append("watcher"))
    assert told == [], "it is done: whoever watches sees that"


def race() -> tuple[list[int], list[int]]:
    """Four threads watch while the slot is completed: who was told, and who saw for himself."""
    slot: Slot[int] = Slot()
    told: list[int] = []
    seen: list[int] = []
    start = threading.Barrier(5)

    def watch(number: int) -> None:
        start.wait()
        slot.watch(lambda _: told.append(number))
        if slot.done:
            seen.append(number)

    threads = [threading.Thread(target=watch, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    start.wait()
    slot.complete(1)
    for thread in threads:
        thread.join()
    return told, seen


def test_watchers_and_completion_race_and_nobody_is_missed_or_told_twice() -> None:
    for _ in range(300):
        told, seen = race()
        assert {*told, *seen} == {0, 1, 2, 3}
        assert len(told) == len(set(told))

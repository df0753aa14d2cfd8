"""Requests that wait for a reply."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mqclient.core.driver import Now
from mqclient.core.inflight import InFlight
from mqclient.core.slot import Slot
from mqclient.core.timers import Timers
from mqclient.errors import DeadlineError, LinkError, RemoteError
from tests.support.fake_driver import World


class Table:
    """An in-flight table in a fake world."""

    def __init__(self) -> None:
        self.world = World()
        self.driver = self.world.driver()
        self.timers = Timers(self.driver)
        self.inflight = InFlight(self.timers)
        with self.driver.enter():
            self.driver.attach(self)

    def on_timer(self, now: Now) -> None:
        self.timers.fire(now)

    def add(self, request_id: int, seconds: float) -> Slot[str]:
        slot: Slot[str] = Slot()
        with self.driver.enter() as now:
            self.inflight.add(request_id, slot, now.mono + seconds, "ASK")
        return slot


@contextmanager
def table() -> Iterator[Table]:
    it = Table()
    yield it
    assert len(it.inflight) == 0, "in-flight table not empty"


def test_replies_in_any_order() -> None:
    with table() as it:
        slots = [it.add(number, 5) for number in range(3)]
        for number in (2, 0, 1):
            assert it.inflight.complete(number, f"reply {number}")
        assert [slot.result() for slot in slots] == ["reply 0", "reply 1", "reply 2"]


def test_each_ends_at_its_own_deadline_whatever_the_order() -> None:
    with table() as it:
        slow, fast = it.add(1, 5), it.add(2, 1)
        it.world.advance(1)
        assert fast.done
        assert not slow.done
        with pytest.raises(DeadlineError, match="ASK") as caught:
            fast.result()
        assert caught.value.request == "ASK"
        assert caught.value.outcome_unknown
        it.world.advance(4)
        assert slow.done


def test_late_and_unknown_replies_are_counted() -> None:
    with table() as it:
        slot = it.add(1, 1)
        it.world.advance(2)
        assert not it.inflight.complete(1, "late")
        assert not it.inflight.fail(99, RemoteError(1, "never asked"))
        assert it.inflight.late == 2
        assert isinstance(slot.error, DeadlineError)


def test_an_error_reply_names_the_request() -> None:
    with table() as it:
        slot = it.add(1, 1)
        assert it.inflight.fail(1, RemoteError(17, "no such thing"))
        assert isinstance(slot.error, RemoteError)
        assert slot.error.request == "ASK"


def test_loss_fails_all_each_with_its_own_error() -> None:
    with table() as it:
        slots = [it.add(number, 5) for number in range(3)]
        it.inflight.fail_all(LinkError("gone"))
        errors = [slot.error for slot in slots]
        assert len({id(error) for error in errors}) == 3
        assert all(isinstance(error, LinkError) and error.outcome_unknown for error in errors)
        it.world.advance(10)  # no alarm of theirs is left
        assert it.driver.alarm == float("inf")


def test_ids_may_be_used_again_after_loss() -> None:
    with table() as it:
        it.add(1, 5)
        it.inflight.fail_all(LinkError("gone"))
        slot = it.add(1, 60)
        it.world.advance(10)
        assert not slot.done  # the old deadline of the same id does not end it
        it.inflight.complete(1, "new")
        assert slot.result() == "new"


def test_answered_requests_do_not_pile_up_until_their_deadline() -> None:
    with table() as it:
        waiting = it.add(0, 2)
        for number in range(1, 10_000):
            it.add(number, 60)
            it.inflight.complete(number, "")
        assert len(it.inflight._due) < 200
        it.world.advance(2)
        assert isinstance(waiting.error, DeadlineError)


def test_a_held_one_has_no_deadline() -> None:
    with table() as one:
        held, other = one.add(1, 1.0), one.add(2, 1.0)
        with one.driver.enter():
            one.inflight.hold(1)
        one.world.advance(100)
        assert isinstance(other.error, DeadlineError)
        assert not held.done
        with one.driver.enter():
            one.inflight.complete(1, "at last")
        assert held.result() == "at last"


def test_who_asks_again_when_its_time_is_over_gets_the_new_time() -> None:
    with table() as it:
        first = it.add(1, 1.0)
        second: Slot[str] = Slot()
        first.then(lambda _: it.inflight.add(2, second, it.driver.now.mono + 3.0, "ASK"))
        it.world.advance(1.0)
        assert len(it.inflight) == 1
        it.world.advance(2.9)
        assert not second.done
        it.world.advance(0.2)
        assert isinstance(second.error, DeadlineError)


def test_each_of_many_that_keep_coming_ends_at_its_own_time() -> None:
    with table() as it:
        asked = {}
        for number in range(200):  # later ones with earlier deadlines among them, every third is answered
            asked[number] = (it.add(number, 1 + number * 7 % 11 / 10), it.driver.now.mono + 1 + number * 7 % 11 / 10)
            if number % 3 == 0:
                it.inflight.complete(number, "")
            it.world.advance(0.01)
            now = it.driver.now.mono
            for slot, until in asked.values():
                assert slot.done or until > now
        it.world.advance(3)
        late = [slot for number, (slot, _) in asked.items() if number % 3]
        assert all(isinstance(slot.error, DeadlineError) for slot in late)
        assert it.driver.alarm == float("inf")

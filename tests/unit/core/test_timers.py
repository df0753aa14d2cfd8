"""Calls at times, over the one alarm of a driver."""

from __future__ import annotations

from mqclient.core.driver import Now
from mqclient.core.slot import Slot
from mqclient.core.timers import Timers
from tests.support.fake_driver import FakeDriver, World


class Clock:
    """Timers in a fake world."""

    def __init__(self) -> None:
        self.world = World()
        self.driver: FakeDriver = self.world.driver()
        self.timers = Timers(self.driver)
        self.calls: list[str] = []
        with self.driver.enter():
            self.driver.attach(self)

    def on_timer(self, now: Now) -> None:
        self.timers.fire(now)

    def at(self, seconds: float, name: str) -> None:
        with self.driver.enter() as now:
            self.timers.at(now.mono + seconds, lambda _: self.calls.append(name))


def test_calls_come_in_the_order_of_their_times_then_of_asking() -> None:
    clock = Clock()
    for seconds, name in ((3, "c"), (1, "a"), (2, "b1"), (2, "b2")):
        clock.at(seconds, name)
    clock.world.advance(2)
    assert clock.calls == ["a", "b1", "b2"]
    clock.world.advance(1)
    assert clock.calls == ["a", "b1", "b2", "c"]


def test_a_cancelled_call_does_not_come() -> None:
    clock = Clock()
    with clock.driver.enter():
        timer = clock.timers.after(1, lambda _: clock.calls.append("never"))
    clock.at(2, "later")
    timer.cancel()
    timer.cancel()
    clock.world.advance(3)
    assert clock.calls == ["later"]


def test_a_call_may_ask_for_the_next_at_the_same_time() -> None:
    clock = Clock()

    def again(now: Now) -> None:
        clock.calls.append("again")
        if len(clock.calls) < 3:
            clock.timers.at(now.mono, again)

    with clock.driver.enter() as now:
        clock.timers.at(now.mono + 1, again)
    clock.world.advance(1)
    assert clock.calls == ["again"] * 3


def test_cancelled_timers_do_not_pile_up() -> None:
    clock = Clock()
    with clock.driver.enter():
        for _ in range(10_000):
            clock.timers.after(60, lambda _: None).cancel()
    assert len(clock.timers._heap) < 200


def test_sleep_is_a_slot() -> None:
    clock = Clock()
    with clock.driver.enter():
        slot = clock.timers.sleep(1.5)
    clock.world.advance(1.4)
    assert not slot.done
    clock.world.advance(0.1)
    assert slot.done


def test_clear_forgets_all() -> None:
    clock = Clock()
    clock.at(1, "never")
    with clock.driver.enter():
        clock.timers.clear()
    clock.world.advance(5)
    assert clock.calls == []


def test_a_wait_ends_with_what_is_waited_for_or_with_its_time() -> None:
    clock = Clock()
    one: Slot[int] = Slot()
    other: Slot[int] = Slot()
    with clock.driver.enter():
        soon, late = clock.timers.within(one, 5), clock.timers.within(other, 5)
        one.complete(1)
        assert soon.done
        assert clock.timers.within(one, 5).done
    clock.world.advance(4)
    assert late in [slot for slot in (soon, late) if not slot.done]
    clock.world.advance(1)
    assert late.result() is None
    with clock.driver.enter():
        other.fail(ValueError("too late"))
    assert late.result() is None

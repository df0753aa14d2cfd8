"""Batches by key: count, bytes, linger, and no waiting for company that does not come."""

from __future__ import annotations

from random import Random

import pytest

from mqclient.core.accumulator import Accumulator, Limits
from mqclient.core.driver import Now
from mqclient.core.timers import Timers
from tests.support.fake_driver import World


class Shop:
    """An accumulator of lists in a fake world, and what it shipped."""

    def __init__(self, limits: Limits, *, per_turn: bool = False) -> None:
        self.world = World()
        self.driver = self.world.driver(per_turn=per_turn)
        self.timers = Timers(self.driver)
        self.shipped: list[tuple[str, list[int]]] = []
        self.accumulator: Accumulator[str, list[int]] = Accumulator(
            self.driver, self.timers, limits, lambda key: [], lambda key, batch: self.shipped.append((key, batch))
        )
        with self.driver.enter():
            self.driver.attach(self)

    def on_timer(self, now: Now) -> None:
        self.timers.fire(now)

    def add(self, *items: int, key: str = "k", size: int = 1) -> None:
        with self.driver.enter():
            for item in items:
                self.accumulator.room(key, size).append(item)

    def land(self, key: str = "k") -> None:
        with self.driver.enter():
            self.accumulator.landed(key)

    @property
    def batches(self) -> list[list[int]]:
        return [batch for _, batch in self.shipped]


LINGER = Limits(items=3, bytes=100, linger=0.01, idle_flush=False)
IDLE = Limits(items=3, bytes=100, linger=0.01)


def test_count_seals() -> None:
    shop = Shop(LINGER)
    shop.add(*range(7))
    assert shop.batches == [[0, 1, 2], [3, 4, 5]]
    shop.add(7, 8)
    assert shop.batches[2:] == [[6, 7, 8]]


def test_the_rest_of_a_bulk_gathers_while_its_full_batches_are_in_flight() -> None:
    shop = Shop(IDLE)
    shop.add(*range(7))
    assert shop.batches == [[0, 1, 2], [3, 4, 5]]
    shop.land()
    shop.land()
    assert shop.batches[2:] == [[6]]


def test_a_full_batch_goes_without_waiting_for_the_next_item() -> None:
    shop = Shop(LINGER)
    shop.add(0, 1, 2)
    assert shop.batches == [[0, 1, 2]]


def test_bytes_seal_before_they_are_exceeded() -> None:
    shop = Shop(LINGER)
    shop.add(0, size=60)
    shop.add(1, size=60)
    assert shop.batches == [[0]]
    shop.add(2, size=500)  # larger than any batch: alone
    assert shop.batches == [[0], [1], [2]]


def test_linger_is_the_upper_bound() -> None:
    shop = Shop(LINGER)
    shop.add(0)
    shop.world.advance(0.009)
    assert shop.batches == []
    shop.world.advance(0.001)
    assert shop.batches == [[0]]


def test_the_alarm_of_a_sealed_batch_does_not_cut_the_next_one_short() -> None:
    shop = Shop(LINGER)
    shop.add(0)
    shop.world.advance(0.009)
    shop.add(1, 2)  # full: sealed by count; its alarm is left alone
    shop.add(3)
    shop.world.advance(0.005)
    assert shop.batches == [[0, 1, 2]]
    shop.world.advance(0.005)
    assert shop.batches == [[0, 1, 2], [3]]


@pytest.mark.parametrize("per_turn", [False, True], ids=["threads", "asyncio"])
def test_alone_it_goes_at_the_end_of_the_turn(per_turn: bool) -> None:
    shop = Shop(IDLE, per_turn=per_turn)
    shop.add(0)
    shop.add(1)
    shop.world.run()
    assert shop.batches == ([[0, 1]] if per_turn else [[0], [1]])[: len(shop.batches)]
    assert shop.batches[0][0] == 0


def test_while_one_is_in_flight_others_gather_and_go_when_it_lands() -> None:
    shop = Shop(IDLE)
    shop.add(0)
    assert shop.batches == [[0]]
    shop.add(1)
    shop.add(2)
    assert shop.batches == [[0]]
    shop.land()
    assert shop.batches == [[0], [1, 2]]
    shop.add(3)
    shop.world.advance(0.01)  # nothing lands: the time is the upper bound
    assert shop.batches == [[0], [1, 2], [3]]


def test_keys_do_not_wait_for_each_other() -> None:
    shop = Shop(IDLE)
    shop.add(0, key="a")
    shop.add(1, key="b")
    shop.add(2, key="a")
    assert shop.shipped == [("a", [0]), ("b", [1])]
    shop.land("b")
    assert len(shop.shipped) == 2
    shop.land("a")
    assert shop.shipped[2] == ("a", [2])


def test_a_batch_that_never_gathered_goes_behind_what_did() -> None:
    shop = Shop(LINGER)
    shop.add(0)
    assert shop.accumulator.known("other") is None
    with shop.driver.enter():
        lane = shop.accumulator.known("k")
        assert lane is not None
        lane.ship([1])
    assert shop.batches == [[0], [1]]
    assert lane.in_flight == 2


def test_flush_forget_and_clear() -> None:
    shop = Shop(LINGER)
    for number, key in enumerate("abc"):
        shop.add(number, key=key)
    with shop.driver.enter():
        assert shop.accumulator.forget("a") == [0]
        assert shop.accumulator.forget("a") is None
        shop.accumulator.flush()
    assert shop.shipped == [("b", [1]), ("c", [2])]
    shop.add(3, key="c")
    with shop.driver.enter():
        assert shop.accumulator.clear() == [[3]]
    shop.world.advance(1)
    assert len(shop.shipped) == 2


@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_lost_or_reordered_or_larger_than_the_limits(seed: int) -> None:
    random = Random(seed)
    limits = Limits(random.randrange(1, 10), random.randrange(50, 200), 0.01, random.random() < 0.5)
    shop = Shop(limits, per_turn=random.random() < 0.5)
    sizes: list[int] = []
    landed = 0
    for _ in range(300):
        move = random.random()
        if move < 0.7:
            size = random.randrange(1, 40)
            shop.add(len(sizes), size=size)
            sizes.append(size)
        elif move < 0.85 and landed < len(shop.shipped):
            shop.land()
            landed += 1
        else:
            shop.world.advance(random.choice([0, 0.001, 0.02]))
    shop.world.advance(0.1)
    assert [item for batch in shop.batches for item in batch] == list(range(len(sizes)))
    for batch in shop.batches:
        assert 0 < len(batch) <= limits.items
        assert sum(sizes[item] for item in batch) <= limits.bytes

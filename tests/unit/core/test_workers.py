"""How many user calls run at once, and in which order."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from random import Random
from typing import Any

import pytest

from mqclient.core.slot import Slot
from mqclient.core.workers import Workers
from mqclient.io.aio import AsyncioDriver
from mqclient.io.threads import ThreadsDriver
from tests.support.fake_driver import World


def test_outcomes_and_errors_are_told_inside() -> None:
    world = World()
    driver = world.driver()
    told: list[tuple[int, Any, str]] = []

    def call(job: int) -> int:
        driver.outside("user code")
        if job == 1:
            raise ValueError("no")
        return job * 10

    def done(job: int, outcome: Any, error: BaseException | None) -> None:
        assert driver._inside
        told.append((job, outcome, repr(error)))

    workers = Workers(driver, call, done, limit=2)
    with driver.enter():
        for job in range(3):
            workers.submit(job)
        idle = workers.idle()
    world.run()
    assert sorted(told) == [(0, 0, "None"), (1, None, "ValueError('no')"), (2, 20, "None")]
    assert idle.done
    assert (workers.running, workers.waiting) == (0, 0)


class Busy:
    """Workers on real threads; jobs are (key, number) and take a moment."""

    def __init__(self, limit: int, seed: int) -> None:
        self.driver = ThreadsDriver("test")
        self.random = Random(seed)
        self.lock = threading.Lock()
        self.live: dict[Any, int] = defaultdict(int)
        self.most = 0
        self.order: dict[Any, list[int]] = defaultdict(list)
        self.workers: Workers[tuple[Any, int]] = Workers(self.driver, self._call, self._done, limit)

    def _call(self, job: tuple[Any, int]) -> None:
        key, number = job
        with self.lock:
            self.live[key] += 1
            self.most = max(self.most, sum(self.live.values()))
            assert key is None or self.live[key] == 1, "two of one key at once"
            pause = self.random.choice([0, 0, 0.001])
        threading.Event().wait(pause)
        with self.lock:
            self.live[key] -= 1
            self.order[key].append(number)

    def _done(self, job: tuple[Any, int], outcome: Any, error: BaseException | None) -> None:
        assert error is None, error

    def wait_idle(self) -> None:
        with self.driver.enter():
            idle: Slot[None] = self.workers.idle()
        self.driver.wait(idle, self.driver.deadline(20))


@pytest.mark.parametrize("limit", [1, 4])
def test_keyed_jobs_run_in_order_and_the_limit_holds_on_threads(limit: int) -> None:
    busy = Busy(limit, seed=limit)
    keys = [None, "a", "b", "c"]
    for number in range(400):
        with busy.driver.enter():
            key = keys[number % len(keys)]
            busy.workers.submit((key, number), key)
    busy.wait_idle()
    busy.driver.close()
    assert busy.most <= limit
    for key in "abc":
        assert busy.order[key] == sorted(busy.order[key])
    assert sum(map(len, busy.order.values())) == 400


def test_dropping_a_key_keeps_the_one_that_runs_and_the_others() -> None:
    world = World()
    driver = world.driver()
    ran: list[str] = []
    workers: Workers[str] = Workers(driver, ran.append, lambda *_: None, limit=1)
    with driver.enter():
        for job in ("a1", "b1", "a2", "a3", "b2"):
            workers.submit(job, key=job[0])
        assert workers.drop("a") == ["a1", "a2", "a3"]
        assert workers.drop("a") == []
        workers.submit("a4", key="a")
    world.run()
    assert sorted(ran) == ["a4", "b1", "b2"]
    assert ran.index("b1") < ran.index("b2")


def test_what_comes_after_a_drop_waits_for_the_job_that_runs() -> None:
    world = World()
    driver = world.driver()
    log: list[str] = []

    def call(job: str) -> None:
        if job == "a1":
            with driver.enter():
                assert workers.drop("a") == ["a2"]
                workers.submit("a3", key="a")
            world.run(limit=100)  # a second worker would run a3 now
        log.append(job)

    workers: Workers[str] = Workers(driver, call, lambda *_: None, limit=2)
    with driver.enter():
        workers.submit("a1", key="a")
        workers.submit("a2", key="a")
    world.run()
    assert log == ["a1", "a3"]


def test_clear_takes_out_all_that_waits() -> None:
    driver = World().driver()
    workers: Workers[int] = Workers(driver, lambda _: None, lambda *_: None, limit=1)
    with driver.enter():
        for number in range(6):
            workers.submit(number, key=number % 3 or None)
        assert sorted(workers.clear()) == list(range(6))
        assert workers.waiting == 0


def test_coroutine_handlers_run_as_tasks_up_to_the_limit() -> None:
    async def main() -> tuple[int, list[int], list[str]]:
        driver = AsyncioDriver()
        live = most = 0
        done: list[int] = []
        errors: list[str] = []

        async def call(job: int) -> None:
            nonlocal live, most
            live += 1
            most = max(most, live)
            await asyncio.sleep(0)
            live -= 1
            if job == 7:
                raise ValueError("seven")

        def told(job: int, outcome: Any, error: BaseException | None) -> None:
            done.append(job)
            if error is not None:
                errors.append(str(error))

        workers = Workers(driver, call, told, limit=5)
        with driver.enter():
            for job in range(50):
                workers.submit(job)
            idle = workers.idle()
        await driver.wait(idle, driver.deadline(10))
        await driver.close()
        return most, sorted(done), errors

    assert asyncio.run(main()) == (5, list(range(50)), ["seven"])


def test_plain_handlers_leave_the_loop_its_turns() -> None:
    async def main() -> int:
        driver = AsyncioDriver()
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        workers: Workers[int] = Workers(driver, lambda _: None, lambda *_: None, limit=1)
        with driver.enter():
            for job in range(1_000):
                workers.submit(job)
            idle = workers.idle()
        await driver.wait(idle, driver.deadline(10))
        counting.cancel()
        await driver.close()
        return turns

    assert asyncio.run(main()) >= 1_000 // 32


def test_a_plain_handler_that_is_cancelled_on_a_loop_has_ended_too() -> None:
    async def run() -> list[str]:
        driver = AsyncioDriver()
        told: list[str] = []

        def call(job: int) -> None:
            if job == 1:
                raise asyncio.CancelledError

        workers: Workers[int] = Workers(driver, call, lambda job, _, error: told.append(f"{job} {error!r}"), limit=1)
        with driver.enter():
            for job in range(3):
                workers.submit(job)
            idle = workers.idle()
        await asyncio.wait_for(driver.wait(idle), 20)
        await driver.close()
        return told

    assert asyncio.run(run()) == ["0 None", "1 CancelledError()", "2 None"]

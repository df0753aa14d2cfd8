"""The threads of user code."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import ContextVar, copy_context

import pytest

from mqclient.io.pool import UserThreads
from tests.support.leaks import no_threads_left

who: ContextVar[str] = ContextVar("who", default="nobody")


def test_as_many_run_at_once_as_are_asked_for_and_idle_ones_are_used_again() -> None:
    with no_threads_left():
        pool = UserThreads("test", copy_context())
        together = threading.Barrier(5)
        ended = threading.Semaphore(0)

        def job(_: object) -> None:
            together.wait(10)
            ended.release()

        for _ in range(4):  # four rounds of five that wait for each other
            for _ in range(5):
                pool.run([(job, None)])
            for _ in range(5):
                assert ended.acquire(timeout=10)
            time.sleep(0.02)
        assert len(pool) == 5
        pool.close()


def test_a_job_handed_over_twice_is_done_once() -> None:
    pool = UserThreads("test", copy_context())
    done: list[int] = []
    job = [(done.append, 1)]
    last = threading.Event()
    pool.run(job)
    pool.run(job)
    pool.run([(lambda _: last.set(), None)])
    assert last.wait(10)
    pool.close()
    time.sleep(0.02)
    assert done == [1]


def test_jobs_see_the_context_of_the_maker_and_not_each_other(caplog: pytest.LogCaptureFixture) -> None:
    token = who.set("the maker")
    pool = UserThreads("test", copy_context())
    who.reset(token)
    seen: list[str] = []
    done = threading.Semaphore(0)

    def job(name: str) -> None:
        seen.append(who.get())
        who.set(name)
        done.release()
        if name == "a":
            raise ValueError("the user's own")

    for name in "ab":
        pool.run([(job, name)])
        assert done.acquire(timeout=10)
    pool.close()
    assert seen == ["the maker", "the maker"]
    end = time.monotonic() + 10
    while "the user's own" not in caplog.text and time.monotonic() < end:
        time.sleep(0.001)
    assert "the user's own" in caplog.text


def test_idle_threads_end_after_a_while_and_new_ones_come() -> None:
    with no_threads_left():
        pool = UserThreads("test", copy_context(), keep=0.05)
        done = threading.Semaphore(0)
        for _ in range(3):
            pool.run([(lambda _: done.release(), None)])
            assert done.acquire(timeout=10)
            end = time.monotonic() + 10
            while len(pool) and time.monotonic() < end:
                time.sleep(0.01)
            assert len(pool) == 0
        pool.close()


def test_jobs_race_with_threads_that_are_about_to_end() -> None:
    # Sequence: a thread's wait times out, a job is put and counts on it, the thread looks once more.
    pool = UserThreads("test", copy_context(), keep=0.001)
    done = threading.Semaphore(0)
    for _ in range(500):
        pool.run([(lambda _: done.release(), None)])
        assert done.acquire(timeout=10)
        time.sleep(0.001)
    pool.close()


def test_after_closing_jobs_are_still_done() -> None:
    pool = UserThreads("test", copy_context())
    pool.close()
    done = threading.Event()
    pool.run([(lambda _: done.set(), None)])
    assert done.wait(10)


def test_a_coroutine_runs_on_a_loop_of_its_thread_and_both_end_together() -> None:
    ended: list[str] = []
    variable: ContextVar[str] = ContextVar("variable", default="none")
    variable.set("given")

    async def aside() -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append("aside")

    async def work(argument: str) -> None:
        loops.append(asyncio.get_running_loop())
        loops.append(asyncio.ensure_future(aside()))
        await asyncio.sleep(0)
        ended.append(f"{argument} {variable.get()}")
        done.release()

    loops: list[object] = []
    done = threading.Semaphore(0)
    with no_threads_left():
        pool = UserThreads("test", copy_context(), keep=0.05)
        pool.run([(work, "first")])
        assert done.acquire(timeout=10)
    assert ended == ["first given", "aside"]
    pool.close()
    with no_threads_left():
        pool.run([(work, "late")])
        assert done.acquire(timeout=10)
    assert ended == ["first given", "aside", "late given", "aside"]

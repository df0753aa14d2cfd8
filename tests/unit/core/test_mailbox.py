"""The hand-over to the user: no message is lost to a cancelled or timed-out waiter."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from mqclient.core.mailbox import Mailbox
from mqclient.errors import ClosedError, DeadlineError
from mqclient.io.aio import AsyncioDriver
from mqclient.io.threads import ThreadsDriver
from tests.support.fake_driver import World

Codec = Any


class Told:
    """A mailbox of one source in a fake world, and what the engine was told."""

    def __init__(self, codec: Codec, *, half: int = 0, high: int = 0, low: int = 0) -> None:
        self.world = World()
        self.driver = self.world.driver()
        self.taken: list[int] = []
        self.lows = 0
        self.waits = 0
        self.source = codec.handover.Source("consumer", 1, half)
        self.mailbox = Mailbox(
            self.driver,
            codec.handover.Mailbox,
            on_taken=lambda source, count: self.taken.append(count),
            high=high,
            low=low,
            on_low=self._on_low,
            on_wait=self._on_wait,
        )

    def _on_low(self) -> None:
        assert self.driver._inside
        self.lows += 1

    def _on_wait(self) -> None:
        assert self.driver._inside
        self.waits += 1

    def put(self, *messages: Any) -> None:
        with self.driver.enter():
            self.mailbox.put_many(list(messages), self.source)


def test_takes_are_told_per_half_window(codec: Codec) -> None:
    told = Told(codec, half=3)
    told.put(*range(7))
    assert [told.mailbox.take() for _ in range(8)] == [*range(7), None]
    assert told.taken == [3, 3]
    assert told.mailbox.box.collect(told.source) == 1


def test_marks_stop_and_start_fetching(codec: Codec) -> None:
    told = Told(codec, half=1, high=4, low=1)
    told.put(1, 2, 3)
    before = told.mailbox.full
    told.put(4)
    assert (before, told.mailbox.full) == (False, True)
    told.mailbox.take_many(2)
    assert (told.mailbox.full, told.lows) == (True, 0)
    told.mailbox.take()
    assert (told.mailbox.full, told.lows) == (False, 1)
    told.put(5, 6, 7)
    with told.driver.enter():
        assert told.mailbox.clear(told.source) == 4
    assert (told.mailbox.full, told.lows, len(told.mailbox)) == (False, 2, 0)


def test_a_waiter_is_woken_and_messages_stay_until_taken(codec: Codec) -> None:
    told = Told(codec)
    with told.mailbox.waiting() as wake:
        assert told.mailbox.waiters == 1
        told.put(1)
        assert wake.done
        assert told.mailbox.take() == 1
    assert (told.mailbox.waiters, told.waits) == (0, 1)
    told.put(2)
    with told.mailbox.waiting() as wake:  # there is something: no wait begins
        assert wake.done
    assert told.waits == 1
    assert len(told.mailbox) == 1


def test_as_many_are_woken_as_there_are_messages(codec: Codec) -> None:
    told = Told(codec)
    queue = [told.mailbox.waiting() for _ in range(4)]
    wakes = [waiting.__enter__() for waiting in queue]
    told.put(1, 2)
    assert [wake.done for wake in wakes] == [True, True, False, False]
    for waiting in queue:
        waiting.__exit__(None, None, None)
    assert told.mailbox.waiters == 0


def test_a_woken_waiter_that_was_cancelled_wakes_the_next(codec: Codec) -> None:
    told = Told(codec)
    first, second = told.mailbox.waiting(), told.mailbox.waiting()
    woken, other = first.__enter__(), second.__enter__()
    told.put("message")
    assert (woken.done, other.done) == (True, False)
    assert not first.__exit__(asyncio.CancelledError, asyncio.CancelledError(), None)
    assert other.done
    assert told.mailbox.take() == "message"
    second.__exit__(None, None, None)


def test_a_waiter_that_gives_up_leaves_no_trace(codec: Codec) -> None:
    told = Told(codec)
    with pytest.raises(DeadlineError), told.mailbox.waiting() as wake:
        told.driver.wait(wake, told.driver.deadline(1))
    assert told.mailbox.waiters == 0


def test_close_fails_who_waits_and_who_would_but_lets_the_rest_be_taken(codec: Codec) -> None:
    told = Told(codec)
    with told.mailbox.waiting() as wake:
        with told.driver.enter():
            told.mailbox.close(ClosedError("closed"))
        assert isinstance(wake.error, ClosedError)
    told.put(1)
    assert told.mailbox.take() == 1
    with told.mailbox.waiting() as wake:
        assert isinstance(wake.error, ClosedError)


def test_sealed_messages_are_opened_on_the_taking_side(codec: Codec) -> None:
    world = World()
    driver = world.driver()

    def opener(sealed: str, source: Any) -> list[str]:
        driver.outside("opening")
        return list(sealed)

    mailbox = Mailbox(driver, codec.handover.Mailbox, on_taken=lambda *_: None, opener=opener)
    with driver.enter():
        mailbox.put_sealed("abc", 3, codec.handover.Source("consumer", 1, 0))
    assert len(mailbox) == 3
    assert mailbox.take_many(9) == ["a", "b", "c"]


def test_who_missed_what_another_thread_was_opening_is_woken(codec: Codec) -> None:
    # Race: A opens a sealed put of two, B finds nothing and waits, A takes one of them. B must get the other.
    driver = ThreadsDriver("test")
    opening, go_on = threading.Event(), threading.Event()

    def opener(sealed: str, source: Any) -> list[str]:
        opening.set()
        go_on.wait(10)
        return list(sealed)

    mailbox = Mailbox(driver, codec.handover.Mailbox, on_taken=lambda *_: None, opener=opener)
    with driver.enter():
        mailbox.put_sealed("ab", 2, codec.handover.Source("consumer", 1, 0))
    taken: list[Any] = []
    first = threading.Thread(target=lambda: taken.append(mailbox.take()))
    first.start()
    assert opening.wait(10)
    missed = mailbox.take()
    with mailbox.waiting() as wake:
        go_on.set()
        driver.wait(wake, driver.deadline(10))
        taken.append(mailbox.take())
    first.join(10)
    driver.close()
    assert missed is None
    assert sorted(taken) == ["a", "b"]


async def receive(driver: AsyncioDriver, mailbox: Mailbox) -> Any:
    """What the asyncio face does."""
    message = mailbox.take()
    while message is None:
        with mailbox.waiting() as wake:
            await driver.wait(wake)
            message = mailbox.take()
    return message


def test_ten_thousand_cancelled_receives_lose_nothing(codec: Codec) -> None:
    async def main(seed: int, rounds: int) -> None:
        random, driver = Random(seed), AsyncioDriver()
        mailbox = Mailbox(driver, codec.handover.Mailbox, on_taken=lambda *_: None)
        source = codec.handover.Source("consumer", 1, 0)
        received: list[int] = []
        put = cancelled = 0
        waiting: list[asyncio.Task[Any]] = []
        while cancelled < rounds:
            waiting.append(asyncio.ensure_future(receive(driver, mailbox)))
            if random.random() < 0.5:
                await asyncio.sleep(0)
            if random.random() < 0.4:
                with driver.enter():
                    mailbox.put_many([put], source)
                put += 1
                if random.random() < 0.5:
                    await asyncio.sleep(0)
            victim = random.choice(waiting)
            victim.cancel()
            for task in await asyncio.gather(victim, return_exceptions=True):
                if isinstance(task, asyncio.CancelledError):
                    cancelled += 1
                else:
                    assert isinstance(task, int)
                    received.append(task)
            waiting.remove(victim)
            for task in [task for task in waiting if task.done()]:
                waiting.remove(task)
                received.append(task.result())
        for _ in range(5):
            await asyncio.sleep(0)
        for task in waiting:
            if task.done():
                received.append(task.result())
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        received += mailbox.take_many(put)
        assert sorted(received) == list(range(put))
        assert mailbox.waiters == 0
        await driver.close()

    asyncio.run(main(seed=1, rounds=10_000))


def test_threads_with_short_deadlines_lose_nothing(codec: Codec) -> None:
    driver = ThreadsDriver("test")
    mailbox = Mailbox(driver, codec.handover.Mailbox, on_taken=lambda *_: None)
    source = codec.handover.Source("consumer", 1, 0)
    received: list[list[int]] = [[] for _ in range(4)]
    errors: list[BaseException] = []
    stop = threading.Event()

    def one(mine: list[int]) -> Callable[[], None]:
        def loop() -> None:
            random = Random(len(errors))
            while not stop.is_set() or len(mailbox):
                try:
                    message = mailbox.take()
                    while message is None:
                        with mailbox.waiting() as wake:
                            driver.wait(wake, driver.deadline(random.choice([0, 0.0001, 0.001, 0.01])))
                            message = mailbox.take()
                    mine.append(message)
                except DeadlineError:
                    continue
                except BaseException as error:
                    errors.append(error)
                    return

        return loop

    threads = [threading.Thread(target=one(mine)) for mine in received]
    for thread in threads:
        thread.start()
    for number in range(3_000):
        with driver.enter():
            mailbox.put_many([number], source)
        if number % 50 == 0:
            stop.wait(0.002)
    stop.set()
    for thread in threads:
        thread.join(20)
    driver.close()
    assert errors == []
    assert sorted(message for mine in received for message in mine) == list(range(3_000))

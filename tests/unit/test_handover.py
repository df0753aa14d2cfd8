"""Mailbox and SendFuture on both implementations: what is put is taken once, counted once, told once."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from mqclient.errors import DeadlineError


class Thing:
    """A message that can be watched."""


@pytest.fixture
def told() -> list[tuple[Any, int]]:
    return []


@pytest.fixture
def mailbox(codec: Any, told: list[tuple[Any, int]]) -> Any:
    return codec.handover.Mailbox(lambda source, taken: told.append((source, taken)))


def source(codec: Any, half: int = 0, consumer: object = "c", epoch: int = 1) -> Any:
    return codec.handover.Source(consumer, epoch, half)


def unpacking(codec: Any, opener: Callable[[Any, Any], list[Any]] | None = None, **more: Any) -> Any:
    return codec.handover.Mailbox(None, opener or (lambda sealed, source: list(sealed)), **more)


# ------------------------------------------------------------------------------------------------ putting and taking


def test_messages_come_in_the_order_in_which_they_were_put(codec: Any, mailbox: Any) -> None:
    one = source(codec)
    assert mailbox.take() is None
    assert mailbox.put_many([1, 2, 3], one) == 3
    assert mailbox.put_many([], one) == 3
    assert mailbox.put_many([4], one) == 4
    assert [mailbox.take() for _ in range(5)] == [1, 2, 3, 4, None]
    assert len(mailbox) == 0


def test_take_many_joins_puts(codec: Any, mailbox: Any) -> None:
    one = source(codec)
    for start in range(0, 300, 3):
        mailbox.put_many([start, start + 1, start + 2], one)
    assert mailbox.take() == 0
    assert mailbox.take_many(0) == []
    assert mailbox.take_many(4) == [1, 2, 3, 4]
    assert mailbox.take_many(1000) == list(range(5, 300))
    assert mailbox.take_many(1000) == []
    assert (one.waiting, one.untold, one.last) == (0, 300, 299)


def test_what_was_put_is_taken_at_the_right_source(codec: Any, mailbox: Any) -> None:
    one, two = source(codec, consumer="one", epoch=3), source(codec, consumer="two")
    mailbox.put_many([1, 2], one)
    mailbox.put_many([3], two)
    mailbox.put_many([4], one)
    assert (one.consumer, one.epoch, one.waiting, two.waiting) == ("one", 3, 3, 1)
    assert mailbox.take_many(3) == [1, 2, 3]
    assert (one.untold, one.last, one.waiting) == (2, 2, 1)
    assert (two.untold, two.last, two.waiting) == (1, 3, 0)


def test_the_mailbox_keeps_nothing_alive_that_was_taken(codec: Any, mailbox: Any) -> None:
    one = source(codec)
    things = [Thing() for _ in range(3)]
    watched = [weakref.ref(thing) for thing in things]
    mailbox.put_many(things, one)
    del things
    mailbox.take()
    mailbox.take()
    assert watched[0]() is None, "only the last one taken is kept: a reader resumes behind it"
    assert one.last is watched[1]()


def test_a_put_of_thousands_of_lists(codec: Any, mailbox: Any) -> None:
    one = source(codec)
    for number in range(5000):
        mailbox.put_many([number], one)
    assert [mailbox.take() for _ in range(2500)] == list(range(2500))
    mailbox.put_many([5000], one)
    assert mailbox.take_many(10_000) == list(range(2500, 5001))


def test_the_extension_takes_only_lists_and_sources() -> None:
    native = pytest.importorskip("mqclient._native.handover")
    mailbox, one = native.Mailbox(), native.Source("c", 1, 0)
    for messages, origin in ((None, one), ((1,), one), ([1], None), ([1], "c")):
        with pytest.raises(TypeError):
            mailbox.put_many(messages, origin)
    assert len(mailbox) == 0


# --------------------------------------------------------------------------------------------------------- telling


def test_what_was_taken_is_told_by_halves(codec: Any, mailbox: Any, told: list[tuple[Any, int]]) -> None:
    one, two = source(codec, 3), source(codec, 2)
    mailbox.put_many([1, 2, 3, 4], one)
    mailbox.put_many([5], two)
    mailbox.put_many([6, 7, 8], one)
    for _ in range(3):
        mailbox.take()
    assert told == [(one, 3)]
    assert mailbox.take_many(5) == [4, 5, 6, 7, 8]
    assert told == [(one, 3), (one, 4)]
    assert (one.untold, two.untold) == (0, 1)


def test_a_half_of_one_tells_each_and_of_zero_none(codec: Any, mailbox: Any, told: list[tuple[Any, int]]) -> None:
    each, never = source(codec, 1), source(codec, 0)
    mailbox.put_many([1, 2], each)
    mailbox.put_many([3, 4], never)
    for _ in range(4):
        mailbox.take()
    assert told == [(each, 1), (each, 1)]
    assert never.untold == 2
    never.half = 2
    mailbox.put_many([5], never)
    mailbox.take()
    assert told[2:] == [(never, 3)]


def test_telling_finds_the_count_at_zero_and_may_come_back(codec: Any) -> None:
    mailbox: Any
    seen: list[tuple[int, int, Any]] = []

    def on_half(one: Any, taken: int) -> None:
        seen.append((taken, one.untold, mailbox.drain(1)))

    mailbox = codec.handover.Mailbox(on_half)
    mailbox.put_many([1, 2, 3], source(codec, 2))
    assert [mailbox.take(), mailbox.take(), mailbox.take()] == [1, 2, None]
    assert seen == [(2, 0, [3])]


def test_drain_tells_nobody(codec: Any, mailbox: Any, told: list[tuple[Any, int]]) -> None:
    one = source(codec, 2)
    mailbox.put_many([1, 2, 3], one)
    mailbox.put_many([4, 5], one)
    assert mailbox.drain(4) == [1, 2, 3, 4]
    assert (told, one.untold, one.last) == ([], 4, 4)
    assert mailbox.collect(one) == 4
    assert mailbox.collect(one) == 0
    assert mailbox.drain(9) == [5]


@pytest.mark.parametrize("take", [lambda mailbox: mailbox.take(), lambda mailbox: mailbox.take_many(1)[0]])
def test_what_telling_raises_loses_no_message(codec: Any, take: Callable[[Any], Any]) -> None:
    def on_half(one: Any, taken: int) -> None:
        raise KeyboardInterrupt

    mailbox = codec.handover.Mailbox(on_half)
    mailbox.put_many([1, 2], source(codec, 1))
    assert take(mailbox) == 1
    with pytest.raises(KeyboardInterrupt):
        take(mailbox)
    assert take(mailbox) == 2


# -------------------------------------------------------------------------------------------------------- clearing


def test_clear_drops_one_source_or_all(codec: Any, mailbox: Any) -> None:
    old, new = source(codec, epoch=1), source(codec, epoch=2)
    mailbox.put_many([1, 2, 3], old)
    mailbox.put_many([4], new)
    mailbox.put_many([5], old)
    mailbox.take()
    assert mailbox.clear(old) == 3
    assert (old.waiting, mailbox.collect(old), len(mailbox)) == (0, 1, 1)
    mailbox.put_many([6], new)
    assert mailbox.clear() == 2
    assert (new.waiting, len(mailbox), mailbox.take()) == (0, 0, None)
    assert mailbox.clear() == 0
    mailbox.put_many([7], new)
    assert mailbox.take() == 7


def test_clear_lets_go(codec: Any, mailbox: Any) -> None:
    thing = Thing()
    watched = weakref.ref(thing)
    mailbox.put_many([thing], source(codec))
    del thing
    mailbox.clear()
    assert watched() is None


# --------------------------------------------------------------------------------------------------------- sealed


def test_what_is_sealed_is_opened_when_its_turn_comes(codec: Any) -> None:
    opened: list[Any] = []

    def opener(sealed: str, one: Any) -> list[Any]:
        opened.append((sealed, one))
        return list(sealed)

    mailbox, one = unpacking(codec, opener), source(codec)
    mailbox.put_many([1], one)
    assert mailbox.put_sealed("abc", 3, one) == 4
    mailbox.put_sealed("de", 2, one)
    assert (len(mailbox), one.waiting) == (6, 6)
    assert mailbox.take() == 1
    assert opened == []
    assert mailbox.take() == "a"
    assert opened == [("abc", one)]
    assert (len(mailbox), one.waiting) == (4, 4)
    assert mailbox.take_many(9) == ["b", "c", "d", "e"]
    assert (one.untold, one.last) == (6, "e")


def test_messages_that_are_not_to_be_shown_do_not_count(codec: Any) -> None:
    mailbox, one = unpacking(codec), source(codec)
    mailbox.put_sealed("", 1000, one)
    mailbox.put_sealed("x", 1000, one)
    mailbox.put_sealed("", 5, one)
    assert mailbox.take() == "x"
    assert (len(mailbox), one.waiting, one.untold) == (5, 5, 1)
    assert mailbox.take_many(3) == []
    assert (len(mailbox), one.waiting, one.untold) == (0, 0, 1)


def test_drain_stops_in_front_of_what_is_sealed(codec: Any) -> None:
    mailbox, one = unpacking(codec), source(codec)
    mailbox.put_many([1, 2], one)
    mailbox.put_sealed("ab", 2, one)
    assert mailbox.drain(9) == [1, 2]
    assert mailbox.drain(9) == []
    assert len(mailbox) == 2
    assert mailbox.clear(one) == 2


def test_an_opener_that_raises_loses_nothing(codec: Any) -> None:
    broken = True

    def opener(sealed: str, one: Any) -> list[Any]:
        if broken:
            raise MemoryError("not now")
        return list(sealed)

    mailbox, one, two = unpacking(codec, opener), source(codec), source(codec)
    mailbox.put_many([1], one)
    mailbox.put_sealed("ab", 2, one)
    mailbox.put_sealed("", 0, one)
    mailbox.put_many([2], one)
    assert mailbox.take_many(9) == [1]
    for take in (mailbox.take, lambda: mailbox.take_many(9)):
        with pytest.raises(MemoryError):
            take()
    assert (len(mailbox), one.waiting) == (3, 3)
    mailbox.put_sealed("c", 0, two)
    assert mailbox.clear(one) == 3
    with pytest.raises(MemoryError):
        mailbox.take()
    broken = False
    assert mailbox.take_many(9) == ["c"]


@pytest.mark.parametrize("everything", [True, False])
def test_a_clear_while_somebody_opens_drops_what_he_opened(codec: Any, everything: bool) -> None:
    mailbox: Any
    told: list[int] = []

    def opener(sealed: str, one: Any) -> list[Any]:
        assert mailbox.clear(None if everything else one) == 1
        return list(sealed)

    mailbox = codec.handover.Mailbox(lambda one, taken: told.append(taken), opener)
    one = source(codec, 2)
    mailbox.put_sealed("abc", 3, one)
    mailbox.put_many([1], one)
    assert mailbox.take() is None
    assert (len(mailbox), one.waiting, told) == (0, 0, [3]), "its permits must find their way back"


def test_who_found_nothing_while_another_opened_is_woken(codec: Any) -> None:
    mailbox: Any
    woken: list[int] = []

    def opener(sealed: str, one: Any) -> list[Any]:
        assert mailbox.take() is None
        return list(sealed)

    mailbox = unpacking(codec, opener, wake=lambda: woken.append(len(mailbox)))
    mailbox.put_sealed("ab", 2, source(codec))
    assert mailbox.take() == "a"
    assert woken == [2]
    assert mailbox.take() == "b"
    assert woken == [2]


def test_what_arrives_while_somebody_opens_comes_later(codec: Any) -> None:
    mailbox: Any

    def opener(sealed: str, one: Any) -> list[Any]:
        mailbox.put_many([1, 2], one)
        return list(sealed)

    mailbox, one = unpacking(codec, opener), source(codec)
    mailbox.put_sealed("ab", 2, one)
    mailbox.put_many([0], one)
    assert mailbox.take_many(9) == ["a", "b", 0, 1, 2]


def test_sealed_puts_need_an_opener_and_a_count(codec: Any, mailbox: Any) -> None:
    with pytest.raises(ValueError, match="no opener"):
        mailbox.put_sealed("ab", 2, source(codec))
    with pytest.raises(ValueError, match="-1 messages"):
        unpacking(codec).put_sealed("ab", -1, source(codec))


# --------------------------------------------------------------------------------------------------------- futures


class Batch:
    """The smallest slot that a SendFuture can live on."""

    def __init__(self) -> None:
        self.done = False
        self.settled = 0
        self.outcomes: list[Any] = []
        self.callbacks: list[Callable[[], None]] = []
        self.waits: list[tuple[float | None, int]] = []
        self.waited = threading.Event()
        """Somebody waits without an end."""
        self.ended = threading.Event()

    def complete(self, outcomes: list[Any]) -> None:
        self.outcomes = outcomes
        self.done = True
        self.settled = len(outcomes)
        self.ended.set()
        for callback in self.callbacks:
            callback()

    def outcome(self, index: int) -> Any:
        return self.outcomes[index]

    def wait(self, timeout: float | None, index: int) -> bool:
        self.waits.append((timeout, index))
        if timeout is None:
            self.waited.set()
        return self.ended.wait(timeout)


def test_a_future_asks_its_batch(codec: Any) -> None:
    batch = Batch()
    future = codec.handover.SendFuture(batch, 1)
    assert (future.batch, future.index, future.done()) == (batch, 1, False)
    with pytest.raises(DeadlineError, match=r"within 0\.001 s"):
        future.result(0.001)
    with pytest.raises(TimeoutError):
        future.exception(timeout=0)
    problem = ValueError("too large")

    def complete() -> None:
        batch.waited.wait(10)
        batch.complete(["first", "second", problem])

    other = threading.Thread(target=complete)
    other.start()
    assert future.result() == "second"
    other.join()
    assert future.exception() is None
    assert batch.waits == [(0.001, 1), (0, 1), (None, 1)]
    failed = codec.handover.SendFuture(batch, 2)
    assert failed.done()
    assert failed.exception() is problem
    with pytest.raises(ValueError, match="too large"):
        failed.result(timeout=5)


def test_callbacks_are_the_batch_s_business(codec: Any) -> None:
    future_of, seen = codec.handover.SendFuture, []

    class Calling(Batch):
        def on_done(self, callback: Callable[[Any], object], index: int) -> None:
            self.callbacks.append(lambda: seen.append((callback, future_of(self, index))))

    batch = Calling()
    future = future_of(batch, 7)
    future.add_done_callback(print)
    batch.complete([])
    assert seen == [(print, future)]


def test_futures_of_one_message_are_equal(codec: Any) -> None:
    future_of, batch = codec.handover.SendFuture, Batch()
    assert future_of(batch, 1) == future_of(batch, 1)
    assert len({future_of(batch, 1), future_of(batch, 1), future_of(batch, 2), future_of(Batch(), 1)}) == 3
    assert future_of(batch, 1) != (batch, 1)


# ------------------------------------------------------------------------------------------- waited for by tasks


async def told_by_tasks(codec: Any, count: int, during: Callable[[Batch, list[asyncio.Task[Any]]], Any]) -> list[Any]:
    """What tasks that await each a message of one batch get."""
    batch, loop = Batch(), asyncio.get_running_loop()
    waits = [codec.handover.SendWait(batch, index, loop) for index in range(count)]

    async def one(wait: Any) -> Any:
        return await wait

    tasks = [asyncio.create_task(one(wait)) for wait in waits]
    await asyncio.sleep(0)
    assert not any(wait.done() for wait in waits)
    during(batch, tasks)
    await asyncio.sleep(0)
    if batch.done:
        codec.handover.wake(waits)
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_tasks_that_wait_for_one_batch_are_woken_in_one_turn(codec: Any) -> None:
    problem = ValueError("too large")
    found = asyncio.run(told_by_tasks(codec, 3, lambda batch, _: batch.complete(["a", "b", problem])))
    assert found == ["a", "b", problem]


def test_a_task_that_is_cancelled_leaves_the_others_waiting(codec: Any) -> None:
    def during(batch: Batch, tasks: list[asyncio.Task[Any]]) -> None:
        tasks[1].cancel()
        asyncio.get_running_loop().call_soon(batch.complete, ["a", "b", "c"])

    found = asyncio.run(told_by_tasks(codec, 3, during))
    assert (found[0], type(found[1]), found[2]) == ("a", asyncio.CancelledError, "c")


def test_what_is_done_is_not_waited_for(codec: Any) -> None:
    async def main() -> None:
        batch = Batch()
        wait = codec.handover.SendWait(batch, 0, asyncio.get_running_loop())
        assert wait.get_loop() is asyncio.get_running_loop()
        batch.complete(["a"])
        assert (wait.done(), wait.cancelled(), wait.cancel()) == (True, False, False)
        assert await wait == "a"
        later = asyncio.get_running_loop().create_future()
        wait.add_done_callback(later.set_result)
        assert await later is wait

    asyncio.run(main())


def test_each_is_for_one_task(codec: Any) -> None:
    async def main() -> None:
        batch = Batch()
        wait = codec.handover.SendWait(batch, 0, asyncio.get_running_loop())
        called: list[Any] = []
        wait.add_done_callback(called.append)
        with pytest.raises(RuntimeError, match="two tasks"):
            wait.add_done_callback(called.append)
        assert [wait.remove_done_callback(print), wait.remove_done_callback(called.append)] == [0, 1]
        wait.add_done_callback(called.append)
        assert wait.cancel()
        await asyncio.sleep(0)
        assert (called, wait.cancelled()) == ([wait], True)
        with pytest.raises(asyncio.CancelledError):
            wait.result()

    asyncio.run(main())


def test_a_callback_that_raises_keeps_nobody_waiting(codec: Any) -> None:
    async def main() -> list[Any]:
        loop, batch = asyncio.get_running_loop(), Batch()
        called: list[Any] = []
        loop.set_exception_handler(lambda loop, context: called.append(type(context["exception"])))
        waits = [codec.handover.SendWait(batch, index, loop) for index in range(3)]
        waits[0].add_done_callback(lambda _: called.append(0))
        waits[1].add_done_callback(lambda _: 1 // 0)
        waits[2].add_done_callback(lambda _: called.append(2))
        batch.complete(["a", "b", "c"])
        codec.handover.wake(waits)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return called

    assert asyncio.run(main()) == [0, ZeroDivisionError, 2]

"""Random histories of a mailbox: nothing is lost, doubled or told twice, not even between threads."""

from __future__ import annotations

import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.property.twins import NAMES, twins_of

TWINS = twins_of("handover")

HALF = 5


def same(answers: list[Any]) -> Any:
    """What all twins answered."""
    assert all(answer == answers[0] for answer in answers), answers
    return answers[0]


class Side:
    """One implementation with its two sources and what it told."""

    def __init__(self, twin: Any) -> None:
        self.told: list[tuple[str, int, int]] = []
        self.twin = twin
        self.mailbox = twin.Mailbox(
            lambda source, taken: self.told.append((source.consumer, source.epoch, taken)),
            lambda sealed, source: list(sealed),
        )
        self.sources = {consumer: twin.Source(consumer, 0, HALF) for consumer in "ab"}


class Model:
    """A plain queue of (consumer, message); what is sealed is (consumer, None, messages, announced)."""

    def __init__(self) -> None:
        self.queue: deque[Any] = deque()
        self.epochs = dict.fromkeys("ab", 0)
        self.untold = dict.fromkeys("ab", 0)
        self.last: dict[str, int | None] = dict.fromkeys("ab", None)
        self.told: list[tuple[str, int, int]] = []

    def waiting(self, consumer: str | None = None) -> int:
        mine = [item for item in self.queue if consumer in (None, item[0])]
        return sum(1 if item[1] is not None else item[3] for item in mine)

    def take(self, limit: int, opening: bool = True) -> tuple[list[int], list[str]]:
        taken: list[int] = []
        touched: list[str] = []
        while self.queue and len(taken) < limit:
            consumer, message, *sealed = self.queue[0]
            if message is None and not opening:
                break
            self.queue.popleft()
            touched.append(consumer)
            if message is None:
                self.queue.extendleft((consumer, one) for one in reversed(sealed[0]))
                continue
            taken.append(message)
            self.untold[consumer] += 1
            self.last[consumer] = message
        return taken, touched

    def tell(self, touched: list[str]) -> None:
        for consumer in dict.fromkeys(touched):
            if self.untold[consumer] >= HALF:
                self.told.append((consumer, self.epochs[consumer], self.untold[consumer]))
                self.untold[consumer] = 0


class MailboxMachine(RuleBasedStateMachine):
    """Native and pure against a deque."""

    @initialize()
    def open(self) -> None:
        self.sides = [Side(twin) for twin in TWINS]
        self.model = Model()
        self.next = 0

    def fresh(self, count: int) -> list[int]:
        self.next += count
        return list(range(self.next - count, self.next))

    def ask(self, name: str, *arguments: Any) -> Any:
        return same([getattr(side.mailbox, name)(*arguments) for side in self.sides])

    @rule(consumer=st.sampled_from("ab"), count=st.integers(0, 12))
    def put_many(self, consumer: str, count: int) -> None:
        messages = self.fresh(count)
        self.model.queue.extend((consumer, message) for message in messages)
        for side in self.sides:
            assert side.mailbox.put_many(list(messages), side.sources[consumer]) == self.model.waiting()

    @rule(consumer=st.sampled_from("ab"), count=st.integers(0, 6), hidden=st.integers(0, 3))
    def put_sealed(self, consumer: str, count: int, hidden: int) -> None:
        messages = self.fresh(count)
        self.model.queue.append((consumer, None, messages, count + hidden))
        for side in self.sides:
            side.mailbox.put_sealed(messages, count + hidden, side.sources[consumer])

    @rule()
    def take(self) -> None:
        taken, touched = self.model.take(1)
        self.model.tell(touched)
        assert self.ask("take") == (taken[0] if taken else None)

    @rule(limit=st.integers(0, 30))
    def take_many(self, limit: int) -> None:
        taken, touched = self.model.take(limit)
        self.model.tell(touched)
        assert self.ask("take_many", limit) == taken

    @rule(limit=st.integers(0, 10))
    def drain(self, limit: int) -> None:
        taken, _ = self.model.take(limit, opening=False)
        assert self.ask("drain", limit) == taken

    @rule(consumer=st.sampled_from("ab"))
    def collect(self, consumer: str) -> None:
        for side in self.sides:
            assert side.mailbox.collect(side.sources[consumer]) == self.model.untold[consumer]
        self.model.untold[consumer] = 0

    @rule(consumer=st.sampled_from("ab"))
    def reconnect(self, consumer: str) -> None:
        """Untold takes are collected and the mailbox is cleared in one entry; then a new epoch begins."""
        model, gone = self.model, self.model.waiting(consumer)
        model.queue = deque(item for item in model.queue if item[0] != consumer)
        for side in self.sides:
            old = side.sources[consumer]
            assert side.mailbox.collect(old) == model.untold[consumer]
            assert side.mailbox.clear(old) == gone
            assert (old.waiting, old.untold) == (0, 0)
            side.sources[consumer] = side.twin.Source(consumer, old.epoch + 1, HALF)
        model.epochs[consumer] += 1
        model.untold[consumer] = 0
        model.last[consumer] = None

    @rule()
    def clear(self) -> None:
        gone = self.model.waiting()
        self.model.queue.clear()
        assert self.ask("clear") == gone

    @invariant()
    def agrees(self) -> None:
        assert self.ask("__len__") == self.model.waiting()
        for side in self.sides:
            for consumer, source in side.sources.items():
                assert source.waiting == self.model.waiting(consumer)
                assert source.untold == self.model.untold[consumer]
                assert source.last == self.model.last[consumer]
                assert source.epoch == self.model.epochs[consumer]

    @invariant()
    def told(self) -> None:
        for side in self.sides:
            assert side.told == self.model.told


TestMailbox = MailboxMachine.TestCase
TestMailbox.settings = settings(stateful_step_count=80, deadline=None)


# ---------------------------------------------------------------------------------------------------------- threads


@pytest.fixture(autouse=True)
def many_switches() -> Iterator[None]:
    """Threads meet in more places when none runs long."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run_all(jobs: list[Callable[[], None]]) -> None:
    """Each in a thread of its own; what one raises fails the test."""
    failures: list[BaseException] = []

    def guarded(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


class Crowd:
    """Threads that put, take in each manner, drain, collect and clear; the sum must come out."""

    def __init__(self, twin: Any, puts: int, sealing: bool) -> None:
        self.sealing = sealing
        self.lock = threading.Lock()
        self.told = 0
        self.done = threading.Event()
        self.mailbox = twin.Mailbox(self.on_half, self.opener)
        self.source = twin.Source("c", 1, 50)
        self.puts = puts
        self.taken: list[list[int]] = []
        self.cleared = 0
        self.hidden = 0
        self.collected = 0

    def on_half(self, source: Any, taken: int) -> None:
        with self.lock:
            self.told += taken

    def opener(self, sealed: list[int], source: Any) -> list[int]:
        """Shows all but the first, and says so, as an engine's opener releases what it hides."""
        with self.lock:
            self.hidden += 1
        return sealed[1:]

    def put(self, start: int) -> None:
        for number in range(self.puts):
            messages = list(range(start, start + 7))
            start += 7
            if number % 5 or not self.sealing:
                self.mailbox.put_many(messages, self.source)
            else:
                self.mailbox.put_sealed(messages, 7, self.source)

    def take(self, call: Callable[[], list[int]]) -> None:
        mine: list[int] = []
        self.taken.append(mine)
        while not self.done.is_set() or len(self.mailbox):
            mine.extend(call())

    def take_one(self) -> list[int]:
        message = self.mailbox.take()
        return [] if message is None else [message]

    def disturb(self, clearing: bool) -> None:
        while not self.done.wait(0.0005):
            collected = self.mailbox.collect(self.source)
            cleared = self.mailbox.clear(self.source) if clearing else 0
            self.collected += collected
            self.cleared += cleared

    def run(self, putters: int, clearing: bool) -> None:
        def puts() -> None:
            width = self.puts * 7
            run_all([lambda start=start: self.put(start) for start in range(0, putters * width, width)])  # type: ignore[misc]
            self.done.set()

        takers = [self.take_one, self.take_one, lambda: self.mailbox.take_many(20), lambda: self.mailbox.drain(3)]
        jobs: list[Callable[[], None]] = [lambda call=call: self.take(call) for call in takers]  # type: ignore[misc]
        run_all([puts, *jobs, lambda: self.disturb(clearing)])


@pytest.mark.parametrize(("sealing", "clearing"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("twin", TWINS, ids=NAMES)
def test_threads_lose_and_double_nothing(twin: Any, sealing: bool, clearing: bool, scale: str) -> None:
    putters, puts = 3, {"test": 2000, "ci": 20_000, "soak": 100_000}[scale]
    crowd = Crowd(twin, puts, sealing)
    crowd.run(putters, clearing)
    total = putters * puts * 7
    taken = Counter(message for mine in crowd.taken for message in mine)
    assert max(taken.values()) == 1
    assert set(taken) <= set(range(total))
    counted = crowd.told + crowd.collected + crowd.mailbox.collect(crowd.source)
    assert (len(crowd.mailbox), crowd.source.waiting) == (0, 0)
    assert counted + crowd.cleared + crowd.hidden == total, "a permit is lost or doubled"
    assert len(taken) <= counted, "more was taken than counted"
    if not clearing:
        assert len(taken) == counted
    if not sealing:  # what is opened by one thread may be overtaken by another
        for mine in crowd.taken:
            for start in range(0, total, total // putters):
                own = [message for message in mine if start <= message < start + total // putters]
                assert own == sorted(own), "one putter's messages came out of order"


@pytest.mark.parametrize("name", NAMES)
def test_threads_acknowledge_into_one_set(name: str, scale: str) -> None:
    permits = import_module(f"mqclient._{name}.permits")
    entries, size = {"test": 2000, "ci": 20_000, "soak": 100_000}[scale], 6
    acks = permits.AckSet(64, batch_index=False)
    told: list[Any] = []

    def acknowledge(indexes: range) -> None:
        for entry in range(entries):
            for index in indexes:
                if acks.add_id(1, entry, index, size) == permits.FLUSH:
                    told.extend(acks.take())

    run_all([lambda start=start: acknowledge(range(start, size, 3)) for start in range(3)])  # type: ignore[misc]
    told.extend(acks.take())
    assert sorted(told) == [(1, entry) for entry in range(entries)]

"""The look at parked connections, native and pure: what ends it, and what does not."""

from __future__ import annotations

import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.io.poller import READ, Bell, EpollPoller

LONG = 20.0
PARK = 0.03


@pytest.fixture(params=["pulsar", "remoting"])
def make(codec: Impl, request: pytest.FixtureRequest) -> Callable[[], Any]:
    """A frame reader of either protocol."""
    found: Callable[[], Any] = getattr(codec, request.param).FrameReader
    return found


@pytest.fixture
def bell() -> Bell:
    return Bell()


class Looking:
    """A thread that looks, and how long it did."""

    def __init__(self, bell: Bell, *readers: Any, seconds: float = inf, park: float = PARK) -> None:
        self.took = 0.0
        self.began = time.monotonic()
        self._given = (bell.fd, list(readers), park, seconds)
        self.thread = threading.Thread(target=self._look, daemon=True)
        self.thread.start()

    def _look(self) -> None:
        poller, readers, park, seconds = self._given
        readers[0].look_after(poller, readers, park, seconds)
        self.took = time.monotonic() - self.began

    def end(self) -> float:
        self.thread.join(LONG)
        assert not self.thread.is_alive(), "nothing ended it"
        return self.took

    def goes_on(self, seconds: float) -> bool:
        self.thread.join(seconds)
        return self.thread.is_alive()


def test_nobody_borrowed_it_before(make: Callable[[], Any]) -> None:
    assert make().last_borrow == 0.0


def test_one_that_nobody_borrows_ends_it_and_not_before_its_time(make: Callable[[], Any], bell: Bell) -> None:
    """Also one that was left long ago: who could do nothing about it looks again, and must not do so all the time."""
    reader, read = make(), make()
    read.last_borrow = inf
    assert PARK <= Looking(bell, read, reader).end() < LONG
    reader.last_borrow = time.monotonic() + PARK / 2
    assert 1.5 * PARK <= Looking(bell, reader).end() < LONG, "borrowed a moment after it began"


def test_the_bell_ends_it_rung_before_or_meanwhile(make: Callable[[], Any], bell: Bell) -> None:
    reader = make()
    reader.last_borrow = inf
    looking = Looking(bell, reader)
    assert looking.goes_on(5 * PARK)
    bell.ring()
    assert 5 * PARK <= looking.end() < LONG
    Looking(bell, reader).end()
    bell.silence()
    assert Looking(bell, reader).goes_on(5 * PARK)
    bell.ring()


def test_a_poller_is_as_good_as_a_bell(make: Callable[[], Any], bell: Bell) -> None:
    poller, reader = EpollPoller(), make()
    poller.set(bell.fd, READ)
    reader.last_borrow = inf
    bell.ring()
    reader.look_after(poller.fd, [reader], PARK, inf)
    assert poller.wait(0) == [(bell.fd, select.EPOLLIN)]
    poller.close()


def test_its_time_ends_it(make: Callable[[], Any], bell: Bell) -> None:
    reader = make()
    reader.last_borrow = inf
    assert 0.1 <= Looking(bell, reader, seconds=0.1).end() < LONG
    Looking(bell, reader, seconds=0.0).end()


def test_as_long_as_callers_come_it_goes_on(make: Callable[[], Any], bell: Bell) -> None:
    reader = make()
    reader.last_borrow = inf
    looking, end = Looking(bell, reader, park=0.3), time.monotonic() + 1
    while time.monotonic() < end:
        reader.last_borrow = time.monotonic()
        assert not looking.took
        time.sleep(0.001)
    left = reader.last_borrow
    looking.end()
    assert looking.began + looking.took - left >= 0.3


def test_of_very_many_all_are_looked_at(make: Callable[[], Any], bell: Bell) -> None:
    readers = [make() for _ in range(100)]
    for reader in readers:
        reader.last_borrow = inf
    readers[90].last_borrow = 0.0
    assert PARK <= Looking(bell, *readers).end() < LONG


@pytest.fixture
def handled() -> Iterator[list[int]]:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
    yield seen
    signal.signal(signal.SIGUSR1, before)


def test_a_signal_does_not_end_it(make: Callable[[], Any], bell: Bell, handled: list[int]) -> None:
    reader = make()
    reader.last_borrow = inf
    looking = Looking(bell, reader)
    for _ in range(3):
        signal.pthread_kill(looking.thread.ident or 0, signal.SIGUSR1)
        assert looking.goes_on(0.01)
    assert handled
    bell.ring()
    looking.end()


def test_only_frame_readers_are_looked_at(codec: Impl, make: Callable[[], Any], bell: Bell) -> None:
    if codec.name == "native":
        with pytest.raises(TypeError):
            make().look_after(bell.fd, [object()], PARK, 0.1)
    with pytest.raises(TypeError):
        make().look_after(bell.fd, None, PARK, 0.1)

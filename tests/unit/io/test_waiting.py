"""One thread that waits for one slot: woken once, by whichever way it sleeps."""

from __future__ import annotations

import errno
import socket
import threading
import time
from typing import Any

from mqclient.core.slot import Slot
from mqclient.io.waiting import Desk, Waiter


def test_a_wake_before_the_sleep_is_not_missed() -> None:
    waiter = Waiter(lambda call, argument: None)
    waiter.wake(None)
    waiter.wake(None)
    start = time.monotonic()
    waiter.sleep(10)
    assert time.monotonic() - start < 5


def test_the_own_thread_needs_no_wake() -> None:
    delivered: list[Any] = []
    waiter = Waiter(lambda call, argument: delivered.append(call))
    waiter.on_done(Slot())
    assert delivered == []
    other = threading.Thread(target=waiter.on_done, args=(Slot(),))
    other.start()
    other.join()
    assert delivered == [waiter.wake]


def test_changing_from_poll_to_lock_misses_no_wake() -> None:
    # Sequence: the waiter polls with its bell; it takes the bell away while the waker writes `woken` and looks for it.
    desk = Desk()
    for number in range(2_000):
        waiter = Waiter(lambda call, argument: None)
        waiter.bell = desk.own_bell()
        waker = threading.Thread(target=waiter.wake, args=(None,))
        waker.start()
        if number % 2:
            time.sleep(0)
        waiter.bell = None
        waiter.sleep(10)
        assert waiter.woken
        waker.join()


def test_a_desk_is_each_threads_own() -> None:
    desk = Desk()
    mine = desk.own_bell()
    others: list[Any] = []
    thread = threading.Thread(target=lambda: others.append(desk.own_bell()))
    thread.start()
    thread.join()
    assert others[0] is not mine
    assert desk.own_bell() is mine


def test_waiting_for_a_descriptor_ends_by_data_by_the_bell_or_by_time() -> None:
    desk, (ours, theirs) = Desk(), socket.socketpair()
    with ours, theirs:
        bell = desk.own_bell()
        assert desk.wait(ours.fileno(), 1, bell.fd) == -errno.EAGAIN
        bell.ring()
        assert desk.wait(ours.fileno(), 60_000, bell.fd) == -errno.EAGAIN
        theirs.sendall(b"x")
        assert desk.wait(ours.fileno(), 60_000, bell.fd) == 0


def test_two_who_wake_at_once_do_no_harm() -> None:
    # Sequence: both see it asleep; the first releases the lock, then the second does.
    waiter = Waiter(lambda call, argument: None)
    waiter.sleep(0)
    waiter.wake(None)
    waiter.woken = False
    waiter.wake(None)
    assert waiter.woken


def test_a_sleep_ends_at_its_time() -> None:
    waiter = Waiter(lambda call, argument: None)
    start = time.monotonic()
    for seconds in (-1.0, 0.0, 0.02):
        waiter.sleep(seconds)
    assert 0.015 < time.monotonic() - start < 5
    assert not waiter.woken

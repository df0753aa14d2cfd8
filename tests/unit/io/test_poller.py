"""What the reader thread sleeps on, on Linux and elsewhere."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from mqclient.io.poller import READ, WRITE, Bell, EpollPoller, NoBell, Poller, SelectorPoller, new_poller


@pytest.fixture(params=[EpollPoller, SelectorPoller])
def poller(request: pytest.FixtureRequest) -> Iterator[Poller]:
    it: Poller = request.param()
    yield it
    it.close()


def test_a_bell_wakes_a_sleeper_and_is_silent_again(poller: Poller) -> None:
    bell = Bell()
    poller.set(bell.fd, READ)
    assert poller.wait(0) == []
    threading.Timer(0.02, bell.ring).start()
    assert poller.wait(10) == [(bell.fd, READ)]
    for _ in range(3):
        bell.ring()
    bell.silence()
    bell.silence()
    assert poller.wait(0) == []


def test_a_bell_closes_with_its_last_reference() -> None:
    bell = Bell()
    fd = bell.fd
    os.fstat(fd)
    del bell
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(fd)
    NoBell().ring()


def test_a_bell_without_eventfd(monkeypatch: pytest.MonkeyPatch, poller: Poller) -> None:
    monkeypatch.delattr(os, "eventfd", raising=False)
    bell = Bell()
    poller.set(bell.fd, READ)
    for _ in range(100_000):  # more than a pipe holds
        bell.ring()
    assert poller.wait(10) == [(bell.fd, READ)]
    while poller.wait(0):
        bell.silence()
    poller.forget(bell.fd)


def test_masks_change_and_are_forgotten(poller: Poller) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fd = ours.fileno()
        poller.set(fd, READ | WRITE)
        assert poller.wait(1) == [(fd, WRITE)]
        theirs.send(b"x")
        poller.set(fd, READ)
        assert poller.wait(1) == [(fd, READ)]
        poller.set(fd, 0)
        assert poller.wait(0) == []
        poller.set(fd, READ)
        assert poller.wait(1) == [(fd, READ)]
        poller.forget(fd)
        poller.forget(fd)
        assert poller.wait(0) == []


def test_epoll_masks_change_while_another_thread_sleeps() -> None:
    poller = new_poller()
    if not poller.shared:
        pytest.skip("only with epoll")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        poller.set(ours.fileno(), 0)
        theirs.send(b"x")
        threading.Timer(0.02, poller.set, (ours.fileno(), READ)).start()
        start = time.monotonic()
        assert poller.wait(10) == [(ours.fileno(), READ)]
        assert time.monotonic() - start < 5
    poller.close()


def test_after_closing_nothing_is_touched(poller: Poller) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        poller.set(ours.fileno(), READ)
        poller.close()
        poller.forget(ours.fileno())  # what a forked child does with the parent's poller

"""`wait` of the native frame readers beside a thread that burns: it asks for the GIL while what it waits for comes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from mqclient._impl import select
from mqclient.io.poller import Bell
from tests.support.burning import answering, burning


@pytest.fixture(params=["pulsar", "remoting"])
def codec(request: pytest.FixtureRequest) -> Any:
    try:
        return getattr(select("native"), request.param)
    except ImportError:
        pytest.skip("no native modules in this build")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def exchanges(reader: Any, pair: tuple[socket.socket, socket.socket], count: int) -> list[float]:
    """The seconds of each: something goes out, and 40 ms later something comes."""
    ours, theirs = pair
    taken = []
    with answering(theirs, [b"x"] * count, 0.04), burning():
        for _ in range(count):
            began = time.monotonic()
            ours.send(b"x")
            assert reader.wait(ours.fileno(), 20_000, -1) == 0
            taken.append(time.monotonic() - began)
            assert ours.recv(10) == b"x"
    return taken


def test_answer_and_turn_are_waited_for_at_once(codec: Any, pair: tuple[socket.socket, socket.socket]) -> None:
    """A burning thread gives way 50 ms after it is asked: each took 90 at least."""
    taken = exchanges(codec.FrameReader(), pair, 24)
    assert min(map(max, taken, taken[1:])) < 0.085, f"never two in a row: {taken}"


def test_afterwards_its_time_and_the_bell_end_it_as_ever(codec: Any, pair: tuple[socket.socket, socket.socket]) -> None:
    reader, bell, fd = codec.FrameReader(), Bell(), pair[0].fileno()
    for ms, rung in ((100, False), (20_000, True)):
        exchanges(reader, pair, 3)
        if rung:
            bell.ring()
        began = time.monotonic()
        assert reader.wait(fd, ms, bell.fd) == codec.WOULD_BLOCK
        assert (0.0 if rung else 0.095) <= time.monotonic() - began < 10
    exchanges(reader, pair, 3)
    assert reader.wait(fd, 0, -1) == codec.WOULD_BLOCK
    pair[1].send(b"x")
    assert reader.wait(fd, -1, bell.fd) == 0


def test_while_it_burns_no_wait_takes_longer_for_it(codec: Any, pair: tuple[socket.socket, socket.socket]) -> None:
    reader, fd = codec.FrameReader(), pair[0].fileno()
    exchanges(reader, pair, 3)
    with burning():
        for _ in range(4):
            began = time.monotonic()
            assert reader.wait(fd, 20, -1) == codec.WOULD_BLOCK
            assert 0.019 <= time.monotonic() - began < 10

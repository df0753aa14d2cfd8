"""Several threads in one lane: who reads, who is woken, who writes what was left to him, and what becomes of all."""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest

from mqclient._impl import select
from tests.support.road import PATIENCE_MS, Road

try:
    codec: Any = select("native").pulsar
except ImportError:  # a build without them: nobody has a lane
    codec = None
BODY = (b"x" * 100, None, None, 0, None, -1, False)
LONG = 30.0


@pytest.fixture
def road() -> Iterator[Road]:
    if codec is None:
        pytest.skip("no native modules in this build")
    made = Road(codec)
    assert made.open()
    yield made
    made.close()


class Answering:
    """The other end: reads SENDs, and answers them when it is told to."""

    def __init__(self, road: Road) -> None:
        self.peer = road.peer
        self.peer.settimeout(LONG)
        self.reader = codec.FrameReader()
        self.numbers: list[int] = []

    def take(self, count: int) -> list[int]:
        """The sequence ids of so many more."""
        first = len(self.numbers)
        while len(self.numbers) < first + count:
            data = self.peer.recv(65536)
            if not data:
                break
            for event in self.reader.feed(data):
                self.numbers.append(event[2])
        return self.numbers[first:]

    def answer(self, *numbers: int, before: bytes = b"") -> None:
        self.peer.sendall(before + b"".join(codec.encode_receipt(1, number, 7, number) for number in numbers))


def sending(road: Road, count: int, times: int = 1) -> tuple[list[threading.Thread], list[Any]]:
    """So many threads, and what `send` gave each of them, in a list each."""
    found: list[Any] = [[] for _ in range(count)]

    def work(place: int) -> None:
        for _ in range(times):
            found[place].append(road.lane.send(BODY))

    threads = [threading.Thread(target=work, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    return threads, found


def joined(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def ids(found: list[Any]) -> list[int]:
    return sorted(slot.result().entry for slots in found for slot in slots)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def at_rest(road: Road, following: int, sent: int) -> None:
    """Nobody is inside, nothing is left, and reading is free."""
    assert not road.connection.lent
    assert 0 < road.reader.last_borrow <= time.monotonic()
    assert road.reading.acquire(False)
    road.reading.release()
    assert road.lane.shut(9.0) == (following, sent, [])
    assert road.flight.count == 0


@pytest.mark.parametrize("together", [True, False])
def test_each_gets_its_own_id_and_the_reading_is_passed_on(road: Road, together: bool) -> None:
    other = Answering(road)
    threads, found = sending(road, 8)
    assert sorted(other.take(8)) == list(range(5, 13)), "all are written, though none has a receipt"
    assert road.connection.lent
    assert road.reader.last_borrow == inf, "somebody reads"
    assert other.numbers == sorted(other.numbers)
    if together:
        other.answer(*range(5, 13))
    else:
        for number in range(5, 13):
            other.answer(number)
            until(lambda number=number: sum(map(len, found)) == number - 4)  # type: ignore[misc]
    joined(threads)
    assert ids(found) == list(range(5, 13))
    assert road.dispatched == []
    assert road.lane.published == 12
    assert road.reader.last_borrow >= road.link.last_read > 0
    at_rest(road, 13, 8)


@pytest.mark.parametrize("threads", [2, 8, 16])
def test_any_pace_and_any_pieces(road: Road, threads: int) -> None:
    """Receipts come in pieces of any size: nobody gets another one's, nobody waits for ever."""
    times, seen = 300 if threads < 16 else 100, 0
    pace = random.Random(threads)
    other = Answering(road)
    senders, found = sending(road, threads, times)
    told = bytearray()
    while seen < threads * times:
        for number in other.take(1):
            told += codec.encode_receipt(1, number, 7, number)
        seen = len(other.numbers)
        while told:
            size = pace.choice([len(told), len(told), 7, 40, 200])
            other.peer.sendall(told[:size])
            del told[:size]
            if told and size < 40 and pace.random() < 0.1:
                time.sleep(0.0005)
    joined(senders)
    assert other.numbers == list(range(5, 5 + threads * times)), "in order, each once"
    assert ids(found) == other.numbers
    for slots in found:
        mine = [slot.result().entry for slot in slots]
        assert mine == sorted(mine)
    at_rest(road, 5 + threads * times, threads * times)


def test_another_frame_among_the_receipts_goes_to_whom_it_concerns(road: Road) -> None:
    other = Answering(road)
    threads, found = sending(road, 3)
    other.take(3)
    other.peer.sendall(codec.encode_receipt(1, 5, 7, 5) + codec.PING_FRAME + codec.encode_receipt(1, 6, 7, 6))
    until(lambda: len(road.dispatched) == 1)
    other.answer(7)
    joined(threads)
    assert [event[0] for events, _ in road.dispatched for event in events][:2] == [codec.PING, codec.SEND_RECEIPT]
    # The lane was shut by it: who had no receipt has a slot of the engine's.
    until(lambda: road.flight.count <= 1)
    if road.flight.count:
        road.flight.take_receipts([(codec.SEND_RECEIPT, 1, 7, 7, 7, -1)], 0)
    assert ids(found) == [5, 6, 7]
    assert not road.connection.lent


def test_shut_while_several_wait(road: Road) -> None:
    """All have slots in the order of their messages; the reader thread is asked to read at once."""
    road.lane.patience_ms = 100
    other = Answering(road)
    threads, found = sending(road, 4)
    other.take(4)
    assert road.lane.shut(9.0) == (9, 4, [])
    assert [one.sequence_id for one in [road.flight]] == [5]
    assert road.lane.shut(9.0) == (9, 0, [])
    joined(threads)
    assert [len(slots) for slots in found] == [1] * 4
    assert (road.flight.count, road.flight.size, road.flight.deadline) == (4, 400, 9.0)
    taken = road.flight.take_receipts([(codec.SEND_RECEIPT, 1, number, 7, number, -1) for number in range(5, 9)], 0)
    assert (taken, ids(found)) == (4, [5, 6, 7, 8])
    assert road.rung()
    assert road.reader.last_borrow == 0.0
    assert not road.connection.lent


def test_a_receipt_that_takes_its_time_is_waited_for_by_the_engine_all_of_them(road: Road) -> None:
    road.lane.patience_ms = 100
    began = time.monotonic()
    threads, found = sending(road, 5)
    joined(threads)
    assert 0.09 < time.monotonic() - began < LONG / 2
    assert not any(slot.done for slots in found for slot in slots)
    assert road.flight.count == 5
    assert not road.lane.opened
    assert not road.connection.lent


def test_the_end_of_the_stream_ends_it_for_all(road: Road) -> None:
    road.open_until_the_stream_ends()
    other = Answering(road)
    threads, found = sending(road, 6)
    other.take(6)
    road.peer.shutdown(socket.SHUT_WR)
    joined(threads)
    assert (road.flight.count, sum(map(len, found))) == (6, 6)
    assert list(road.handed) == [road.connection]
    assert not road.connection.lent


def test_the_bell_ends_it_for_all(road: Road) -> None:
    other = Answering(road)
    threads, found = sending(road, 6)
    other.take(6)
    began = time.monotonic()
    road.end_bell.ring()
    joined(threads)
    assert time.monotonic() - began < PATIENCE_MS / 2000, "not after the time that a receipt may take"
    assert [slot.done for slots in found for slot in slots] == [False] * 6


def test_who_reads_may_send_from_a_callback(road: Road) -> None:
    """He would wait for himself."""
    sent: list[Any] = []
    dispatch = road.dispatch

    def and_send(connection: Any, events: list[Any], got: int) -> None:
        sent.append(road.lane.send(BODY))
        dispatch(connection, events, got)

    road.dispatch = and_send  # type: ignore[method-assign]
    road.lane.shut(9.0)
    assert road.open()
    answering = road.answer(5, before=codec.PING_FRAME)
    assert road.lane.send(BODY).done
    answering.join()
    assert sent == [None]


def test_ctrl_c_takes_the_reading_thread_away_and_the_others_go_on(road: Road) -> None:
    other = Answering(road)
    begun = threading.Event()
    result: list[Any] = []

    def follow() -> None:
        other.take(1)  # the main thread's, which reads
        threads, found = sending(road, 3)
        other.take(3)
        begun.set()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        until(lambda: not interrupted.is_alive() or result != [])
        other.answer(*range(5, 9))
        joined(threads)
        result.append(ids(found))

    interrupted = threading.Thread(target=lambda: begun.wait(LONG))
    interrupted.start()
    thread = threading.Thread(target=follow)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        road.lane.send(BODY)
    thread.join(LONG)
    assert result == [[6, 7, 8]]
    at_rest(road, 9, 4)


def test_ctrl_c_takes_a_waiting_thread_away(road: Road) -> None:
    other = Answering(road)
    threads, found = sending(road, 1)
    assert other.take(1) == [5], "it reads"
    began: list[float] = []

    def interrupt() -> None:
        other.take(1)
        time.sleep(0.005)
        began.append(time.monotonic())
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        road.lane.send(BODY)
    assert time.monotonic() - began[0] < 0.05
    thread.join(LONG)
    other.answer(5, 6)
    joined(threads)
    assert ids(found) == [5]
    at_rest(road, 7, 2)


def test_no_more_are_inside_than_there_is_room_for(road: Road) -> None:
    road.budget.max_bytes, road.budget.max_items = 250, 0
    other = Answering(road)
    threads, found = sending(road, 2)
    other.take(2)
    assert road.lane.send(BODY) is None, "of 250 bytes 200 are taken"
    road.budget.max_bytes, road.budget.max_items = 0, 3
    assert road.budget.take(1)
    assert road.lane.send(BODY) is None, "of three all are taken"
    other.answer(5, 6)
    joined(threads)
    assert ids(found) == [5, 6]
    road.budget.give(1)
    at_rest(road, 7, 2)


class Left:
    """One thread gets its receipt and sends again, before another one that got its own with it has the GIL."""

    def __init__(self, road: Road, then: Callable[[], object]) -> None:
        self.road, self.then, self.slots = road, then, []  # type: ignore[var-annotated]
        self.other = Answering(road)
        self.threads = [threading.Thread(target=self.work) for _ in range(2)]
        for thread in self.threads:
            thread.start()
        self.pair = self.other.take(2)
        self.other.answer(*self.pair)

    def work(self) -> None:
        self.slots.append(self.road.lane.send(BODY))
        self.then()
        self.slots.append(self.road.lane.send(BODY))


@pytest.fixture
def slow_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("slow_switches")
def test_what_was_left_to_another_who_cannot_write_is_the_engines(road: Road) -> None:
    """The last one of those who got receipts finds that the reader thread has something to write."""
    told: list[Any] = []
    hindered = threading.Event()

    class Connection(SimpleNamespace):
        """Free for who sends; taken for who comes back last."""

        @property
        def writing(self) -> bool:
            return hindered.is_set() and road.connection.looks()

        @writing.setter
        def writing(self, value: bool) -> None:
            return

    def give_up() -> None:
        told.append(road.lane.shut(9.0))

    given = {key: value for key, value in vars(road.connection).items() if key != "writing"}
    road.lane.shut(9.0)
    road.connection = Connection(**given)
    looked: list[int] = []
    road.connection.looks = lambda: len(looked.append(1) or looked) > 1  # type: ignore[func-returns-value]
    road.lane = codec.Lane(road.budget, lambda: SimpleNamespace(done=False), give_up)
    for _ in range(50):
        assert road.open(road.lane.shut(9.0)[0] or 5)
        looked.clear()
        hindered.clear()
        left = Left(road, hindered.set)
        joined(left.threads)
        hindered.clear()
        lost = [frame for _, _, frames in told for frame in frames]
        if lost:
            break
        road.lane.shut(9.0)
        road.flight.part()
        road.close()
        fresh = Road(codec)
        road.sock, road.peer, road.flight, road.reader = fresh.sock, fresh.peer, fresh.flight, fresh.reader
    if not lost:
        pytest.skip("on this machine, now, nobody was quick enough")
    assert all(codec.FrameReader().feed(frame)[0][0] == codec.SEND for frame in lost)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_has_nobody_who_waits(road: Road) -> None:
    """The threads that waited were the parent's: shut, it opens again for those of the child."""
    other = Answering(road)
    threads, found = sending(road, 4)
    other.take(4)
    child = os.fork()
    if not child:
        status = 1
        try:
            assert road.lane.shut(9.0) == (9, 4, [])
            assert [one[2] for one in road.flight.part()] == [5, 6, 7, 8]
            fresh = Road(codec)
            road.sock, road.peer, road.flight, road.reader = fresh.sock, fresh.peer, fresh.flight, fresh.reader
            road.reading, road.connection, road.link = fresh.reading, fresh.connection, fresh.link
            assert road.open(5)
            answering = road.answer(5)
            assert road.lane.send(BODY).result().entry == 5
            answering.join()
            assert not road.connection.lent
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    other.answer(*range(5, 9))
    joined(threads)
    assert ids(found) == [5, 6, 7, 8]
    at_rest(road, 9, 4)

"""Borrowed reading: who reads, what order holds, and that nothing stays unread when callers stop coming."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from mqclient.core.slot import Slot, Wake
from mqclient.errors import LinkError
from mqclient.io.borrow import glance, streams
from mqclient.io.connection import Connection
from mqclient.io.threads import ThreadsDriver
from tests.support.calls import LONG, ask, in_threads
from tests.support.echo import EchoEngine, EchoServer, frame


def until_parked(engine: EchoEngine) -> Connection:
    """Ask, one after the other, until the link stays switched off between the calls."""
    connection: Connection = engine.link.handle
    end = time.monotonic() + LONG
    while not connection.parked and time.monotonic() < end:
        ask(engine, b"x")
        connection = engine.link.handle
    assert connection.parked
    return connection


def test_what_cannot_be_looked_after_is_listened_to(engine: EchoEngine) -> None:
    ask(engine, b"the connection is there")
    connection = engine.link.handle
    connection.can_park = False
    for _ in range(100):
        ask(engine, b"x")
        assert not connection.parked


def test_a_caller_reads_for_itself(engine: EchoEngine) -> None:
    ask(engine, b"the connection is there")
    engine.threads.clear()
    for _ in range(50):
        ask(engine, b"x")
    assert threading.current_thread().name in engine.threads


def test_pushes_between_borrowed_reads_keep_their_order(engine: EchoEngine) -> None:
    # Sequence: a caller borrows, reads its reply and the first pushes, gives back; the reader thread reads the rest.
    expected: list[bytes] = []
    rounds, end = 0, time.monotonic() + LONG
    while rounds < 100 or (len(engine.threads) < 2 and time.monotonic() < end):  # a busy machine may leave all to one
        ask(engine, b"push 30")
        expected += [b"%d" % number for number in range(30)]
        rounds += 1
    while len(engine.pushed) < len(expected) and time.monotonic() < end:
        time.sleep(0.001)
    assert engine.pushed == expected
    assert len(engine.threads) == 2, "both the caller and the reader thread read"


def test_a_reply_that_takes_longer_than_reading_is_lent(engine: EchoEngine) -> None:
    assert ask(engine, b"late 0.3") == b"late 0.3"


def test_a_slot_completed_by_somebody_else_ends_borrowed_reading(engine: EchoEngine, driver: ThreadsDriver) -> None:
    # Sequence: A writes, borrows the link and polls; B completes A's slot (a retry elsewhere succeeded): no byte comes.
    ask(engine, b"x")
    slot: Slot[bytes] = Slot()

    def complete() -> None:
        time.sleep(0.03)
        with driver.enter():
            slot.complete(b"by another way")

    def wait() -> float:
        engine.submit(b"silent", LONG)
        start = time.monotonic()
        assert driver.wait(slot, driver.deadline(LONG)) == b"by another way"
        return time.monotonic() - start

    took, _ = in_threads(wait, complete)
    assert took < 0.09, "noticed before lent reading ends by itself"


def test_callers_in_a_row_leave_the_reader_thread_out_of_it(engine: EchoEngine) -> None:
    until_parked(engine)
    engine.threads.clear()
    for _ in range(20):
        ask(engine, b"x")
    assert threading.current_thread().name in engine.threads


def test_what_comes_after_the_last_caller_is_read_soon(server: EchoServer, engine: EchoEngine) -> None:
    arrived = threading.Event()
    engine.on_push = lambda body: arrived.set()
    connection = until_parked(engine)
    server.connections[0].sendall(frame(0, b"unasked"))
    assert arrived.wait(LONG)
    end = time.monotonic() + LONG
    while connection.parked and time.monotonic() < end:
        time.sleep(0.001)
    assert not connection.borrowed
    assert connection.streak == 0


def test_a_link_with_pushes_of_its_own_is_left_to_the_reader_thread(server: EchoServer, engine: EchoEngine) -> None:
    arrived = threading.Semaphore(0)
    engine.on_push = lambda body: arrived.release()
    for _ in range(30):
        ask(engine, b"x")
        time.sleep(0.002)  # given back and listened to
        server.connections[0].sendall(frame(0, b"unasked"))
        assert arrived.acquire(timeout=LONG)
        assert not engine.link.handle.parked


def test_an_end_while_nobody_listens_is_noticed(server: EchoServer, driver: ThreadsDriver) -> None:
    engine = EchoEngine(driver, server.address)
    until_parked(engine)
    server.close()
    end = time.monotonic() + LONG
    while not engine.lost and time.monotonic() < end:
        time.sleep(0.001)
    assert isinstance(engine.lost[0], LinkError)
    engine.close()


def test_a_crowd_does_not_borrow(engine: EchoEngine, driver: ThreadsDriver) -> None:
    ask(engine, b"x")
    ready = threading.Barrier(5)

    def long_wait() -> bytes:
        slot = engine.submit(b"late 0.3", LONG)
        ready.wait(LONG)
        return driver.wait(slot, driver.deadline(LONG))

    def look() -> set[str]:
        ready.wait(LONG)
        time.sleep(0.15)  # those that borrowed at first have given back
        engine.threads.clear()
        ask(engine, b"y")
        return set(engine.threads)

    *_, readers = in_threads(*[long_wait] * 4, look)
    assert readers == {"test-reader"}


def test_ctrl_c_while_giving_back_costs_the_connection_and_not_the_reader(
    driver: ThreadsDriver, server: EchoServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Sequence: the reply is there, the signal comes before the link is switched on again: nobody would listen.
    engine = EchoEngine(driver, server.address, reconnect=True)
    ask(engine, b"x")
    reader = driver._reader
    assert reader is not None
    watch = reader.watch

    def interrupted(connection: Connection) -> None:
        if threading.current_thread() is threading.main_thread() and not connection.borrowed:
            monkeypatch.undo()
            raise KeyboardInterrupt
        watch(connection)

    monkeypatch.setattr(reader, "watch", interrupted)

    def until_interrupted() -> None:
        while True:
            ask(engine, b"x")

    with pytest.raises(KeyboardInterrupt):
        until_interrupted()
    end = time.monotonic() + LONG
    while not (engine.lost and engine.link.state == "open") and time.monotonic() < end:
        time.sleep(0.001)
    assert ask(engine, b"after") == b"after"
    engine.close()


def test_who_waits_for_more_of_a_stream_reads_alone(
    server: EchoServer, engine: EchoEngine, driver: ThreadsDriver
) -> None:
    end = time.monotonic() + LONG
    here = threading.current_thread().name
    engine.threads.clear()
    while True:  # on a busy machine the moment may be over before we wait
        wake = Wake()
        until_parked(engine)
        engine.threads.clear()
        engine.on_push = lambda body, wake=wake: wake.complete(None)
        server.connections[0].sendall(frame(0, b"more"))
        driver.wait(wake, driver.deadline(LONG))
        if engine.threads == {here}:
            break
        assert time.monotonic() < end


def test_who_waits_where_nothing_comes_leaves_it_to_the_reader_thread(
    server: EchoServer, engine: EchoEngine, driver: ThreadsDriver
) -> None:
    ask(engine, b"x")
    time.sleep(0.05)
    engine.threads.clear()
    wake = Wake()
    engine.on_push = lambda body: wake.complete(None)
    server.connections[0].sendall(frame(0, b"at last"))
    driver.wait(wake, driver.deadline(LONG))
    assert engine.threads == {"test-reader"}


def test_a_connection_without_a_link_streams_nothing(engine: EchoEngine) -> None:
    ask(engine, b"x")
    connection = engine.link.handle
    connection.link = None
    assert not streams(connection)
    connection.link = engine.link


class Replies:
    """What a parked connection's native parts would do."""

    def __init__(self, connection: Connection, blocked: int) -> None:
        self.blocked = blocked
        self.waited: list[tuple[int, int]] = []
        connection.wait = self.wait

    def wait(self, fd: int, ms: int, bell: int) -> int:
        self.waited.append((ms, bell))
        return self.blocked


def test_who_is_alone_waits_and_reads_once(engine: EchoEngine) -> None:
    connection = until_parked(engine)
    reads: list[Connection] = []
    reader: Any = SimpleNamespace(read=reads.append, hand=reads.append)
    slot: Slot[None] = Slot()
    there, nothing = Replies(connection, 0), Replies(connection, -11)
    assert not glance(connection, reader, slot, None, 7)
    assert (nothing.waited, reads) == ([(5, 7)], [])
    connection.wait = there.wait
    before = connection.reader.last_borrow
    assert not glance(connection, reader, slot, time.monotonic() + 0.0005, 7)
    assert (there.waited, reads) == ([(1, 7)], [connection])
    assert connection.reader.last_borrow > before
    assert not glance(connection, reader, slot, time.monotonic() - 1, 7)
    assert len(there.waited) == 1, "no time is left"
    with in_another_thread(connection):
        assert not glance(connection, reader, slot, None, 7)
    assert len(there.waited) == 1, "somebody else reads"
    connection.parked = False
    assert not glance(connection, reader, slot, None, 7)
    assert len(there.waited) == 1, "the reader thread listens again"
    connection.broken = error = OSError()
    assert not glance(connection, reader, slot, None, 7)
    assert reads == [connection, connection], "it is handed over to be ended"
    assert connection.broken is error
    slot.complete(None)
    assert glance(connection, reader, slot, None, 7)
    connection.broken, connection.parked = None, True


@contextmanager
def in_another_thread(connection: Connection) -> Iterator[None]:
    """It holds `reading`."""
    taken, over = threading.Event(), threading.Event()

    def work() -> None:
        with connection.reading:
            taken.set()
            over.wait(LONG)

    thread = threading.Thread(target=work)
    thread.start()
    taken.wait(LONG)
    yield
    over.set()
    thread.join(LONG)

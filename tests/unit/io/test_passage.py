"""Who may send and read without an entry: the driver's word, and the end of a wait when the client is closed."""

from __future__ import annotations

import select
import threading
import time
from typing import Any, cast

import pytest

from mqclient.errors import DeadlineError
from mqclient.io.passage import Passage
from mqclient.io.threads import ThreadsDriver
from tests.support.calls import ask
from tests.support.echo import EchoEngine
from tests.unit.io.test_borrow import until_parked

LONG = 10.0


def passage(engine: EchoEngine) -> Passage | None:
    driver: Any = engine.driver
    with driver.enter():
        return cast("Passage | None", driver.passage(engine.link))


def opened(engine: EchoEngine) -> Passage:
    """As if this connection's reader were native."""
    engine.link.handle.writes_at_once = True
    found = passage(engine)
    engine.link.handle.writes_at_once = False
    assert found is not None
    return found


def test_only_where_callers_come_one_after_the_other(engine: EchoEngine) -> None:
    ask(engine, b"the connection is there")
    assert passage(engine) is None
    connection = until_parked(engine)
    assert passage(engine) is None, "its bytes go by the socket object"
    found = opened(engine)
    assert (found.connection, found.link, found.fd) == (connection, engine.link, connection.fd)
    assert found.reading is connection.reading
    assert not found.mine()
    with engine.driver.enter():
        assert found.mine(), "inside an entry"
    engine.link.handle = None
    assert passage(engine) is None, "lost"
    engine.link.handle = connection


def test_where_several_come_all_the_time_the_reader_thread_lets_go(engine: EchoEngine) -> None:
    ask(engine, b"the connection is there")
    driver: Any = engine.driver
    connection = engine.link.handle
    connection.writes_at_once = True
    assert not connection.parked
    with driver.enter():
        found = driver.passage(engine.link, True)
    assert found.connection is connection
    assert connection.parked
    assert connection.borrowed
    end = time.monotonic() + 10
    while connection.parked:  # for nobody came
        assert time.monotonic() < end
        time.sleep(0.001)
    assert not connection.borrowed
    driver._reader.lends = False
    with driver.enter():
        assert driver.passage(engine.link, True) is None
    driver._reader.lends = True
    connection.writes_at_once = False


def test_what_is_lent_stays_so_until_it_is_given_back(engine: EchoEngine) -> None:
    ask(engine, b"the connection is there")
    driver: Any = engine.driver
    connection = engine.link.handle
    connection.lent, connection.writes_at_once = -1, True
    with driver.enter():
        assert driver.passage(engine.link, True) is not None
    connection.writes_at_once = False
    time.sleep(0.05)
    assert connection.parked, "a row of callers reads"
    assert not connection.claim()
    assert connection.reading.acquire(False), "it is not held"
    connection.reading.release()
    slot = engine.submit(b"somebody else's", LONG)
    with pytest.raises(DeadlineError):
        driver.wait(slot, time.monotonic() + 0.05)
    connection.lent = 0
    assert driver.wait(slot, time.monotonic() + LONG) == b"somebody else's"


def test_closing_waits_for_who_reads(engine: EchoEngine) -> None:
    until_parked(engine)
    connection = engine.link.handle
    connection.lent = -1
    back = threading.Timer(0.1, lambda: setattr(connection, "lent", 0))
    back.start()
    began = time.monotonic()
    connection.take_over(LONG)
    assert 0.09 < time.monotonic() - began < LONG
    connection.lent = -1
    connection.take_over(0.01)
    connection.lent = 0
    connection.reading.release()
    connection.reading.release()
    assert connection.claim()
    connection.reading.release()


def test_closing_ends_the_waits(engine: EchoEngine) -> None:
    until_parked(engine)
    found = opened(engine)
    assert select.select([found.bell], [], [], 0)[0] == []
    cast("ThreadsDriver", engine.driver).close()
    assert select.select([found.bell], [], [], 0)[0] == [found.bell]


def test_what_was_read_by_the_way_reaches_the_engine(engine: EchoEngine) -> None:
    connection = until_parked(engine)
    found = opened(engine)
    with found.reading:
        found.dispatch(connection, [], -11)  # nothing was there after all
        assert connection.link is engine.link
        found.dispatch(connection, [], 0)
    assert connection.closing
    assert found.connection.link is None

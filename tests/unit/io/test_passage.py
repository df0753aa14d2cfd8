"""Who may send and read without an entry: the driver's word, and the end of a wait when the client is closed."""

from __future__ import annotations

import select
from typing import Any, cast

from mqclient.io.passage import Passage
from mqclient.io.threads import ThreadsDriver
from tests.support.calls import ask
from tests.support.echo import EchoEngine
from tests.unit.io.test_borrow import until_parked


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

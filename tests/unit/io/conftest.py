"""One echo server, one threads driver, one engine; afterwards no thread, request or byte is left."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqclient.io.threads import ThreadsDriver
from tests.support.echo import EchoEngine, EchoServer
from tests.support.leaks import assert_quiet, no_threads_left


@pytest.fixture
def server() -> Iterator[EchoServer]:
    with EchoServer() as it:
        yield it


@pytest.fixture
def driver() -> Iterator[ThreadsDriver]:
    with no_threads_left():
        it = ThreadsDriver("test")
        yield it
        it.close()


@pytest.fixture
def engine(server: EchoServer, driver: ThreadsDriver) -> Iterator[EchoEngine]:
    it = EchoEngine(driver, server.address)
    yield it
    it.close()
    assert_quiet([it.link])

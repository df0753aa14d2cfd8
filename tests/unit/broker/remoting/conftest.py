"""A broker and a connection of bare frames for each implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from tests.unit.broker.remoting.raw import Raw

Connect = Callable[[], Raw]


@pytest.fixture(name="broker", scope="module")
def broker_fixture(codec: Any, request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    """One broker a module, with the settings in its SETTINGS if it has some."""
    settings = getattr(request.module, "SETTINGS", {})
    with EmbeddedBroker(doors=["rocketmq"], impl=codec, **settings) as broker:
        yield broker


@pytest.fixture(name="connect")
def connect_fixture(codec: Any, broker: EmbeddedBroker) -> Iterator[Connect]:
    """As many connections to broker-a as a test wants."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Raw(codec.remoting, broker.addresses()["broker-a"]))


@pytest.fixture(name="raw")
def raw_fixture(connect: Connect) -> Raw:
    return connect()


@pytest.fixture(name="names")
def names_fixture(codec: Any, broker: EmbeddedBroker) -> Iterator[Raw]:
    """A connection to the name server."""
    with Raw(codec.remoting, broker.name_server) as raw:
        yield raw

"""One embedded broker for the sources' tests, and clients to fill it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.spark.clients import CLIENTS


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(enablePropertyFilter=True) as embedded:
        yield embedded
        CLIENTS.close()


@pytest.fixture(scope="module")
def rocketmq_client(broker: EmbeddedBroker) -> Iterator[rocketmq.Client]:
    with rocketmq.Client(broker.name_server) as client:
        yield client


@pytest.fixture(scope="module")
def pulsar_client(broker: EmbeddedBroker) -> Iterator[pulsar.Client]:
    with pulsar.Client(broker.pulsar_url) as client:
        yield client


_numbers = count()


@pytest.fixture
def topic() -> str:
    """A name that nobody used before."""
    return f"source-{next(_numbers)}"

"""One embedded broker for the sources' tests, and clients to fill it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.spark.clients import CLIENTS
from tests.support.clients import pulsar_clients, rocketmq_clients, topics


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(enablePropertyFilter=True) as embedded:
        yield embedded
        CLIENTS.close()


rocketmq_client = rocketmq_clients("module")
pulsar_client = pulsar_clients("module")
topic = topics("source")

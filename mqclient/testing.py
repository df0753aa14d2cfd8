"""Owns the pytest plugin: `mq_broker`, an embedded broker for a project's own tests.

def test_my_service(mq_broker):
    with rocketmq.Client(mq_broker.name_server) as client: ...
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mqclient.broker import EmbeddedBroker


@pytest.fixture(scope="session")
def mq_broker() -> Iterator[EmbeddedBroker]:
    """RocketMQ and Pulsar in this process, for the whole session; topics are made by the first message."""
    from mqclient.broker import EmbeddedBroker  # not before it is asked for: pytest loads this plugin for every project

    with EmbeddedBroker() as broker:
        yield broker

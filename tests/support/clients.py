"""Fixtures of the clients of a fixture `broker`, and of topics that nobody used before, for conftest.py to name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Literal

import pytest

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker


def rocketmq_clients(scope: Literal["module", "session"], name: str = "rocketmq_client") -> Any:
    @pytest.fixture(scope=scope, name=name)
    def fixture(broker: EmbeddedBroker) -> Iterator[rocketmq.Client]:
        with rocketmq.Client(broker.name_server) as client:
            yield client

    return fixture


def pulsar_clients(scope: Literal["module", "session"], name: str = "pulsar_client") -> Any:
    @pytest.fixture(scope=scope, name=name)
    def fixture(broker: EmbeddedBroker) -> Iterator[pulsar.Client]:
        with pulsar.Client(broker.pulsar_url) as client:
            yield client

    return fixture


def topics(prefix: str) -> Callable[..., Any]:
    numbers = count()

    @pytest.fixture(name="topic")
    def fixture() -> str:
        return f"{prefix}-{next(numbers)}"

    return fixture

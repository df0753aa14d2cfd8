"""The worlds in which every scenario runs: each protocol, on the embedded broker and on a real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqclient.broker import EmbeddedBroker
from tests.conformance.worlds import Pulsar, RocketMQ, World
from tests.real.fixtures import ON_PULSAR, ON_ROCKETMQ


@pytest.fixture(
    scope="module",
    params=[
        "rocketmq",
        "pulsar",
        pytest.param("real rocketmq", marks=ON_ROCKETMQ),
        pytest.param("real pulsar", marks=ON_PULSAR),
    ],
)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """One protocol and its broker."""
    name = str(request.param)
    if name.startswith("real"):
        kind = name.split()[1]
        if kind not in str(request.config.getoption("--real", "")).split(","):
            pytest.skip("needs a real broker: run `make real`")
        real = request.getfixturevalue(f"real_{kind}")
        yield RocketMQ(real.name_server) if kind == "rocketmq" else Pulsar(real.url)
    else:
        with EmbeddedBroker(doors=[name]) as broker:
            yield RocketMQ(broker.name_server, broker) if name == "rocketmq" else Pulsar(broker.pulsar_url, broker)

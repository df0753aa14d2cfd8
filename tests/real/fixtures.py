"""Owns the option `--real` and the fixtures of the real brokers; registered by tests/conftest.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.jars import Unavailable
from tests.real.pulsar import RealPulsar
from tests.real.rocketmq import RealRocketMQ

KINDS = ("rocketmq", "pulsar")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--real", default="", help="which real brokers to boot, from rocketmq,pulsar; tests marked real use them"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--real"):
        for item in items:
            if item.get_closest_marker("real"):
                item.add_marker(pytest.mark.skip(reason="needs a real broker: run `make real`"))


def _wanted(request: pytest.FixtureRequest, kind: str) -> None:
    asked = [name for name in str(request.config.getoption("--real")).split(",") if name]
    unknown = [name for name in asked if name not in KINDS]
    if unknown:
        raise pytest.UsageError(f"--real knows {', '.join(KINDS)}, not {', '.join(unknown)}")
    if kind not in asked:
        pytest.skip(f"--real={kind} was not asked for")


@pytest.fixture(scope="session")
def real_rocketmq(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRocketMQ]:
    """RocketMQ 5.5.0: one name server, two brokers."""
    _wanted(request, "rocketmq")
    try:
        cluster = RealRocketMQ(tmp_path_factory.mktemp("rocketmq"))
    except Unavailable as error:
        pytest.skip(str(error))
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def real_pulsar(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPulsar]:
    """Pulsar 4.2.4 standalone."""
    _wanted(request, "pulsar")
    try:
        broker = RealPulsar(tmp_path_factory.mktemp("pulsar"))
    except Unavailable as error:
        pytest.skip(str(error))
    with broker:
        yield broker

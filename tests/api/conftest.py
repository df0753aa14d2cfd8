"""What the tests of the faces share: coroutine tests run in a loop of their own; clients of each implementation."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from itertools import count
from typing import Any
from uuid import uuid4

import pytest

from mqclient import _impl
from mqclient.broker import EmbeddedBroker
from tests.real.fixtures import ON_PULSAR, ON_ROCKETMQ
from tests.support.pulsar_cluster import PulsarCluster


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """The tests under async_/ are coroutines; the ones generated from them are not."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture(scope="session", params=["native", "pure"])
def impl(request: pytest.FixtureRequest) -> str:
    """The client's implementation, by name; the broker runs pure, so that a shared misreading shows up."""
    name: str = request.param
    try:
        _impl.select(name)
    except ImportError as error:
        pytest.skip(f"the {name} modules are not all built: {error}")
    return name


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=ON_PULSAR)])
def pulsar(request: pytest.FixtureRequest) -> Iterator[PulsarCluster]:
    """The same cases on both: a difference is a bug of the embedded broker, or stands in its SKIPPED.md."""
    if request.param == "real":
        if "pulsar" not in str(request.config.getoption("--real", "")).split(","):
            pytest.skip("needs a real broker: run `make real`")
        real = request.getfixturevalue("real_pulsar")
        yield PulsarCluster(real.url, real=real)
    else:
        with EmbeddedBroker(doors=["pulsar"], impl="pure") as embedded:
            yield PulsarCluster(embedded.pulsar_url, embedded=embedded)


class RocketMQCluster:
    """Where the brokers are that a test runs on; `embedded` is None if they are real."""

    def __init__(self, name_server: str, embedded: EmbeddedBroker | None = None) -> None:
        self.name_server = name_server
        self.embedded = embedded


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=ON_ROCKETMQ)])
def rocketmq(request: pytest.FixtureRequest) -> Iterator[RocketMQCluster]:
    """Two brokers; the same cases on both."""
    if request.param == "real":
        if "rocketmq" not in str(request.config.getoption("--real", "")).split(","):
            pytest.skip("needs a real broker: run `make real`")
        yield RocketMQCluster(request.getfixturevalue("real_rocketmq").name_server)
    else:
        settings: dict[str, Any] = {"enablePropertyFilter": True, "recallMessageEnable": True}
        with EmbeddedBroker(doors=["rocketmq"], brokers=2, impl="pure", **settings) as embedded:
            yield RocketMQCluster(embedded.name_server, embedded)


_topics = count()


@pytest.fixture
def topic() -> str:
    """A name that nobody used before."""
    return f"topic-{uuid4().hex[:8]}-{next(_topics)}"

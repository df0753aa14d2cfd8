"""One Spark session and one embedded broker for all tests of this directory; under xdist all of them in one worker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from tests.spark.support import environment
from tests.support.clients import pulsar_clients, rocketmq_clients, topics

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups, also where only this directory is asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
            item.add_marker(pytest.mark.timeout(400))  # a JVM on a busy machine takes its time


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pyspark_sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    from mqclient.spark import register

    os.environ |= environment()
    # Tasks are tried again where there is time for it.
    master = "local[2]" if request.config.getoption("--scale") == "test" else "local[2,4]"
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "700m",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": tmp_path_factory.mktemp("events").as_uri(),
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = pyspark_sql.SparkSession.builder.master(master).appName("mqclient")
    session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as embedded:
        yield embedded


rocketmq_client = rocketmq_clients("session")
pulsar_client = pulsar_clients("session")
topic = topics("spark")

"""The genuine Java client cannot tell the embedded broker from a real one: every way to send, every way to consume."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mqclient.broker import EmbeddedBroker
from tests.real import jars
from tests.real.rocketmq import VERSION

pytestmark = pytest.mark.real
PROGRAM = Path(__file__).parent / "java" / "GenuineClient.java"


@pytest.fixture(name="classpath", scope="module")
def classpath_fixture() -> str:
    if shutil.which("java") is None:
        pytest.skip("the Java client needs a JDK, and there is no java on the PATH")
    try:
        return f"{jars.rocketmq(VERSION)}/*"
    except jars.Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(name="broker", scope="module", params=[1, 2])
def broker_fixture(request: pytest.FixtureRequest) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["rocketmq"], brokers=request.param, impl="pure") as broker:
        yield broker


def test_java_sends_and_consumes_in_every_way(broker: EmbeddedBroker, classpath: str, tmp_path: Path) -> None:
    command = ["java", f"-Duser.home={tmp_path}", "-XX:TieredStopAtLevel=1", "-cp", classpath]
    run = subprocess.run(
        [*command, str(PROGRAM), broker.name_server], capture_output=True, text=True, timeout=100, check=False
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("counts ")]
    assert lines == ["counts sent=18 push=18 retried=true orderly=18 broadcast=18 lite=18"], run.stdout[-2000:]

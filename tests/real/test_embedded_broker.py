"""The genuine Java client cannot tell the embedded broker from a real one: every way to send, every way to consume."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from tests.real import jars
from tests.real.rocketmq import VERSION

pytestmark = pytest.mark.real
PROGRAM = Path(__file__).parent / "java" / "GenuineClient.java"
EXTRAS = Path(__file__).parent / "java" / "GenuineExtras.java"


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
        [*command, str(PROGRAM), broker.name_server], capture_output=True, text=True, timeout=300, check=False
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("counts ")]
    assert lines == ["counts sent=18 push=18 retried=true orderly=18 broadcast=18 lite=18"], run.stdout[-2000:]


def test_java_does_the_rarer_things(classpath: str, tmp_path: Path) -> None:
    """Transactions with check-back, SQL92 filters, request-reply, POP, queries, recall, direct consumption, admin."""
    settings: dict[str, Any] = {"enablePropertyFilter": True, "recallMessageEnable": True}
    settings |= {"transactionCheckInterval": 1000, "transactionTimeOut": 500}
    command = ["java", f"-Duser.home={tmp_path}", "-XX:TieredStopAtLevel=1", "-cp", classpath, str(EXTRAS)]
    with EmbeddedBroker(doors=["rocketmq"], impl="pure", **settings) as broker:
        addresses = [broker.name_server, broker.addresses()["broker-a"]]
        run = subprocess.run([*command, *addresses], capture_output=True, text=True, timeout=400, check=False)
    lines = [line.removeprefix("extra ") for line in run.stdout.splitlines() if line.startswith("extra ")]
    assert lines == [
        "transactions=[checked, commit] checks=2",
        "filter=[m2, m4]",
        "reply=re: question",
        "pop=[p0, p1, p2, p3, p4]",
        "query=found found 2",
        "recall=true [later]",
        "admin=2 true true CR_SUCCESS [true, true, true, true, true, true, true]",
    ], run.stdout[-2000:] + run.stderr[-2000:]

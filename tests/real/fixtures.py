"""Owns the option `--real` and the fixtures of the real brokers; registered by tests/conftest.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from tests.real.jars import Unavailable
from tests.real.pulsar import RealPulsar
from tests.real.rocketmq import RealRocketMQ

KINDS = ("rocketmq", "pulsar")
Boot = Callable[[str], RealRocketMQ]
BOOTS = pytest.mark.timeout(420)
"""The first test of all has its brokers booted within its time: two took more than two minutes at a load of 30."""
ON_ROCKETMQ = [pytest.mark.real, BOOTS, pytest.mark.xdist_group("rocketmq")]
ON_PULSAR = [pytest.mark.real, BOOTS, pytest.mark.xdist_group("pulsar")]
"""Marks of what needs the session's real brokers: of all workers, one boots them."""
REAL_GENERATIONS = [pytest.param(name, marks=ON_ROCKETMQ) for name in ("4.9.7", "5.5.0", "patched")]
"""The brokers of the stories, today's, and today's with the operator's two changes (story 3)."""


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


def _boot_once(kind: str, folder: Path) -> None:
    """Two cores do not carry each real broker thrice: a second worker that wants it fails, and is told the cure."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        return
    with (folder.parent / f"booted-{kind}").open("a+") as note:  # the workers' folders are beside each other
        note.seek(0)
        other = note.read()
        assert other in ("", worker), f"{other} has booted {kind} already: this test lacks the group ON_{kind.upper()}"
        if not other:
            note.write(worker)


@pytest.fixture(scope="session")
def real_rocketmq(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealRocketMQ]:
    """RocketMQ 5.5.0: one name server, two brokers."""
    _wanted(request, "rocketmq")
    _boot_once("rocketmq", tmp_path_factory.getbasetemp())
    try:
        cluster = RealRocketMQ(tmp_path_factory.mktemp("rocketmq"))
    except Unavailable as error:
        pytest.skip(str(error))
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def booted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Boot]:
    """Boots a generation once, whatever the order of the tests; 5.5.0 are the two brokers that are there anyway."""
    there: dict[str, RealRocketMQ] = {}

    def boot(name: str) -> RealRocketMQ:
        if name == "5.5.0":
            return request.getfixturevalue("real_rocketmq")  # type: ignore[no-any-return]
        if name not in there:
            options: dict[str, Any] = {"patched": True} if name == "patched" else {"version": name}
            there[name] = RealRocketMQ(tmp_path_factory.mktemp(name), brokers=1, **options).__enter__()
        return there[name]

    yield boot
    for cluster in there.values():
        cluster.stop()


@pytest.fixture(scope="session", params=["embedded", *REAL_GENERATIONS])
def generation(request: pytest.FixtureRequest, booted: Boot) -> Iterator[EmbeddedBroker | RealRocketMQ]:
    """RocketMQ embedded, and real of each generation."""
    if request.param == "embedded":
        with EmbeddedBroker(doors=["rocketmq"], impl="pure", mqcloud_patch=True) as embedded:
            yield embedded
        return
    _wanted(request, "rocketmq")
    try:
        yield booted(request.param)
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def real_pulsar(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealPulsar]:
    """Pulsar 4.2.4 standalone."""
    _wanted(request, "pulsar")
    _boot_once("pulsar", tmp_path_factory.getbasetemp())
    try:
        broker = RealPulsar(tmp_path_factory.mktemp("pulsar"))
    except Unavailable as error:
        pytest.skip(str(error))
    with broker:
        yield broker

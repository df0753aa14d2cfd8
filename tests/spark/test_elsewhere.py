"""The oldest PySpark, Spark Connect, and a standalone cluster with attempts side by side: drivers of their own."""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from tests.spark.mortals import Embedded, Real, standalone
from tests.spark.support import deduplicating, environment
from tests.support.tree import ROOT

VENVS = ROOT / "build" / "venvs"
OLDEST = "4.0.5"
"""The newest one runs everywhere else in this directory."""
BETWEEN = ("4.1.4", "4.2.1")


def python_with(version: str) -> str:
    """The Python of an environment that has this PySpark, made once and kept in build/."""
    folder = VENVS / f"pyspark-{version}"
    python, ready = folder / "bin" / "python", folder / "ready"
    VENVS.mkdir(parents=True, exist_ok=True)
    with (VENVS / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=300)
            needed = [f"pyspark=={version}", "pyarrow>=18", "pandas<3", "protobuf"]
            done = subprocess.run(
                [python, "-m", "pip", "install", "-q", *needed],
                capture_output=True,
                text=True,
                check=False,
                timeout=1500,
            )
            if done.returncode:
                pytest.skip(f"PySpark {version} cannot be installed: {done.stderr[-500:]}")
            ready.touch()
    return str(python)


def tried(
    python: str, what: str, broker: EmbeddedBroker | Embedded | Real, folder: Path, **more: str
) -> dict[str, Any]:
    given = {"name_server": broker.name_server, "url": broker.pulsar_url, "folder": str(folder), **more}
    command = [python, "-m", "tests.spark.script", what, json.dumps(given)]
    own = environment(python)
    done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    assert "python_streaming_source_runner" not in done.stderr, done.stderr[-6000:]  # a traceback of ours
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def once(broker: EmbeddedBroker) -> EmbeddedBroker:
    """With a namespace that deduplicates."""
    deduplicating(broker.pulsar_rest, "public/once")
    return broker


@pytest.mark.ci
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("version", [OLDEST, *(pytest.param(one, marks=pytest.mark.soak) for one in BETWEEN)])
def test_other_versions(broker: EmbeddedBroker, tmp_path: Path, version: str) -> None:
    """What needs a newer one is refused with the way out, and works from there on."""
    number = tuple(map(int, version.split(".")))
    found = tried(python_with(version), "version", broker, tmp_path)
    refused = {
        "stream write": (number < (4, 1), r"needs PySpark 4\.1.*foreachBatch\(mqclient\.spark\.rocketmq_writer"),
        "filters": (number < (4, 1), r"filterPushdown needs PySpark 4\.1"),
        "limit": (number < (4, 2), r"maxOffsetsPerTrigger need PySpark 4\.2.*The way out"),
    }
    for what, (expected, why) in refused.items():
        if expected:
            assert re.search(why, str(found.pop(what)), re.DOTALL)
    assert found.pop("version") == version
    assert found == dict.fromkeys(found, True)
    assert len(found) == 8 + sum(not expected for expected, _ in refused.values())


@pytest.mark.ci
@pytest.mark.timeout(3000)
def test_spark_connect(once: EmbeddedBroker, tmp_path: Path) -> None:
    """With what the extra "connect" brings."""
    found = tried(sys.executable, "connect", once, tmp_path)
    assert found == dict.fromkeys(found, True)
    assert len(found) == 6


@pytest.mark.ci
@pytest.mark.timeout(3000)
def test_attempts_side_by_side_on_a_standalone_cluster(once: EmbeddedBroker, tmp_path: Path) -> None:
    with standalone(tmp_path) as (master, _):
        found = tried(sys.executable, "speculation", once, tmp_path, master=master)
    assert (found["once attempts"], found["once all"], found["once twice"]) == (2, True, 0)
    # The same without the guarantee: the second attempt sends again what the first had sent.
    assert (found["least attempts"], found["least all"]) == (2, True)
    assert found["least twice"] > 0

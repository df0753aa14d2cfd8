"""Servers that fork their workers, the real packages: gunicorn with a preloaded application, and Celery's prefork pool.

What a module made before the fork is used in each worker under an identity of its own, and all of them end cleanly.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from mqclient import rocketmq
from tests.api.conftest import RocketMQCluster
from tests.support.seen import unique
from tests.support.tree import ROOT

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]
WITHIN = 120.0
MODULE = """
import json, os
from mqclient import rocketmq
from mqclient.rocketmq import Message
TOPIC = os.environ["TOPIC"]
client = rocketmq.Client(os.environ["NAMES"])
producer = client.producer("served")
producer.send(Message(TOPIC, json.dumps(["parent", os.getpid(), client.client_id]).encode()))
def tell(what):
    producer.send(Message(TOPIC, json.dumps([what, os.getpid(), client.client_id]).encode()))
"""
WEB = """
from shared import tell
def app(environ, start_response):
    tell(environ["PATH_INFO"])
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"told"]
"""
TASKS = """
import os, time
from celery import Celery
app = Celery("tasks", broker="filesystem://")
folders = {name: os.environ["QUEUE"] for name in ("data_folder_in", "data_folder_out")}
app.conf.broker_transport_options = {**folders, "control_folder": os.environ["QUEUE"]}
if not os.environ.get("ASKS"):
    from shared import tell
@app.task(name="report")
def report(number):
    time.sleep(0.05)
    tell(number)
"""
ASK = "import os; os.environ['ASKS'] = 'yes'; import tasks; [tasks.report.delay(number) for number in range(20)]"


@pytest.fixture(name="packages", scope="module")
def packages_fixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both, out of the registry, beside what is installed."""
    folder = tmp_path_factory.mktemp("packages")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target", str(folder)]
    done = subprocess.run([*pip, "gunicorn", "celery"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


class Server:
    """A program whose modules are in a folder of its own."""

    def __init__(self, cluster: RocketMQCluster, packages: Path, folder: Path) -> None:
        self.topic = unique("served")
        self._cluster = cluster
        self._folder = folder
        (folder / "queue").mkdir()
        path = os.pathsep.join(map(str, (folder, packages, ROOT)))
        here = {"PYTHONPATH": path, "TOPIC": self.topic, "NAMES": cluster.name_server, "QUEUE": str(folder / "queue")}
        self._environment = {**os.environ, **here, "PYTHONWARNINGS": "ignore::DeprecationWarning"}
        for name, text in (("shared", MODULE), ("web", WEB), ("tasks", TASKS)):
            (folder / f"{name}.py").write_text(text)
        with rocketmq.Client(cluster.name_server) as client, client.admin() as admin:
            admin.create_topic(self.topic, 1)

    def run(self, *arguments: str) -> None:
        subprocess.run(
            [sys.executable, *arguments], cwd=self._folder, env=self._environment, timeout=WITHIN, check=True
        )

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Ended by SIGTERM, as a service manager does."""
        with (self._folder / "log").open("wb") as log:
            line = [sys.executable, *arguments]
            process = subprocess.Popen(line, cwd=self._folder, env=self._environment, stdout=log, stderr=log)
        try:
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(WITHIN) == 0, self.log()
        finally:
            process.kill()
            process.wait()

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def until_logged(self, pattern: str) -> str:
        end = time.monotonic() + WITHIN
        while (match := re.search(pattern, self.log())) is None:
            assert time.monotonic() < end, self.log()
            time.sleep(0.05)
        return match[0]

    def told(self, count: int) -> list[list[Any]]:
        """What so many messages say."""
        found: list[list[Any]] = []
        with (
            rocketmq.Client(self._cluster.name_server) as client,
            client.pull_consumer(unique("g"), self.topic, start="first") as consumer,
        ):
            while len(found) < count:
                found.append(json.loads(consumer.receive(timeout=WITHIN).body))
        return found


@pytest.fixture(name="server")
def server_fixture(rocketmq: RocketMQCluster, packages: Path, tmp_path: Path) -> Server:
    return Server(rocketmq, packages, tmp_path)


def check(told: list[list[Any]], whats: list[Any]) -> None:
    """Everything arrived once, out of at least two workers, each with an id of its own, and none with the parent's."""
    assert sorted(str(what) for what, _, _ in told) == sorted(["parent", *map(str, whats)])
    ids = {process: client_id for _, process, client_id in told}
    assert len(ids) >= 3
    assert len(set(ids.values())) == len(ids)
    assert all(ids[process] == client_id for _, process, client_id in told)


@pytest.mark.parametrize("threads", [1, 4])
def test_gunicorn_with_a_preloaded_application(server: Server, threads: int) -> None:
    arguments = ["--preload", "--workers", "2", "--threads", str(threads), "--bind", "127.0.0.1:0", "web:app"]
    asked: list[str] = []
    with server.running("-m", "gunicorn", *arguments):
        address = server.until_logged(r"http://127\.0\.0\.1:\d+")
        workers: set[int] = set()
        end = time.monotonic() + WITHIN
        while len(workers) < 2 or len(asked) < 20:  # which worker answers is the kernel's choice
            assert time.monotonic() < end, server.log()
            asked.append(f"/{len(asked)}")
            with urlopen(address + asked[-1], timeout=WITHIN) as answer:
                assert answer.read() == b"told"
            if len(asked) % 20 == 0:
                workers = {process for what, process, _ in server.told(1 + len(asked)) if what != "parent"}
    check(server.told(1 + len(asked)), asked)
    assert "Traceback" not in server.log()


def test_celery_with_its_pool_of_forks(server: Server) -> None:
    quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "--prefetch-multiplier", "1"]
    with server.running("-m", "celery", "-A", "tasks", "worker", "--pool", "prefork", "--concurrency", "2", *quiet):
        server.run("-c", ASK)
        check(server.told(21), list(range(20)))
    assert "Traceback" not in server.log()

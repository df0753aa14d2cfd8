"""RocketMQ into Pulsar while everything dies at seeded moments: no gap, nothing twice but a batch that came again.

The driver, its executors and Python workers, and the broker are killed by SIGKILL and started again, on
`local-cluster[2,1,1024]`: two executors, JVMs of their own. The source's offsets are the ledger: each of them comes out
at least once, copies of one carry the same `sparkRow` (so they are of one batch, sent again), and the sink that writes
once has no copies at all.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mqclient import pulsar, rocketmq
from mqclient.errors import MQError
from tests.spark.support import deduplicating
from tests.support.tree import ROOT

EVENTS = {"test": 0, "ci": 5, "soak": 100}
ONCE = "persistent://public/once/out"
LEAST = "persistent://public/once/out-least"
PATIENCE = 1000
"""Looks without a single new row, after which rows are taken for lost: not seconds, for on a busy machine a new driver
alone takes minutes."""
BURST = 1000
"""Rows for each event: more than two batches of either query, and no backlog that a slow machine cannot work off."""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


class Broker:
    """An embedded broker of its own process, on its folder and its addresses whatever happens to it."""

    def __init__(self, folder: Path) -> None:
        self._command = [sys.executable, "-m", "mqclient.broker", "--data", str(folder)]
        self.addresses: dict[str, str] = {}
        self._process = self._start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def again(self) -> None:
        self.kill()
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=ROOT)
        assert process.stdout is not None
        found: dict[str, str] = {}
        while not {"name_server", "pulsar_url", "pulsar_rest"} <= found.keys():
            line = process.stdout.readline()
            assert line, "the broker did not start"
            name, _, address = line.strip().partition("=")
            found[name] = address
        assert self.addresses in ({}, found)
        self.addresses = found
        return process


class Driver:
    """The pipeline, its JVM and its executors: one process group, started anew after each end."""

    def __init__(self, given: dict[str, Any], log: Path) -> None:
        self._given = given
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        with self._log.open("a") as log:
            command = [sys.executable, "-m", "tests.spark.pipeline", json.dumps(self._given)]
            self._process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=ENVIRONMENT,
                cwd=ROOT,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "running\n", self._log.read_text()[-4000:]

    def kill(self) -> None:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        for pid in [*self.descendants(), process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()

    def again_if_it_ended(self) -> None:
        """A query that lost its broker for too long ends, as Spark's queries do; whoever runs it starts it again."""
        assert self._process is not None
        if self._process.poll() is not None:
            self.kill()
            self.start()

    def executors(self) -> list[int]:
        return [pid for pid in self.descendants() if b"CoarseGrainedExecutorBackend" in command_line(pid)]

    def workers(self) -> list[int]:
        return [pid for pid in self.descendants() if b"pyspark.daemon" in command_line(pid)]

    def descendants(self) -> list[int]:
        assert self._process is not None
        children: dict[int, list[int]] = defaultdict(list)
        for entry in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                status = (entry / "stat").read_text()
                children[int(status.rpartition(")")[2].split()[1])].append(int(entry.name))
        found, queue = [], [self._process.pid]
        while queue:
            below = children[queue.pop()]
            found += below
            queue += below
        return found


def command_line(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


class Generator(threading.Thread):
    """Sends as much as is asked for, whatever happens to the broker; some messages are there twice, at places of their
    own."""

    def __init__(self, name_server: str) -> None:
        super().__init__(daemon=True)
        self._name_server = name_server
        self._asked = 0
        self.stop = threading.Event()
        self.sent = 0

    def more(self) -> None:
        self._asked += BURST

    def run(self) -> None:
        with rocketmq.Client(self._name_server) as client, client.producer("generator") as producer:
            while not self.stop.wait(0.05):
                if self.sent >= self._asked:
                    continue
                with suppress(MQError):
                    results = producer.send_many([rocketmq.Message("source", b"x" * 50) for _ in range(20)])
                    self.sent += sum(result.ok for result in results)


class Arrivals:
    """How many rows a topic has, read on from where it was read last; the broker may be away meanwhile."""

    def __init__(self, url: str, topic: str) -> None:
        self._url = url
        self._topic = topic
        self._last: Any = "earliest"
        self._seen: set[str] = set()
        self._in_vain = 0

    def count(self) -> int:
        """Different rows so far; after PATIENCE without a new one it fails."""
        before = len(self._seen)
        with (
            suppress(MQError),
            pulsar.Client(self._url) as client,
            client.reader(self._topic, start=self._last) as reader,
        ):
            while reader.has_message_available():
                for message in reader.receive_many(10_000, timeout=30):
                    self._seen.add(message.body.decode())
                    self._last = message.message_id
        self._in_vain = 0 if len(self._seen) > before else self._in_vain + 1
        assert self._in_vain < PATIENCE, f"{self._topic} has {before} rows, and no new one comes"
        return len(self._seen)


@contextmanager
def running(broker: Broker, driver: Driver) -> Iterator[Generator]:
    generator = Generator(broker.addresses["name_server"])
    try:
        driver.start()
        generator.start()
        yield generator
    finally:
        generator.stop.set()
        driver.kill()
        broker.kill()


def outcome(url: str, topic: str) -> dict[str, list[str]]:
    """By what a message says the rows that said it."""
    found: dict[str, list[str]] = defaultdict(list)
    with pulsar.Client(url) as client, client.reader(topic, start="earliest") as reader:
        while reader.has_message_available():
            for message in reader.receive_many(10_000, timeout=30):
                found[message.body.decode()].append(message.properties["sparkRow"])
    return found


def ledger(name_server: str) -> set[str]:
    """Every place of the source."""
    with rocketmq.Client(name_server) as client, client.admin() as admin:
        ends = admin.offsets("source")
    return {f"{queue.queue_id}:{offset}" for queue, has in ends.items() for offset in range(has["max"] or 0)}


@pytest.mark.ci
@pytest.mark.timeout(0)
def test_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path, scale: str) -> None:
    random = Random(7)
    broker = Broker(tmp_path / "broker")
    addresses = broker.addresses
    deduplicating(addresses["pulsar_rest"], "public/once")
    with rocketmq.Client(addresses["name_server"]) as client, client.admin() as admin:
        admin.create_topic("source", 2)
    given = {
        "master": "local-cluster[2,1,1024]",
        "name_server": addresses["name_server"],
        "url": addresses["pulsar_url"],
        "topic": "source",
        "least": LEAST,
        "once": ONCE,
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    driver = Driver(given, tmp_path / "driver.log")
    events = Counter[str]()
    with running(broker, driver) as generator:
        arrivals = {topic: Arrivals(addresses["pulsar_url"], topic) for topic in (ONCE, LEAST)}
        for number in range(EVENTS[scale]):
            before = arrivals[ONCE].count()
            generator.more()
            # Rows come out again, whatever was killed before; then at any moment of a batch.
            until(lambda before=before: arrivals[ONCE].count() > before, driver)  # type: ignore[misc]
            time.sleep(random.random())
            kind = (
                ("driver", "executor", "broker", "worker")[number % 4]
                if number < 4
                else random.choice(("driver", "executor", "broker", "worker"))
            )
            events[kind] += 1
            strike(kind, driver, broker, random)
        generator.stop.set()
        generator.join()
        places = ledger(addresses["name_server"])
        assert len(places) >= generator.sent > 0
        for topic in (ONCE, LEAST):
            until(lambda topic=topic: arrivals[topic].count() >= len(places), driver)  # type: ignore[misc]
        found = {topic: outcome(addresses["pulsar_url"], topic) for topic in (ONCE, LEAST)}
    print(
        f"{dict(events)}: {len(places)} rows, copies of {sum(len(r) > 1 for r in found[LEAST].values())} at least once"
    )
    assert found[ONCE].keys() == found[LEAST].keys() == places
    assert {place: rows for place, rows in found[ONCE].items() if len(rows) > 1} == {}
    assert {place: rows for place, rows in found[LEAST].items() if len(set(rows)) > 1} == {}


def strike(kind: str, driver: Driver, broker: Broker, random: Random) -> None:
    if kind == "driver":
        driver.kill()
        driver.start()
    elif kind == "broker":
        broker.again()
    else:
        there = driver.executors() if kind == "executor" else driver.workers()
        assert there, f"no {kind} to kill"
        with suppress(ProcessLookupError):
            os.kill(random.choice(there), signal.SIGKILL)


def until(true: Callable[[], bool], driver: Driver) -> None:
    """Waits; a driver that ended is started again."""
    while not true():
        driver.again_if_it_ended()
        time.sleep(0.3)

"""RocketMQ into Pulsar while everything dies at seeded moments: no gap, nothing twice but a batch that came again.

The driver, its executors and Python workers, and the broker are killed by SIGKILL and started again, on
`local-cluster[2,1,1024]` and on a standalone cluster: two executors, JVMs of their own. The source's offsets are the
ledger: each of them comes out at least once, copies of one carry the same `sparkRow` (so they are of one batch, sent
again), and the sink that writes once has no copies at all.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mqclient import pulsar, rocketmq
from mqclient.errors import MQError
from tests.real.jars import Unavailable
from tests.spark.mortals import LOCAL_CLUSTER, Driver, Embedded, Real, standalone
from tests.spark.test_elsewhere import tried

EVENTS = {"test": 0, "ci": 5, "soak": 10}
"""Of one run."""
ONCE = "persistent://public/once/out"
LEAST = "persistent://public/once/out-least"
PATIENCE = 1000
"""Looks without a single new row, after which rows are taken for lost: not seconds, for on a busy machine a new driver
alone takes minutes."""
BURST = 1000
"""Rows for each event: more than two batches of either query, and no backlog that a slow machine cannot work off."""


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
def running(broker: Any, driver: Driver) -> Iterator[Generator]:
    generator = Generator(broker.name_server)
    try:
        driver.start()
        generator.start()
        yield generator
    finally:
        generator.stop.set()
        driver.kill()


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
        end = time.monotonic() + 120
        while True:
            try:
                ends = admin.offsets("source")
                break
            except MQError:  # a real broker that was just killed is back, but its name server has not heard of it yet
                if time.monotonic() > end:
                    raise
                time.sleep(0.3)
    return {f"{queue.queue_id}:{offset}" for queue, has in ends.items() for offset in range(has["max"] or 0)}


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Any, str, tuple[int, ...]]]:
    """Brokers, the cluster's address, and its processes that outlive a driver."""
    brokers, master = request.param
    with ExitStack() as stack:
        cluster = (master, ()) if master == LOCAL_CLUSTER else stack.enter_context(standalone(tmp_path))
        if brokers == "real" and not {"rocketmq", "pulsar"} <= set(str(request.config.getoption("--real")).split(",")):
            pytest.skip("needs both real brokers: run `make real`")
        try:
            broker = Embedded(tmp_path / "broker") if brokers == "embedded" else Real(tmp_path / "broker")
        except Unavailable as error:
            pytest.skip(str(error))
        stack.callback(broker.kill)
        yield broker, *cluster


def places() -> Iterator[Any]:
    """In soak a hundred moments, half of them on the standalone cluster, and some on real brokers: beside their JVMs a
    run takes long on two cores."""
    for seed in range(10):
        master = LOCAL_CLUSTER if seed % 2 == 0 else "standalone"
        marks = [pytest.mark.soak] if seed else []
        yield pytest.param(("embedded", master), seed, marks=marks, id=f"embedded-{master.split('[')[0]}-{seed}")
    for seed in range(10, 12):
        yield pytest.param(("real", LOCAL_CLUSTER), seed, marks=[pytest.mark.real, pytest.mark.soak], id=f"real-{seed}")


@pytest.mark.ci
@pytest.mark.timeout(0)
@pytest.mark.parametrize(("place", "seed"), list(places()), indirect=["place"])
def test_nothing_is_lost_and_nothing_comes_twice(place: Any, seed: int, tmp_path: Path, scale: str) -> None:
    random = Random(seed)
    broker, master, cluster = place
    url = broker.pulsar_url
    with rocketmq.Client(broker.name_server) as client, client.admin() as admin:
        admin.create_topic("source", 2)
    given = {
        "master": master,
        "name_server": broker.name_server,
        "url": url,
        "topic": "source",
        "least": LEAST,
        "once": ONCE,
        "checkpoint": str(tmp_path / "checkpoint"),
        "settings": {"spark.cores.max": "2"},
    }
    driver = Driver(given, tmp_path / "driver.log", cluster)
    events = Counter[str]()
    with running(broker, driver) as generator:
        arrivals = {topic: Arrivals(url, topic) for topic in (ONCE, LEAST)}
        for kind in moments(random, EVENTS[scale]):
            before = arrivals[ONCE].count()
            generator.more()
            # Rows come out again, whatever was killed before; then at any moment of a batch.
            until(lambda before=before: arrivals[ONCE].count() > before, driver)  # type: ignore[misc]
            time.sleep(random.random())
            events[kind] += 1
            strike(kind, driver, broker, random)
        generator.stop.set()
        generator.join()
        places = ledger(broker.name_server)
        assert len(places) >= generator.sent > 0
        for topic in (ONCE, LEAST):
            until(lambda topic=topic: arrivals[topic].count() >= len(places), driver)  # type: ignore[misc]
        found = {topic: outcome(url, topic) for topic in (ONCE, LEAST)}
        driver.kill()  # what it ran on is free for batches
        told = tried(sys.executable, "cluster", broker, tmp_path, master=master) if isinstance(broker, Real) else {}
    print(
        f"{dict(events)}: {len(places)} rows, copies of {sum(len(r) > 1 for r in found[LEAST].values())} at least once"
    )
    assert told == dict.fromkeys(told, True)
    assert found[ONCE].keys() == found[LEAST].keys() == places
    assert {place: rows for place, rows in found[ONCE].items() if len(rows) > 1} == {}
    assert {place: rows for place, rows in found[LEAST].items() if len(set(rows)) > 1} == {}


def moments(random: Random, count: int) -> list[str]:
    """What dies, in turn: each kind once before any comes again."""
    kinds = ["driver", "executor", "broker", "worker"]
    random.shuffle(kinds)
    return (kinds + random.choices(kinds, k=count))[:count]


def strike(kind: str, driver: Driver, broker: Any, random: Random) -> None:
    if kind == "driver":
        driver.kill()
        driver.start()
    elif kind == "broker":
        broker.again(random)
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

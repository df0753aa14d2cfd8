"""Batch reads in a real Spark, into `noop`: our source against an in-memory one and one that yields tuples.

Wall time in one run, the contenders in turn: what is measured happens in the JVM and its Python workers. The broker is
a process of its own. Only in full (`make bench`), and where there is a JDK.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.support import NOT_ASKED, Compare, Figure

ROWS = 400_000
QUEUES = 2
ROUNDS = 5
SIZES = (100, 1024)
ROOT = Path(__file__).resolve().parents[2]
BROKER = """
import sys
from mqclient.broker import EmbeddedBroker
with EmbeddedBroker() as broker:
    print(broker.name_server, broker.pulsar_url, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def addresses() -> Iterator[tuple[str, str]]:
    """The name server and the service URL of a broker in a process of its own."""
    command = [sys.executable, "-c", BROKER]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        name_server, url = process.stdout.readline().split()
        yield name_server, url
        process.terminate()


@pytest.fixture(scope="module")
def spark(pytestconfig: pytest.Config) -> Iterator[Any]:
    if pytestconfig.getoption("--short"):
        pytest.skip("takes minutes: `make bench` measures it")
    if shutil.which("java") is None:
        pytest.skip("no JDK found")
    sql = pytest.importorskip("pyspark.sql")
    from benchmarks.path.spark_rivals import MemoryFormat, TupleFormat
    from mqclient.spark import register

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    session = sql.SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    register(session)
    session.dataSource.register(MemoryFormat)
    session.dataSource.register(TupleFormat)
    yield session
    session.stop()


def fill_rocketmq(name_server: str, topic: str, size: int) -> None:
    import pyarrow as pa

    from mqclient import rocketmq

    with rocketmq.Client(name_server) as client, client.admin() as admin, client.producer("filler") as producer:
        admin.create_topic(topic, QUEUES)
        rows = 10_000
        batch = pa.RecordBatch.from_pydict(
            {
                "body": [os.urandom(size // 2).hex().encode()] * rows,
                "keys": [f"key-{number:07}" for number in range(rows)],
                "properties": pa.array([[("kind", "order")]] * rows, pa.map_(pa.string(), pa.string())),
            }
        )
        for number in range(ROWS // rows):
            queue = rocketmq.MessageQueue(topic, "broker-a", number % QUEUES)
            producer.send_arrow(batch, topic, queue=queue, raise_on_error=True)


def fill_pulsar(url: str, topic: str, size: int) -> None:
    import pyarrow as pa

    from mqclient import pulsar

    with pulsar.Client(url) as client:
        for queue in range(QUEUES):
            with client.producer(f"{topic}-{queue}") as producer:
                rows = 10_000
                batch = pa.RecordBatch.from_pydict(
                    {
                        "body": [os.urandom(size // 2).hex().encode()] * rows,
                        "key": [f"key-{number:07}" for number in range(rows)],
                        "properties": pa.array([[("kind", "order")]] * rows, pa.map_(pa.string(), pa.string())),
                    }
                )
                for _ in range(ROWS // QUEUES // rows):
                    assert all(part.ok for part in producer.send_arrow(batch))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("system", ["rocketmq", "pulsar"])
def bench_batch_read(
    spark: Any,
    addresses: tuple[str, str],
    compare: Compare,
    system: str,
    size: int,
) -> None:
    name = f"spark.batch_{system}.{size}"
    if compare.wanted and name not in compare.wanted:
        pytest.skip(NOT_ASKED)
    name_server, url = addresses
    topic = f"bench-{size}"
    if system == "rocketmq":
        fill_rocketmq(name_server, topic, size)
        given = {"nameServer": name_server, "topic": topic}
    else:
        fill_pulsar(url, topic, size)
        given = {"serviceUrl": url, "topic": ",".join(f"{topic}-{queue}" for queue in range(QUEUES))}
    options = {key: str(value) for key, value in {"system": system, "size": size, "rows": ROWS, **given}.items()}

    def read(format: str, chosen: dict[str, str]) -> Callable[[], float]:
        frame = spark.read.format(format).options(**chosen).load()

        def once() -> float:
            start = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            return (time.perf_counter() - start) * 1e9 / ROWS

        return once

    contenders = {
        "native": read(f"mq-{system}", given),
        "memory": read("bench-memory", options),
        "tuples": read("bench-tuples", options),
    }
    times: dict[str, list[float]] = {key: [] for key in contenders}
    for turn in range(ROUNDS + 1):
        for key, once in contenders.items():
            spent = once()
            if turn:  # the first round starts workers
                times[key].append(spent)
    asked = "at most 2 x an in-memory source, a tuple source at least 3 x"
    figure = Figure(name, ROWS, asked, times)
    compare.benchmark.extra_info["figure"] = figure.to_json()
    compare.benchmark.pedantic(lambda: None, rounds=1)
    compare.done.append(figure)

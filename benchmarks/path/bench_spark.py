"""Reads of a real Spark into `noop`: our sources against in-memory ones, a raw loop and sources that yield tuples.

Wall time in one run, the contenders in turn: what is measured happens in the JVM and its Python workers. The broker is
a process of its own, and so are the two of the raw loop, which read the same beside an idle JVM. Only in full
(`make bench`), and where there is a JDK. The bounds are those of `bounds_spark.json`: the scaled tier checks them.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from benchmarks.path.spark_raw import raw_loop
from benchmarks.support import NOT_ASKED, Compare, Figure

ROWS = 400_000
STREAM_ROWS = 3_000_000
STREAM_ROUNDS = 3
TINY_ROUNDS = 6
TINY_TRIGGERS = 12
QUEUES = 2
ROUNDS = 5
SIZES = (100, 1024)
ROOT = Path(__file__).resolve().parents[2]
BROKER = """
import sys
from mqclient.broker import EmbeddedBroker
with EmbeddedBroker() as broker:
    print(broker.name_server, broker.pulsar_url, broker.pulsar_rest, flush=True)
    sys.stdin.read()
"""


class Beside(NamedTuple):
    """A broker in a process of its own."""

    name_server: str
    url: str
    rest: str
    process: int


@pytest.fixture(scope="module")
def beside() -> Iterator[Beside]:
    command = [sys.executable, "-c", BROKER]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        name_server, url, rest = process.stdout.readline().split()
        yield Beside(name_server, url, rest, process.pid)
        process.terminate()


@pytest.fixture(scope="module")
def addresses(beside: Beside) -> tuple[str, str]:
    """The name server and the service URL."""
    return beside.name_server, beside.url


@pytest.fixture(scope="module")
def spark(pytestconfig: pytest.Config) -> Iterator[Any]:
    if pytestconfig.getoption("--short"):
        pytest.skip("takes minutes: `make bench` measures it")
    if (wanted := pytestconfig.getoption("--figures")) and "spark." not in wanted:
        pytest.skip(NOT_ASKED)  # before a JVM starts, and ends while the next figure is measured
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


def fill_rocketmq(name_server: str, topic: str, size: int, total: int) -> None:
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
        for number in range(total // rows):
            queue = rocketmq.MessageQueue(topic, "broker-a", number % QUEUES)
            producer.send_arrow(batch, topic, queue=queue, raise_on_error=True)


def fill_pulsar(url: str, topic: str, size: int, total: int) -> None:
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
                for _ in range(total // QUEUES // rows):
                    assert all(part.ok for part in producer.send_arrow(batch))


def filled(
    system: str, addresses: tuple[str, str], size: int, topic: str, rows: int
) -> tuple[dict[str, str], dict[str, str]]:
    """Topics with so many rows; the options of our source, and those of its rivals."""
    name_server, url = addresses
    if system == "rocketmq":
        fill_rocketmq(name_server, topic, size, rows)
        given = {"nameServer": name_server, "topic": topic}
    else:
        fill_pulsar(url, topic, size, rows)
        given = {"serviceUrl": url, "topic": ",".join(f"{topic}-{queue}" for queue in range(QUEUES))}
    return given, {key: str(value) for key, value in {"system": system, "size": size, "rows": rows, **given}.items()}


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
    given, options = filled(system, addresses, size, f"bench-{size}", ROWS)

    def read(format: str, chosen: dict[str, str]) -> Callable[[], float]:
        frame = spark.read.format(format).options(**chosen).load()

        def once() -> float:
            start = time.perf_counter()
            frame.write.format("noop").mode("overwrite").save()
            return (time.perf_counter() - start) * 1e9 / ROWS

        return once

    with get_context("spawn").Pool(QUEUES) as pool:

        def raw() -> float:
            start = time.perf_counter()
            assert sum(pool.map(raw_loop, [(system, given, number) for number in range(QUEUES)])) == ROWS
            return (time.perf_counter() - start) * 1e9 / ROWS

        times = interleaved(
            {
                "native": read(f"mq-{system}", given),
                "memory": read("bench-memory", options),
                "raw": raw,
                "tuples": read("bench-tuples", options),
            }
        )
    # The measure: whichever of the two is slower.
    times["slower"] = max(times["memory"], times["raw"], key=min)
    done(compare, name, "at most 2 x the slower of memory and raw loop, a tuple source at least 3 x", times)


@pytest.mark.parametrize("system", ["rocketmq", "pulsar"])
def bench_stream_read(spark: Any, addresses: tuple[str, str], compare: Compare, system: str) -> None:
    """Triggers of a million rows, and of two, by the time that Spark itself reports."""
    name = f"spark.stream_{system}"
    if compare.wanted and not compare.wanted & {name, name + ".tiny"}:
        pytest.skip(NOT_ASKED)
    given, _ = filled(system, addresses, 100, f"stream-{system}", STREAM_ROWS)
    memory = {"system": system, "size": "100"}

    def triggers(format: str, options: dict[str, str], rows: int, count: int) -> list[float]:
        """Milliseconds of each trigger but the first, which starts processes."""
        with TemporaryDirectory() as checkpoint:
            limits = {"startingOffsets": "earliest"} if format.startswith("mq-") else {"triggers": str(count)}
            chosen = {**options, **limits, "maxOffsetsPerTrigger": str(rows)}
            frame = spark.readStream.format(format).options(**chosen).load()
            stream = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
            query = stream.trigger(processingTime="0 seconds").start()
            try:
                return spent(query, rows, count)
            finally:
                query.stop()

    contenders = {"memory": ("bench-memory", memory), "native": (f"mq-{system}", given)}

    def in_turn(rows: int, count: int, turns: int) -> dict[str, list[list[float]]]:
        """Of each contender the triggers of each round. Whoever comes first warms the JVM up for the others, by 50 ms
        a trigger: the first round does not count."""
        found: dict[str, list[list[float]]] = {key: [] for key in contenders}
        for _ in range(turns):
            for key, contender in contenders.items():
                found[key].append(triggers(*contender, rows, count))
        return {key: rounds[1:] for key, rounds in found.items()}

    large = in_turn(1_000_000, STREAM_ROWS // 1_000_000, STREAM_ROUNDS)
    per_row = {key: [one * 1e6 / 1_000_000 for times in rounds for one in times] for key, rounds in large.items()}
    done(compare, name, "at most 2 x the in-memory stream source", per_row)
    # One trigger counts as one message: what is compared is a time, with 25 ms that the issue allows.
    tiny = in_turn(2, TINY_TRIGGERS, TINY_ROUNDS)
    figure = {key: [statistics.median(times) * 1e6 for times in rounds] for key, rounds in tiny.items()}
    figure["allowed"] = [one + 25e6 for one in figure["memory"]]
    compare.done.append(Figure(name + ".tiny", 1, "at most 25 ms over the in-memory stream source", figure))


def spent(query: Any, rows: int, count: int) -> list[float]:
    """What Spark says that so many triggers took, the first left out."""
    found: dict[int, float] = {}
    until = time.monotonic() + 600
    while len(found) < count:
        assert query.isActive, query.exception()
        assert time.monotonic() < until
        for progress in query.recentProgress:
            if progress["numInputRows"] >= min(rows, 2):
                found[progress["batchId"]] = float(progress["durationMs"]["triggerExecution"])
        time.sleep(0.05)
    return [found[batch] for batch in sorted(found)][1:count]


def interleaved(contenders: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Back and forth: who comes after the tuples finds their garbage, in the workers and in the JVM."""
    times: dict[str, list[float]] = {key: [] for key in contenders}
    for turn in range(ROUNDS + 1):
        for key in reversed(contenders) if turn % 2 else contenders:
            one = contenders[key]()
            if turn:  # the first round starts workers
                times[key].append(one)
    return times


def done(compare: Compare, name: str, asked: str, times: dict[str, list[float]]) -> None:
    figure = Figure(name, ROWS, asked, times)
    compare.benchmark.extra_info["figure"] = figure.to_json()
    compare.benchmark.pedantic(lambda: None, rounds=1)
    compare.done.append(figure)

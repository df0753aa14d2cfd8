"""Batch writes of a real Spark, rows made by the JVM: our sinks against one that does nothing, and against
`foreachPartition` with the official client, of which RocketMQ has none for its remoting protocol in the registries.

As `bench_spark`: wall time in one run, the contenders in turn, the broker a process of its own on the same cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.path.bench_spark import ROUNDS, SIZES, addresses, spark
from benchmarks.support import NOT_ASKED, Compare, Figure

__all__ = ["addresses", "bench_batch_write", "spark"]

ROWS = {100: 1_000_000, 1024: 400_000}
"""By size: enough that starting a job does not count, and no more than the broker keeps."""
FEW = 200_000
"""Of the slow contender."""


def rows(spark: Any, count: int, size: int) -> Any:
    """Made as cheaply as can be: the value is the same in all of them."""
    value = f"cast('{'x' * size}' as binary) as value"
    return spark.range(0, count, numPartitions=2).selectExpr(value, "cast(id as string) as key")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("system", ["rocketmq", "pulsar"])
def bench_batch_write(spark: Any, addresses: tuple[str, str], compare: Compare, system: str, size: int) -> None:
    name = f"spark.sink_{system}.{size}"
    if compare.wanted and name not in compare.wanted:
        pytest.skip(NOT_ASKED)
    from benchmarks.path.spark_sinks import NothingFormat, official_pulsar

    spark.dataSource.register(NothingFormat)
    (name_server, url), count = addresses, ROWS[size]
    topic = f"sink-{size}"
    given = {"nameServer": name_server} if system == "rocketmq" else {"serviceUrl": url}
    if system == "rocketmq":
        from mqclient import rocketmq

        with rocketmq.Client(name_server) as client, client.admin() as admin:
            admin.create_topic(topic, 4)

    def write(format: str, options: dict[str, str]) -> Callable[[], float]:
        def once() -> float:
            start = time.perf_counter()
            rows(spark, count, size).write.format(format).options(**options).mode("append").save()
            return (time.perf_counter() - start) * 1e9 / count

        return once

    def official() -> float:
        start = time.perf_counter()
        rows(spark, FEW, size).foreachPartition(official_pulsar(url, f"official-{size}"))
        return (time.perf_counter() - start) * 1e9 / FEW

    contenders: dict[str, Callable[[], float]] = {
        "native": write(f"mq-{system}", {**given, "topic": topic}),
        "bare": write(f"mq-{system}", {**given, "topic": topic, "tracking": "false"}),
        "nothing": write("bench-nothing", {}),
    }
    if system == "pulsar":
        pytest.importorskip("pulsar")
        contenders["official"] = official
    times: dict[str, list[float]] = {key: [] for key in contenders}
    for turn in range(ROUNDS + 1):
        for key, once in contenders.items():
            spent = once()
            if turn:  # the first round starts workers
                times[key].append(spent)
    asked = "at most 2 x a sink that does nothing, the official client by rows at least 3 x"
    figure = Figure(name, count, asked, times)
    compare.benchmark.extra_info["figure"] = figure.to_json()
    compare.benchmark.pedantic(lambda: None, rounds=1)
    compare.done.append(figure)

"""Batch writes of a real Spark, rows made by the JVM: our sinks against one that does nothing, and against
`foreachPartition` with the official client, of which RocketMQ has none for its remoting protocol in the registries.

As `bench_spark`: wall time in one run, the contenders in turn, the broker a process of its own on the same cores. So
its own processor time is measured, too, and the figure says what would be left without it: `free`, the best wall time
less the broker's share of all cores. What was written is deleted before the next run: a broker that grows by gigabytes
gets pages that the host has to find first, and a row of 1 KiB then costs 3,450 ns in its kernel instead of 550.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from benchmarks.path.bench_spark import ROUNDS, SIZES, Beside, beside, spark
from benchmarks.support import NOT_ASKED, Compare, Figure

__all__ = ["bench_batch_write", "beside", "spark"]

ROWS = {100: 1_000_000, 1024: 400_000}
"""By size: enough that starting a job does not count, and no more than the broker keeps."""
FEW = 200_000
"""Of the slow contender."""


def rows(spark: Any, count: int, size: int) -> Any:
    """Made as cheaply as can be: the value is the same in all of them."""
    value = f"cast('{'x' * size}' as binary) as value"
    return spark.range(0, count, numPartitions=2).selectExpr(value, "cast(id as string) as key")


def emptied(system: str, beside: Beside, topic: str) -> None:
    """The topic as new: the broker has its memory back."""
    if system == "rocketmq":
        from mqclient import rocketmq

        with rocketmq.Client(beside.name_server) as client, client.admin() as admin:
            if topic in admin.topics():
                admin.delete_topic(topic)
            admin.create_topic(topic, 4)
        return
    for name in (topic, f"official-{topic}"):
        there = f"{beside.rest}/admin/v2/persistent/public/default/{name}"
        try:
            urlopen(Request(f"{there}?force=true", method="DELETE"), timeout=10).close()
        except HTTPError as error:
            if error.code != 404:  # not there yet
                raise


def spent(process: int) -> float:
    """Nanoseconds of processor time that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e9 / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("system", ["rocketmq", "pulsar"])
def bench_batch_write(spark: Any, beside: Beside, compare: Compare, system: str, size: int) -> None:
    name = f"spark.sink_{system}.{size}"
    if compare.wanted and name not in compare.wanted:
        pytest.skip(NOT_ASKED)
    from benchmarks.path.spark_sinks import NothingFormat, official_pulsar

    spark.dataSource.register(NothingFormat)
    count, topic = ROWS[size], f"sink-{size}"
    given = {"nameServer": beside.name_server} if system == "rocketmq" else {"serviceUrl": beside.url}

    def write(format: str, options: dict[str, str]) -> Callable[[], float]:
        def once() -> float:
            start = time.perf_counter()
            rows(spark, count, size).write.format(format).options(**options).mode("append").save()
            return (time.perf_counter() - start) * 1e9 / count

        return once

    def official() -> float:
        start = time.perf_counter()
        rows(spark, FEW, size).foreachPartition(official_pulsar(beside.url, f"official-{topic}"))
        return (time.perf_counter() - start) * 1e9 / FEW

    contenders: dict[str, Callable[[], float]] = {
        "native": write(f"mq-{system}", {**given, "topic": topic}),
        "bare": write(f"mq-{system}", {**given, "topic": topic, "tracking": "false"}),
        "nothing": write("bench-nothing", {}),
    }
    if system == "pulsar":
        pytest.importorskip("pulsar")
        contenders["official"] = official
    times: dict[str, list[float]] = {key: [] for key in (*contenders, "broker")}
    for turn in range(ROUNDS + 1):
        for key, once in contenders.items():
            emptied(system, beside, topic)
            before = spent(beside.process)
            wall = once()
            if turn:  # the first round starts workers
                times[key].append(wall)
                if key == "native":
                    times["broker"].append((spent(beside.process) - before) / count)
    cores = len(os.sched_getaffinity(0))
    times["free"] = [min(times["native"]) - min(times["broker"]) / cores]
    asked = "at most 2 x a sink that does nothing, the official client by rows at least 3 x"
    figure = Figure(name, count, asked, times)
    compare.benchmark.extra_info["figure"] = figure.to_json()
    compare.benchmark.pedantic(lambda: None, rounds=1)
    compare.done.append(figure)

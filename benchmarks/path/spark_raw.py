"""What a worker would do without Spark: read a range by our own client into raw column buffers, and drop them."""

from __future__ import annotations

from typing import Any

from mqclient.spark import pulsar_source, rocketmq_source
from mqclient.spark.pulsar_heads import reading
from mqclient.spark.read_options import read_options


def raw_loop(asked: tuple[str, dict[str, str], int]) -> int:
    """`asked`: the system, the options of our source, and which of the ranges; how many rows came."""
    system, given, number = asked
    source: Any = {"rocketmq": rocketmq_source, "pulsar": pulsar_source}[system]
    options = read_options(given, source.OPTIONS, source.FORMAT)
    part = source.plan(options)[number]
    native = [column.native for column in source.COLUMNS if column.default and column.native]
    return _rocketmq(options, part, native) if system == "rocketmq" else _pulsar(options, part, native)


def _rocketmq(options: Any, part: Any, native: list[str]) -> int:
    from mqclient import rocketmq

    rows, assign = 0, {rocketmq.MessageQueue(*part.queue): (part.start, part.end)}
    with (
        rocketmq_source.client(options.access) as client,
        client.pull_consumer("raw", assign=assign, pull_batch=4096) as consumer,
    ):
        for batch in consumer.batches(4096):
            batch.columns(native)
            rows += len(batch)
    return rows


def _pulsar(options: Any, part: Any, native: list[str]) -> int:
    rows = 0
    with (
        pulsar_source.client(options.access) as client,
        client.reader(part.topic, **reading(part.after, pulsar_source.WINDOW, 60.0)) as reader,
    ):
        for batch in reader.batches():
            batch.columns(native)
            rows += len(batch)
            if (batch.entry.ledger, batch.entry.entry) >= part.upto[:2]:
                break
    return rows

"""Owns reading RocketMQ for Spark: where queues end, what tasks get, and exact ranges as record batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

from mqclient import rocketmq
from mqclient.errors import DeadlineError
from mqclient.spark import schema
from mqclient.spark.arrow import Maker, gathered
from mqclient.spark.clients import CLIENTS
from mqclient.spark.options import EARLIEST, ROCKETMQ_SOURCE, ReadOptions
from mqclient.spark.plan import Queue, Range, ranges, resolve, split

FORMAT: Final = "mq-rocketmq"
COLUMNS: Final = schema.ROCKETMQ
OPTIONS: Final = ROCKETMQ_SOURCE
BATCH: Final = 4096


def client(address: str) -> AbstractContextManager[rocketmq.Client]:
    """This process' client of these name servers."""
    return CLIENTS.borrow((FORMAT, address), lambda: rocketmq.Client(address))


def ends(options: ReadOptions) -> dict[Queue, tuple[int, int]]:
    """Of each queue of the topics: the oldest offset, and the next one to be written."""
    found = {}
    with client(options.address) as borrowed, borrowed.admin() as admin:
        for topic in options.topics:
            for queue, has in admin.offsets(topic, timeout=options.timeout).items():
                found[Queue(*queue)] = (has["min"] or 0, has["max"] or 0)
    return found


def plan(options: ReadOptions) -> list[Range]:
    """The tasks of a batch read."""
    there = ends(options)
    clamp = not options.fail_on_data_loss
    starts = resolve(options.start or EARLIEST, there, "startingOffsets", clamp=clamp)
    stops = resolve(options.end, there, "endingOffsets", clamp=clamp)
    return split(ranges(starts, stops), options.max_records, options.min_partitions)


def read(options: ReadOptions, part: Range, arrow_schema: Any) -> Iterator[Any]:
    """All record batches of a range."""
    maker = Maker(arrow_schema, schema.by_name(COLUMNS))
    return gathered(_batches(options, part, maker), options.batch_rows, options.batch_bytes)


def _batches(options: ReadOptions, part: Range, maker: Maker) -> Iterator[Any]:
    queue, position = part.queue, part.start
    same = {"topic": queue.topic, "broker": queue.broker, "queue": queue.number}
    assign = {rocketmq.MessageQueue(*queue): (part.start, part.end)}
    with (
        client(options.address) as borrowed,
        borrowed.pull_consumer(options.group, assign=assign, pull_batch=BATCH, timeout=options.timeout) as consumer,
    ):
        while position < part.end:
            batch = consumer.receive_batch(BATCH, options.timeout)
            if batch is None:
                raise DeadlineError(
                    f"{queue}: nothing came for {options.timeout:g} s after offset {position}, "
                    f"{part.end - position} messages before the end (option timeoutSeconds)"
                )
            position = batch.last_offset + 1
            yield maker.record_batch(batch.columns(maker.native), len(batch), same)

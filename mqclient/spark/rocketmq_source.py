"""Owns reading RocketMQ for Spark: where queues end, what tasks get, and exact ranges as record batches."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from mqclient import rocketmq
from mqclient.errors import ConfigError, DeadlineError
from mqclient.spark import schema
from mqclient.spark.arrow import Maker, Piece, gathered
from mqclient.spark.clients import CLIENTS
from mqclient.spark.options import EARLIEST, ROCKETMQ_SOURCE, ReadOptions
from mqclient.spark.plan import (
    Ends,
    Queue,
    Range,
    backlog,
    behind,
    firsts,
    flat,
    heads,
    limited,
    nested,
    ranges,
    resolve,
    split,
)

__all__ = ["backlog", "behind", "firsts", "flat", "heads", "limited", "nested", "plan", "read", "resolve"]
"""Together with the rest of this module: what `stream.Tracker` and `formats` ask of a system."""

log = logging.getLogger("mqclient.spark")

FORMAT: Final = "mq-rocketmq"
KEY: Final = "q"
COLUMNS: Final = schema.ROCKETMQ
OPTIONS: Final = ROCKETMQ_SOURCE
BATCH: Final = 4096


def client(address: str) -> AbstractContextManager[rocketmq.Client]:
    """This process' client of these name servers."""
    return CLIENTS.borrow((FORMAT, address), lambda: rocketmq.Client(address))


class Heads:
    """Looks where the queues of the topics begin and end."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def look(self) -> Ends:
        """Of each queue: the oldest offset, and the next one to be written."""
        found = {}
        with client(self._options.address) as borrowed, borrowed.admin() as admin:
            for topic in self._options.topics:
                for queue, has in admin.offsets(topic, timeout=self._options.timeout).items():
                    found[Queue(*queue)] = (has["min"] or 0, has["max"] or 0)
        return found

    def close(self) -> None:
        """Nothing of its own is open."""


def plan(options: ReadOptions) -> list[Range]:
    """The tasks of a batch read."""
    there = Heads(options).look()
    clamp = not options.fail_on_data_loss
    starts = resolve(options.start or EARLIEST, there, "startingOffsets", clamp=clamp)
    stops = resolve(options.end, there, "endingOffsets", clamp=clamp)
    return split(ranges(starts, stops), options.max_records, options.min_partitions)


def stream_ranges(
    options: ReadOptions, starts: Mapping[Queue, int], stops: Mapping[Queue, int], there: Ends
) -> list[Range]:
    """The tasks of a batch of a stream; what brokers deleted meanwhile is an error, or passed over."""
    found = []
    for queue in sorted(stops):
        start, stop = starts.get(queue, 0), stops[queue]
        first, last = there.get(queue, (0, -1))
        if start != stop and not first <= min(start, stop) <= max(start, stop) <= last:
            lost = f"{queue}: offsets {start} to {stop} are not all there, it has {first} to {last}"
            if options.fail_on_data_loss:
                raise ConfigError(f'{lost}. .option("failOnDataLoss", "false") goes on with what is there.')
            log.warning("%s: %s", FORMAT, lost)
            # A queue that was made anew ends before its start: it is read from its beginning.
            start = first if stop < start else max(start, first)
            stop = min(stop, last)
        found.append(Range(queue, start, stop))
    return split(found, options.max_records, options.min_partitions)


def read(options: ReadOptions, part: Range, arrow_schema: Any) -> Iterator[Any]:
    """All record batches of a range."""
    maker = Maker(arrow_schema, schema.by_name(COLUMNS))
    return gathered(_pieces(options, part, maker), maker, options.batch_rows, options.batch_bytes)


def _pieces(options: ReadOptions, part: Range, maker: Maker) -> Iterator[Piece]:
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
            yield Piece(batch.columns(maker.native), len(batch), same, 0, len(batch))

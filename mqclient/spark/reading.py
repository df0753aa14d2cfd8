"""Owns the readers that Spark calls: planned on the driver, read in tasks, each range as record batches."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from inspect import signature
from typing import Any, Final

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from mqclient.errors import ConfigError, MQError
from mqclient.spark import memory, pulsar_source, rocketmq_source
from mqclient.spark.clients import CLIENTS
from mqclient.spark.filters import Bounds
from mqclient.spark.plan import Limit
from mqclient.spark.read_options import ReadOptions
from mqclient.spark.stream import Tracker

log = logging.getLogger("mqclient.spark")

LIMITS_MODULE = "pyspark.sql.streaming.datasource"
LIMITS: Any = importlib.import_module(LIMITS_MODULE) if importlib.util.find_spec(LIMITS_MODULE) else None
"""Admission control, from PySpark 4.2 on."""
AVAILABLE_NOW: Any = () if LIMITS is None else (LIMITS.SupportsTriggerAvailableNow,)
PUSHES = hasattr(DataSourceReader, "pushFilters")
"""From PySpark 4.1 on."""
ZONE: Any = {"timezone": "UTC"} if "timezone" in signature(to_arrow_schema).parameters else {}
"""Before PySpark 4.2 Arrow's times are of UTC anyway."""
TERMINATED: Final = 128 + signal.SIGTERM
SYSTEMS: Mapping[str, Any] = {module.FORMAT: module for module in (rocketmq_source, pulsar_source)}


class Part(InputPartition):
    """What one task reads: a range and nothing secret."""

    def __init__(self, range: Any) -> None:
        self.range = range


class Reader(DataSourceReader):
    """A batch read: planned on the driver, then each range as record batches."""

    def __init__(self, format: str, options: ReadOptions, schema: Any) -> None:
        self._format = format
        self._options = options
        self._schema = schema
        self._bounds: Bounds | None = None

    def partitions(self) -> list[InputPartition]:
        return [Part(range) for range in SYSTEMS[self._format].plan(self._options, self._bounds)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return record_batches(self._format, self._options, partition, self._schema)


class FilteringReader(Reader):
    """A batch read that hears the query's conditions. A class of its own: Spark refuses a reader that listens while
    `spark.sql.python.filterPushdown.enabled` is off."""

    def pushFilters(self, filters: Any) -> Any:
        """They narrow the ranges; Spark applies all of them again."""
        wanted = list(filters)
        self._bounds = Bounds.of(wanted)
        return wanted


def reader(format: str, options: ReadOptions, schema: Any) -> Reader:
    """The reader of a batch."""
    if options.limits:
        raise ConfigError(
            f"options {', '.join(options.limits)}: only streams have triggers. A batch ends by endingOffsets or "
            "endingTimestamp; maxRecordsPerPartition makes its tasks smaller."
        )
    if not options.push_filters:
        return Reader(format, options, schema)
    if not PUSHES:
        raise ConfigError(
            "option filterPushdown needs PySpark 4.1. Without it: startingOffsets, startingTimestamp, endingTimestamp."
        )
    return FilteringReader(format, options, schema)


class StreamReader(datasource.DataSourceStreamReader, *AVAILABLE_NOW):  # type: ignore[misc]
    """The source of a stream; lives in a process of its own on the driver, and its copies in tasks only read."""

    def __init__(self, format: str, options: ReadOptions, schema: Any) -> None:
        self._format = format
        self._options = options
        self._schema = schema
        self._tracker: Tracker | None = None
        self._position: Any = None
        self._alone = False
        """Whether this is the source's process of its own, which ends with it."""

    @property
    def tracker(self) -> Tracker:
        if self._tracker is None:
            self._tracker = Tracker(SYSTEMS[self._format], self._options)
            self._alone = stop_on_sigterm()
        return self._tracker

    def initialOffset(self) -> Any:
        return self.tracker.initial()

    def getDefaultReadLimit(self) -> Any:
        if self._options.max_per_trigger is not None:
            return LIMITS.ReadMaxRows(self._options.max_per_trigger)
        if self._options.max_bytes is not None:
            return LIMITS.ReadMaxBytes(self._options.max_bytes)
        return LIMITS.ReadAllAvailable()

    def latestOffset(self, start: Any = None, limit: Any = None) -> Any:
        """PySpark before 4.2 names no start: it is the end of the batch planned last."""
        begin = start or self._position or self.tracker.initial()
        return self.tracker.latest(begin, self._limit(limit))

    def reportLatestOffset(self) -> Any:
        return self.tracker.report()

    def prepareForTriggerAvailableNow(self) -> None:
        self.tracker.freeze()

    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        self._position = end
        return [Part(range) for range in self.tracker.ranges(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return record_batches(self._format, self._options, partition, self._schema)

    def commit(self, end: Any) -> None:
        """Spark's checkpoint is what counts; a group or subscription that was named is told, for those who look."""
        self.tracker.commit(end)

    def stop(self) -> None:
        leaving = self._alone and isinstance(sys.exc_info()[1], (EOFError, SystemExit))
        if leaving:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the JVM hangs up and sends it: one of them is enough
        try:
            if self._tracker is not None:
                self._tracker.close()
            CLIENTS.close()
        except MQError as error:
            if not leaving:
                raise
            log.warning("%s: a stopped query could not take its leave of the brokers: %s", self._format, error)
        if leaving:
            leave()

    def _limit(self, limit: Any) -> Limit | None:
        """Spark says which kind of limit holds for this batch; a second one is ours alone."""
        if limit is None or isinstance(limit, LIMITS.ReadAllAvailable):
            return None
        rows = getattr(limit, "max_rows", self._options.max_per_trigger)
        return Limit(rows, getattr(limit, "max_bytes", self._options.max_bytes))


def stream_reader(format: str, options: ReadOptions, schema: Any) -> StreamReader:
    """The source of a stream, where this Spark can do what is asked."""
    if options.ends:
        raise ConfigError(
            f"options {', '.join(options.ends)}: only batches have them. A stream that ends: "
            ".trigger(availableNow=True), where the queues end when it begins."
        )
    if options.limits and LIMITS is None:
        raise ConfigError(
            f"options {', '.join(options.limits)} need PySpark 4.2: without it a batch takes all there is. The way "
            "out: a longer trigger interval, or batch reads from startingOffsets to endingOffsets."
        )
    return StreamReader(format, options, schema)


def stop_on_sigterm() -> bool:
    """Spark ends a source's process by SIGTERM and never calls `stop`: with this, its own `finally` does. Whether it
    will."""
    ours = threading.current_thread() is threading.main_thread()
    if ours and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(TERMINATED))
        return True
    return False


def leave() -> None:
    """The query was stopped. Spark's own way out tells the JVM so, which has hung up: users would see a traceback of a
    broken pipe."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(TERMINATED)


def record_batches(format: str, options: ReadOptions, partition: Any, schema: Any) -> Iterator[Any]:
    """Runs in the task. Where nothing is planned, Spark runs one task all the same, with a partition of its own."""
    if not isinstance(partition, Part):
        return iter(())
    memory.keep()
    arrow_schema = to_arrow_schema(schema, **ZONE)
    found: Iterator[Any] = SYSTEMS[format].read(options, partition.range, arrow_schema)
    return found

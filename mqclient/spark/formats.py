"""Owns the classes that Spark calls: each checks its options, then hands on to its system's module."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import uuid4

from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import to_arrow_schema

from mqclient.errors import ConfigError
from mqclient.spark import pulsar_source, rocketmq_source
from mqclient.spark.clients import CLIENTS
from mqclient.spark.options import ReadOptions, WriteOptions, read_options, write_options
from mqclient.spark.schema import check_fields, check_sink, ddl
from mqclient.spark.stream import Tracker
from mqclient.spark.writers import SINKS, task

LIMITS_MODULE = "pyspark.sql.streaming.datasource"
ARROW_STREAM: Any = getattr(datasource, "DataSourceStreamArrowWriter", None)
"""Not there in PySpark 4.0."""
LIMITS: Any = importlib.import_module(LIMITS_MODULE) if importlib.util.find_spec(LIMITS_MODULE) else None
"""Admission control, from PySpark 4.2 on."""
AVAILABLE_NOW: Any = () if LIMITS is None else (LIMITS.SupportsTriggerAvailableNow,)
log = logging.getLogger("mqclient.spark")
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

    def partitions(self) -> list[InputPartition]:
        return [Part(range) for range in SYSTEMS[self._format].plan(self._options)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return record_batches(self._format, self._options, partition, self._schema)


class StreamReader(datasource.DataSourceStreamReader, *AVAILABLE_NOW):  # type: ignore[misc]
    """The source of a stream; lives in a process of its own on the driver, and its copies in tasks only read."""

    def __init__(self, format: str, options: ReadOptions, schema: Any) -> None:
        self._format = format
        self._options = options
        self._schema = schema
        self._tracker: Tracker | None = None
        self._position: Any = None

    @property
    def tracker(self) -> Tracker:
        if self._tracker is None:
            self._tracker = Tracker(SYSTEMS[self._format], self._options)
        return self._tracker

    def initialOffset(self) -> Any:
        return self.tracker.initial()

    def getDefaultReadLimit(self) -> Any:
        most = self._options.max_per_trigger
        return LIMITS.ReadAllAvailable() if most is None else LIMITS.ReadMaxRows(most)

    def latestOffset(self, start: Any = None, limit: Any = None) -> Any:
        """PySpark before 4.2 names no start: it is the end of the batch planned last."""
        begin = start or self._position or self.tracker.initial()
        return self.tracker.latest(begin, getattr(limit, "max_rows", None))

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
        """Spark's checkpoint is what counts: nobody else is told."""

    def stop(self) -> None:
        if self._tracker is not None:
            self._tracker.close()
        CLIENTS.close()


@dataclass
class Written(WriterCommitMessage):
    """What a task tells the driver."""

    rows: int


class Sending:
    """What batch and stream writers do alike. `write` returns when every row is acknowledged."""

    def __init__(self, format: str, options: WriteOptions) -> None:
        self._format = format
        self._options = options
        self._query = uuid4().hex[:12]

    def write(self, iterator: Iterator[Any]) -> Written:
        return Written(task(self._format, self._options, iterator, self._query, "0"))

    def _told(self, messages: list[Any], outcome: str) -> None:
        written = sum(message.rows for message in messages if message is not None)
        log.info("%s: %d rows %s", self._format, written, outcome)


class Writer(Sending, DataSourceArrowWriter):
    """A batch write."""

    def commit(self, messages: list[Any]) -> None:
        self._told(messages, "written")

    def abort(self, messages: list[Any]) -> None:
        """What brokers have stays there: at least once."""
        self._told(messages, "written by tasks of a job that failed")


class Format(DataSource):
    """What both formats do alike; subclasses say which system they are of."""

    format: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> str:
        return ddl(SYSTEMS[self.format].COLUMNS, self._read_options(), self.format)

    def reader(self, schema: Any) -> DataSourceReader:
        return Reader(self.format, self._checked(schema), schema)

    def streamReader(self, schema: Any) -> Any:
        options = self._checked(schema)
        if options.max_per_trigger is not None and LIMITS is None:
            raise ConfigError("option maxOffsetsPerTrigger needs PySpark 4.2: without it a batch takes all there is.")
        return StreamReader(self.format, options, schema)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return Writer(self.format, self._checked_sink(schema, overwrite))

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        if ARROW_STREAM is None:
            raise ConfigError(
                f"{self.format} as the sink of a stream needs PySpark 4.1. With 4.0: "
                ".foreachBatch(mqclient.spark.rocketmq_writer(…)) or pulsar_writer(…)."
            )
        return StreamWriter(self.format, self._checked_sink(schema, overwrite))

    def _checked_sink(self, schema: Any, overwrite: bool) -> WriteOptions:
        if overwrite:
            raise ConfigError(
                f'{self.format} only appends: .mode("append"), or .outputMode("append"). For other output modes: '
                ".foreachBatch(mqclient.spark.rocketmq_writer(…)) or pulsar_writer(…)."
            )
        sink = SINKS[self.format]
        options = write_options(self.options, sink.OPTIONS, self.format)
        fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        check_sink(fields, sink.COLUMNS, options.topic, self.format)
        return options

    def _read_options(self) -> ReadOptions:
        return read_options(self.options, SYSTEMS[self.format].OPTIONS, self.format)

    def _checked(self, schema: Any) -> ReadOptions:
        """`schema()` is not called where the user gives one: everything is checked here again."""
        options = self._read_options()
        if options.columns and options.columns != tuple(schema.names):
            raise ConfigError("option columns and a schema of your own: give one of them.")
        fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        check_fields(fields, SYSTEMS[self.format].COLUMNS, self.format)
        return options


class RocketmqFormat(Format):
    """spark.read.format("mq-rocketmq")"""

    format = rocketmq_source.FORMAT


class PulsarFormat(Format):
    """spark.read.format("mq-pulsar")"""

    format = pulsar_source.FORMAT


def record_batches(format: str, options: ReadOptions, partition: Any, schema: Any) -> Iterator[Any]:
    """Runs in the task. Where nothing is planned, Spark runs one task all the same, with a partition of its own."""
    if not isinstance(partition, Part):
        return iter(())
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    found: Iterator[Any] = SYSTEMS[format].read(options, partition.range, arrow_schema)
    return found


if ARROW_STREAM is not None:

    class StreamWriter(Sending, ARROW_STREAM):  # type: ignore[misc]
        """The sink of a stream: a batch that is tried again is sent again."""

        def commit(self, messages: list[Any], batchId: int) -> None:
            self._told(messages, f"written in batch {batchId}")

        def abort(self, messages: list[Any], batchId: int) -> None:
            self._told(messages, f"written by tasks of batch {batchId}, which failed")

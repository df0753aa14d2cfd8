"""Owns the classes that Spark calls for a sink, batch and stream; `write` returns when every row is acknowledged."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from mqclient.errors import ConfigError
from mqclient.spark.write_options import WriteOptions
from mqclient.spark.writers import task

ARROW_STREAM: Any = getattr(datasource, "DataSourceStreamArrowWriter", None)
"""Not there in PySpark 4.0."""
log = logging.getLogger("mqclient.spark")


@dataclass
class Written(WriterCommitMessage):
    """What a task tells the driver."""

    rows: int


class Sending:
    """What batch and stream writers do alike."""

    streaming = False

    def __init__(self, format: str, options: WriteOptions) -> None:
        self._format = format
        self._options = options
        self._query = uuid4().hex
        """Of a batch write; a stream's is Spark's own, for it outlives restarts."""

    def write(self, iterator: Iterator[Any]) -> Written:
        return Written(task(self._format, self._options, iterator, self._query, "0", streaming=self.streaming))

    def _told(self, messages: list[Any], outcome: str) -> None:
        written = sum(message.rows for message in messages if message is not None)
        log.info("%s: %d rows %s", self._format, written, outcome)


class Writer(Sending, DataSourceArrowWriter):
    """A batch write."""

    def commit(self, messages: list[Any]) -> None:
        self._told(messages, "written")

    def abort(self, messages: list[Any]) -> None:
        """What brokers have stays there."""
        self._told(messages, "written by tasks of a job that failed")


def stream_writer(format: str, options: WriteOptions) -> Any:
    if ARROW_STREAM is None:
        raise ConfigError(
            f"{format} as the sink of a stream needs PySpark 4.1. With 4.0: "
            ".foreachBatch(mqclient.spark.rocketmq_writer(…)) or pulsar_writer(…)."
        )
    return StreamWriter(format, options)


if ARROW_STREAM is not None:

    class StreamWriter(Sending, ARROW_STREAM):  # type: ignore[misc]
        """The sink of a stream. A batch that is tried again is sent again: see deliveryGuarantee."""

        streaming = True

        def commit(self, messages: list[Any], batchId: int) -> None:
            self._told(messages, f"written in batch {batchId}")

        def abort(self, messages: list[Any], batchId: int) -> None:
            self._told(messages, f"written by tasks of batch {batchId}, which failed")

"""Sinks to compare ours with: one that does nothing, and what one writes with the official client, row by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from mqclient.spark.pulsar_sink import ENTRY


class NothingFormat(DataSource):
    """Record batches come and are dropped: the ceiling of any sink."""

    @classmethod
    def name(cls) -> str:
        return "bench-nothing"

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return NothingWriter()


class NothingWriter(DataSourceArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()


def official_pulsar(url: str, topic: str) -> Callable[[Iterable[Any]], None]:
    """For foreachPartition: the official client, sending in batches and without waiting for each row."""

    def send(rows: Iterable[Any]) -> None:
        import pulsar  # type: ignore[import-untyped]

        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        client = pulsar.Client(url, logger=logger)
        producer = client.create_producer(
            topic,
            batching_enabled=True,
            batching_max_messages=1000,
            batching_max_allowed_size_in_bytes=ENTRY,
            block_if_queue_full=True,
        )
        for row in rows:
            producer.send_async(bytes(row.value), None, partition_key=row.key)
        producer.flush()
        client.close()

    return send

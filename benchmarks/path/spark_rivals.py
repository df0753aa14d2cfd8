"""Sources to compare ours with: the same columns from memory, and the same messages as tuples, by our own client."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from mqclient.spark import pulsar_source, rocketmq_source, schema
from mqclient.spark.arrow import Maker, Piece
from mqclient.spark.read_options import read_options
from mqclient.spark.reading import Part

SYSTEMS = {"rocketmq": rocketmq_source, "pulsar": pulsar_source}
BATCH = 4000


def text(value: bytes, rows: int) -> tuple[Any, ...]:
    return None, struct.pack(f"={rows + 1}i", *range(0, len(value) * (rows + 1), len(value))), value * rows


def columns(size: int, rows: int) -> dict[str, tuple[Any, ...]]:
    """Raw buffers as a codec gives them."""
    places = struct.pack(f"={rows + 1}i", *range(0, 2 * (rows + 1), 2))
    entries = text(b"propname", 2 * rows)[1:] + text(b"the value", 2 * rows)[1:]
    wide = None, bytes(8 * rows)
    return {
        "body": text(b"x" * size, rows),
        "properties": (None, places, *entries),
        **dict.fromkeys(("keys", "key", "tag", "ordering_key"), text(b"key-0000000", rows)),
        **dict.fromkeys(("offset", "stored_at", "published_at"), wide),
        "batch_index": (None, bytes(4 * rows)),
    }


class Made(NamedTuple):
    """Stands in for a batch that has its columns already."""

    made: dict[str, tuple[Any, ...]]

    def columns(self, names: Collection[str], more: Sequence[Any] = ()) -> dict[str, tuple[Any, ...]]:
        return self.made


class Rival(DataSource):
    """The schema is that of ours."""

    def schema(self) -> str:
        system = SYSTEMS[self.options["system"]]
        return ", ".join(f"{column.name} {column.type}" for column in system.COLUMNS if column.default)


class MemoryFormat(Rival):
    """Record batches of buffers made once: the ceiling of any source."""

    @classmethod
    def name(cls) -> str:
        return "bench-memory"

    def reader(self, schema: Any) -> DataSourceReader:
        return MemoryReader(dict(self.options), schema)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        return MemoryStream(dict(self.options), schema)


class MemoryReader(DataSourceReader):
    def __init__(self, options: dict[str, str], schema: Any) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(number) for number in range(2)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return from_memory(self._options, int(self._options["rows"]) // 2, self._schema)


class MemoryStream(DataSourceStreamReader):
    """So many triggers of so many rows each, then silence."""

    def __init__(self, options: dict[str, str], schema: Any) -> None:
        self._options = {key.lower(): value for key, value in options.items()}
        self._schema = schema

    def initialOffset(self) -> dict[str, int]:
        return {"trigger": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        return {"trigger": min((start or self.initialOffset())["trigger"] + 1, int(self._options["triggers"]))}

    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        return [InputPartition(number) for number in range(2)] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        rows = int(self._options["maxoffsetspertrigger"]) // 2
        return from_memory(self._options, rows, self._schema) if partition.value is not None else iter(())


def from_memory(options: dict[str, str], rows: int, spark_schema: Any) -> Iterator[Any]:
    system, size = SYSTEMS[options["system"]], int(options["size"])
    count = min(BATCH if size > 500 else 10_000, rows)
    maker = Maker(to_arrow_schema(spark_schema, timezone="UTC"), schema.by_name(system.COLUMNS))
    made, same = columns(size, count), {"topic": "topic", "broker": "broker-a", "queue": 0}
    same |= {"partition": 0, "ledgerId": 1, "entryId": 1}
    for _ in range(rows // count):
        yield maker.record_batch([Piece(Made(made), count, size * count, same, 0, count)])


class TupleFormat(Rival):
    """What one writes without Arrow: a tuple for each message of our own client."""

    @classmethod
    def name(cls) -> str:
        return "bench-tuples"

    def reader(self, schema: Any) -> DataSourceReader:
        return TupleReader(dict(self.options))


class TupleReader(DataSourceReader):
    def __init__(self, options: dict[str, str]) -> None:
        self._system = SYSTEMS[options["system"]]
        given = {key: value for key, value in options.items() if key not in ("system", "size", "rows")}
        self._options = read_options(given, self._system.OPTIONS, self._system.FORMAT)
        self._is_pulsar = options["system"] == "pulsar"

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_is_pulsar": self._is_pulsar}

    def partitions(self) -> list[InputPartition]:
        return [Part(range) for range in self._system.plan(self._options)]

    def read(self, partition: Any) -> Iterator[tuple[Any, ...]]:
        read = self._pulsar if self._is_pulsar else self._rocketmq
        yield from read(partition.range)

    def _rocketmq(self, part: Any) -> Iterator[tuple[Any, ...]]:
        from datetime import datetime, timezone

        from mqclient import rocketmq

        assign = {rocketmq.MessageQueue(*part.queue): (part.start, part.end)}
        left, when = part.end - part.start, datetime(2026, 1, 1, tzinfo=timezone.utc)
        with (
            rocketmq_source.client(self._options.access) as client,
            client.pull_consumer("tuples", assign=assign, pull_batch=4096) as consumer,
        ):
            while left:
                for message in consumer.receive_many(4096, 30):
                    left -= 1
                    key = message.key
                    yield (
                        None if key is None else key.encode(),
                        message.body,
                        message.topic,
                        part.queue.broker,
                        message.queue_id,
                        message.offset,
                        when,
                        message.tag,
                        message.properties,
                    )

    def _pulsar(self, part: Any) -> Iterator[tuple[Any, ...]]:
        from datetime import datetime, timezone

        when = datetime(2026, 1, 1, tzinfo=timezone.utc)
        with (
            pulsar_source.client(self._options.access) as client,
            client.reader(part.topic, start="earliest", receiver_queue=pulsar_source.WINDOW) as reader,
        ):
            last = None
            while last is None or last < part.upto:
                for message in reader.receive_many(4096, 30):
                    entry = message.entry
                    last = (entry.ledger, entry.entry, message.batch_index)
                    key = message.key
                    yield (
                        None if key is None else key.encode(),
                        message.body,
                        message.topic,
                        -1,
                        entry.ledger,
                        entry.entry,
                        message.batch_index,
                        when,
                        message.properties,
                    )

"""Owns the writers for `foreachBatch` and `foreachPartition`: sent from the tasks by Arrow, counted on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final
from uuid import uuid4

from mqclient.errors import ConfigError
from mqclient.spark import memory, pulsar_sink, rocketmq_sink, sink
from mqclient.spark.rows import Place, Shaper
from mqclient.spark.write_options import WriteOptions, check_columns, write_options

SINKS: Final[Mapping[str, Any]] = {"mq-rocketmq": rocketmq_sink, "mq-pulsar": pulsar_sink}
ROWS: Final = 10_000
ALONE: Final = (
    'deliveryGuarantee=exactly-once needs .option("producerName", …) in foreachBatch: a name that no other write of '
    "the same batch has, and that stays the same when the query starts again."
)


class BatchWriter:
    """Called as `writer(frame, batch_id)`, by foreachBatch or by hand; the number of rows sent.

    The rows go through `mapInArrow`, five times faster than `foreachPartition`; each worker keeps one client.
    """

    def __init__(self, format: str, given: Mapping[str, str]) -> None:
        self._format = format
        self._options = write_options(given, SINKS[format].OPTIONS, format)
        self._query = uuid4().hex
        self._batch: Any = None
        self._turn = 0
        """How many frames of one batch it has sent: each has names of its own."""
        if self._options.exactly_once and self._options.producer_name is None:
            raise ConfigError(ALONE)

    def __call__(self, frame: Any, batch_id: int | None = None) -> int:
        fields = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
        check_columns(fields, SINKS[self._format].COLUMNS, self._options, self._format)
        format, options, turn = self._format, self._options, self._turn_of(frame, batch_id)
        query, batch = (self._query, batch_id) if batch_id is not None else (uuid4().hex, 0)

        def send(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            rows = task(format, options, batches, query, str(batch), turn=turn)
            yield pa.RecordBatch.from_pydict({"rows": [rows]})

        sent: int = sum(row.rows for row in frame.mapInArrow(send, "rows bigint").collect())
        self._turn += 1  # not if it failed: a second try is the same turn
        return sent

    def _turn_of(self, frame: Any, batch_id: int | None) -> int:
        """Which frame of this batch it is. A run that was started again begins anew with the batch."""
        context = getattr(frame.sparkSession, "_sc", None)  # over Spark Connect there is none
        run = None if context is None else context.getLocalProperty("spark.jobGroup.id")
        if self._batch != (run, batch_id):
            self._batch, self._turn = (run, batch_id), 0
        return self._turn


def task(
    format: str,
    options: WriteOptions,
    batches: Iterable[Any],
    query: str,
    batch_id: str,
    *,
    streaming: bool = False,
    turn: int = 0,
) -> int:
    """Runs in the task: send everything, wait until all of it is acknowledged; how many rows it was.

    `streaming`: the sink of a stream, of which a batch has one. `turn`: which frame of a batch it is.
    """
    memory.keep()
    system = SINKS[format]
    alone = streaming or not options.exactly_once or options.producer_name is not None
    where = place(query, batch_id, alone=alone, turn=turn)
    shaper = Shaper(system.COLUMNS, options, where, format, system.DROP)
    return sink.write(batches, options, shaper, where, system.opened)


def place(query: str, batch_id: str, *, alone: bool = True, turn: int = 0) -> Place:
    """What Spark itself says about the query wins: it is the same after a restart.

    `alone`: nothing else of the same batch can have the same place.
    """
    from pyspark import TaskContext

    context, more = TaskContext.get(), f".{turn}" if turn else ""
    if context is None:
        return Place(query + more, batch_id, 0)
    found = context.getLocalProperty("sql.streaming.queryId")
    if found is not None and not alone:
        raise ConfigError(ALONE)
    batch_id = context.getLocalProperty("streaming.sql.batchId") or batch_id
    return Place((found or query) + more, batch_id, context.partitionId())


def send_partition(rows: Iterable[Any], format: str, **given: Any) -> int:
    """For `foreachPartition`: send rows with the columns of the sink; how many it were.

    `frame.foreachPartition(lambda rows: send_partition(rows, "mq-rocketmq", nameServer=…, topic=…))`. A frame goes
    faster through `rocketmq_writer` or `pulsar_writer`: rows are Python objects here.
    """
    if format not in SINKS:
        raise ConfigError(f"send_partition: format {format!r} is not known; there are {', '.join(SINKS)}.")
    options = write_options(
        {name.replace("_", ""): str(value) for name, value in given.items()}, SINKS[format].OPTIONS, format
    )
    if options.exactly_once:
        raise ConfigError("send_partition cannot send exactly once, a second attempt has another name: pulsar_writer.")
    return task(format, options, _batches(iter(rows)), uuid4().hex, "0")


def _batches(rows: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    while found := [row.asDict() for row in islice(rows, ROWS)]:
        columns = {name: pa.array([row[name] for row in found]) for name in found[0]}
        for name in columns:
            if name.lower() in ("properties", "headers"):
                maps = [list((row[name] or {}).items()) for row in found]
                columns[name] = pa.array(maps, pa.map_(pa.string(), pa.string()))
        yield pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

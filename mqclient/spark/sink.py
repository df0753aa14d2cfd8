"""Owns writing one task's record batches: by topic, in pieces that fit, every row acknowledged before it returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from typing import Any, NamedTuple

from mqclient.errors import ConfigError, MQError
from mqclient.spark.options import WriteOptions

Send = Callable[[str, Any, Mapping[str, str]], Iterable[Any]]
"""(topic, record batch, codec's name to column) to the outcome of each run of rows."""


class SinkError(MQError):
    """Rows were not stored: the task fails, and Spark may try it again."""


class Place(NamedTuple):
    """Where in a query a task is; the same when it is tried again."""

    query: str
    batch: str
    partition: int

    def __str__(self) -> str:
        return f"{self.query}/{self.batch}/{self.partition}"


def write(
    batches: Iterable[Any],
    options: WriteOptions,
    names: Mapping[str, str],
    place: Place,
    opened: Callable[[WriteOptions, Place], AbstractContextManager[Send]],
) -> int:
    """Send everything; how many rows it was. Without rows nothing is opened."""
    rows = 0
    waiting = iter(batches)
    first = next((batch for batch in waiting if len(batch)), None)
    if first is None:
        return 0
    with opened(options, place) as send:
        for batch in chain([first], waiting):
            made = prepared(batch, options, place, rows)
            for piece, start in pieces(made, options.in_flight):
                _send_piece(send, piece, rows + start, options, names, place)
            rows += len(batch)
    return rows


def _send_piece(
    send: Send, piece: Any, row: int, options: WriteOptions, names: Mapping[str, str], place: Place
) -> None:
    chosen = {codec: column for column, codec in names.items() if column in piece.schema.names}
    for topic, part in by_topic(piece, options.topic):
        for run in send(topic, part, chosen):
            if not run.ok:
                where = f"rows {row + run.start} to {row + run.stop - 1} of task {place}"
                if len(part) != len(piece):
                    where = f"{run.stop - run.start} of the rows from {row} on of task {place} for topic {topic!r}"
                raise SinkError(f"{where} were not stored: {run.outcome}") from run.outcome


def prepared(batch: Any, options: WriteOptions, place: Place, row: int) -> Any:
    """The columns as they are sent: options win over columns, times become milliseconds, ids join the keys."""
    import pyarrow as pa

    columns = {name: batch.column(name) for name in batch.schema.names}
    if options.tag is not None:
        columns["tag"] = pa.repeat(options.tag, len(batch))
    if "eventTime" in columns:
        # Whatever time zone the label names, the number is of UTC.
        times = columns["eventTime"].cast(pa.timestamp("us")).cast(pa.timestamp("ms"), safe=False)
        columns["eventTime"] = times.cast(pa.int64()).fill_null(0)
    if options.tracking:
        columns["key"] = tracked(columns.get("key"), place, row, len(batch))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def tracked(keys: Any, place: Place, row: int, count: int) -> Any:
    """An id for each row that a second attempt makes again; brokers keep several keys with blanks between."""
    import numpy
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = pa.array(numpy.arange(row, row + count)).cast(pa.string())
    ids = pc.binary_join_element_wise(pa.scalar(str(place)), numbers, "/")
    if keys is None:
        return ids
    return pc.coalesce(pc.binary_join_element_wise(keys.cast(pa.string()), ids, " "), ids)


def by_topic(batch: Any, topic: str | None) -> Iterator[tuple[str, Any]]:
    """The rows of each topic, in order; the option wins over the column."""
    import pyarrow.compute as pc

    if topic is not None:
        yield topic, batch
        return
    topics = batch.column("topic")
    if topics.null_count:
        raise ConfigError("a row without a topic: fill the column, or give the option topic.")
    distinct = pc.unique(topics).to_pylist()
    for name in distinct:
        yield name, batch if len(distinct) == 1 else batch.filter(pc.equal(topics, name))


def pieces(batch: Any, size: int) -> Iterator[tuple[Any, int]]:
    """Slices of about so many bytes, with the row that each begins at."""
    rows = max(1, len(batch) * size // max(1, batch.nbytes))
    for start in range(0, len(batch), rows):
        yield batch[start : start + rows], start

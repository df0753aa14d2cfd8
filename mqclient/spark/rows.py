"""Owns the columns of a sink on their way: one name for each, options over columns, ids of rows; no object per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from mqclient.spark.write_options import Columns, WriteOptions, canonical

ROW: Final = "sparkRow"
"""The property that says which row a message was: query/batch/partition/row, the same when a task is tried again."""


class Place(NamedTuple):
    """Where in a query a task is; the same when it is tried again."""

    query: str
    batch: str
    partition: int

    def __str__(self) -> str:
        return f"{self.query}/{self.batch}/{self.partition}"


class Shaper:
    """Makes the batches of one task what its system sends. `drop`: properties that the system makes itself."""

    def __init__(
        self, known: Columns, options: WriteOptions, place: Place, format: str, drop: frozenset[str] = frozenset()
    ) -> None:
        self._known = known
        self._options = options
        self._place = place
        self._format = format
        self._drop = drop

    def shape(self, batch: Any, row: int) -> Any:
        """The batch whose first row is number `row` of the task."""
        import pyarrow as pa

        names = canonical(batch.schema.names, self._known, self._format)
        columns = {column: batch.column(name) for column, name in names.items()}
        count = len(batch)
        for column, value in self._options.fixed.items():
            if column in ("delaySeconds", "delayLevel"):  # it wins over whatever else delays rows
                columns = {name: made for name, made in columns.items() if not name.startswith("del")}
            columns[column] = _repeated(value, count)
        for column in ("eventTime", "deliverAt"):
            if column in columns:
                columns[column] = milliseconds(columns[column])
        if "properties" in columns and self._drop:
            columns["properties"] = without(columns["properties"], self._drop)
        if self._options.tracking:
            columns["properties"] = with_ids(columns.get("properties"), str(self._place), row, count)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _repeated(value: Any, count: int) -> Any:
    import pyarrow as pa

    if isinstance(value, dict):
        kind = pa.map_(pa.string(), pa.string())
        return pa.array([list(value.items())], kind).take(pa.array([0] * count, pa.int32()))
    return pa.repeat(value, count)


def milliseconds(times: Any) -> Any:
    """Whatever time zone the label of a timestamp names, its number is of UTC."""
    import pyarrow as pa

    return times.cast(pa.timestamp("us")).cast(pa.timestamp("ms"), safe=False).cast(pa.int64())


def with_ids(maps: Any, place: str, row: int, count: int) -> Any:
    """The maps with one entry more in each: which row it is. It stands last, so it wins over one from upstream."""
    import numpy
    import pyarrow as pa

    ids = numbered(f"{place}/", row, count)
    if maps is None:
        offsets = pa.array(numpy.arange(count + 1, dtype=numpy.int32))
        return pa.MapArray.from_arrays(offsets, pa.repeat(ROW, count), ids)
    ends, keys, items = _entries(maps)
    # Each row's entries, then the one behind them all that is its id.
    order = numpy.insert(numpy.arange(len(keys)), ends[1:], len(keys) + numpy.arange(count))
    return pa.MapArray.from_arrays(
        pa.array((ends + numpy.arange(count + 1)).astype(numpy.int32)),
        pa.concat_arrays([keys, pa.repeat(ROW, count)]).take(pa.array(order)),
        pa.concat_arrays([items, ids]).take(pa.array(order)),
    )


def numbered(prefix: str, first: int, count: int) -> Any:
    """The texts of so many numbers, each behind the prefix. Those of one width are one block of letters.

    >>> numbered("row/", 9, 3).to_pylist()
    ['row/9', 'row/10', 'row/11']
    """
    import pyarrow as pa

    blocks, start, end = [], first, first + count
    while start < end:
        stop = min(end, 10 ** len(str(start)))
        blocks.append(_block(prefix.encode(), start, stop))
        start = stop
    return pa.concat_arrays(blocks) if blocks else pa.array([], pa.string())


def _block(prefix: bytes, start: int, stop: int) -> Any:
    """Of numbers with equally many digits: the prefix, then digit by digit, each for all of them."""
    import numpy
    import pyarrow as pa

    count, width = stop - start, len(prefix) + len(str(start))
    letters = numpy.empty((count, width), numpy.uint8)
    letters[:, : len(prefix)] = numpy.frombuffer(prefix, numpy.uint8)
    left = numpy.arange(start, stop)
    for column in range(width - 1, len(prefix) - 1, -1):
        left, digit = numpy.divmod(left, 10)
        letters[:, column] = digit + ord("0")
    offsets = numpy.arange(count + 1, dtype=numpy.int32) * numpy.int32(width)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))


def without(maps: Any, names: frozenset[str]) -> Any:
    """The maps without entries of these names; as they are if there is none."""
    import numpy
    import pyarrow as pa
    import pyarrow.compute as pc

    ends, keys, items = _entries(maps)
    gone = pc.is_in(keys, pa.array(sorted(names)))
    if not pc.any(gone).as_py():
        return maps
    kept = pc.invert(gone)
    before = numpy.concatenate([[0], numpy.cumsum(kept.to_numpy(zero_copy_only=False))])
    return pa.MapArray.from_arrays(pa.array(before[ends].astype(numpy.int32)), keys.filter(kept), items.filter(kept))


def _entries(maps: Any) -> tuple[Any, Any, Any]:
    """Where the entries of each row end, from 0 on, and all names and values; of a slice only what is in it."""
    import pyarrow as pa

    offsets = maps.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    keys, items = maps.keys[first:last], maps.items[first:last]
    if maps.null_count:  # a row without a map may still have entries below it
        maps = maps.fill_null(pa.scalar([], maps.type))
        return _entries(maps)
    return offsets - first, keys.cast(pa.string()), items.cast(pa.string())


def groups(batch: Any, column: str) -> Iterator[tuple[Any, Any]]:
    """Of each value in the column the rows that have it, in order of coming: as indices, None where it is all rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = batch.column(column)
    distinct = pc.unique(values).to_pylist()
    if len(distinct) == 1:
        yield distinct[0], None
        return
    for value in distinct:
        mask = pc.is_null(values) if value is None else pc.fill_null(pc.equal(values, pa.scalar(value)), False)
        yield value, pc.indices_nonzero(mask)


def taken(batch: Any, rows: Any) -> Any:
    return batch if rows is None else batch.take(rows)


def pieces(batch: Any, size: int) -> Iterator[tuple[Any, int]]:
    """Slices of about so many bytes, with the row that each begins at."""
    rows = max(1, len(batch) * size // max(1, batch.nbytes))
    for start in range(0, len(batch), rows):
        yield batch[start : start + rows], start


def delayed(batch: Any) -> Any:
    """Which rows are not to be delivered at once, None if all are."""
    import pyarrow.compute as pc

    found = None
    for column in ("delaySeconds", "delayLevel", "deliverAt"):
        if column in batch.schema.names:
            mask = pc.fill_null(pc.greater(batch.column(column), 0), False)
            found = mask if found is None else pc.or_(found, mask)
    return found if found is not None and pc.any(found).as_py() else None


def first_empty(values: Any) -> int | None:
    """The first row of text or bytes that is null or empty."""
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.binary_length(values), 0)
    if not len(lengths) or pc.min(lengths).as_py() > 0:
        return None
    return int(pc.index(lengths, 0).as_py())


def text_of(value: str | bytes | None) -> str | None:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def bytes_of(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def properties_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Of a row as a Python object, for what travels alone."""
    return {name: value for name, value in row.get("properties") or () if value is not None}

"""Owns the way from raw column buffers to Arrow record batches: no Python object per row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

Parts = tuple[Any, ...]
"""The buffers of one column, as `MessageBatch.columns` gives them."""
REPEATED: Final = 16384


class Column(NamedTuple):
    """One column of a source: its Spark type, the native column it is made of ("": the same in all rows of a batch)."""

    name: str
    type: str
    native: str = ""
    default: bool = True
    """Whether it is there when nobody chose columns."""


def array(kind: Any, parts: Parts, rows: int) -> Any:
    """An Arrow array around buffers: it becomes what `kind` says, without a copy where the layout is Arrow's."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        return text_map(kind, parts, rows)
    if pa.types.is_timestamp(kind):
        millis = pa.Array.from_buffers(pa.timestamp("ms", tz=kind.tz), rows, buffers(parts))
        return millis.cast(kind)
    return pa.Array.from_buffers(kind, rows, buffers(parts))


def buffers(parts: Parts) -> list[Any]:
    import pyarrow as pa

    return [None if part is None else pa.py_buffer(part) for part in parts]


def text_map(kind: Any, parts: Parts, rows: int) -> Any:
    """Properties: (None, int32 offsets, int32 key offsets, key data, int32 value offsets, value data)."""
    import pyarrow as pa

    _, offsets, key_offsets, keys, value_offsets, values = buffers(parts)
    entries = key_offsets.size // 4 - 1
    names = pa.Array.from_buffers(kind.key_type, entries, [None, key_offsets, keys])
    texts = pa.Array.from_buffers(kind.item_type, entries, [None, value_offsets, values])
    pairs = pa.StructArray.from_arrays([names, texts], fields=[kind.key_field, kind.item_field])
    return pa.Array.from_buffers(kind, rows, [None, offsets], children=[pairs])


class Maker:
    """Makes record batches of one Arrow schema; what is the same in all rows is kept and sliced."""

    def __init__(self, schema: Any, columns: Mapping[str, Column]) -> None:
        self._schema = schema
        self._plan = [(field.name, field.type, columns[field.name].native) for field in schema]
        self.native = sorted({native for _, _, native in self._plan if native})
        """What to ask `MessageBatch.columns` for."""
        self._repeated: dict[tuple[str, Any], Any] = {}

    def record_batch(self, parts: Mapping[str, Parts], rows: int, same: Mapping[str, Any]) -> Any:
        """`same`: the values of the columns that are no native ones."""
        import pyarrow as pa

        arrays = [
            array(kind, parts[native], rows) if native else self._repeat(name, kind, same[name], rows)
            for name, kind, native in self._plan
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _repeat(self, name: str, kind: Any, value: Any, rows: int) -> Any:
        import pyarrow as pa

        kept = self._repeated.get((name, value))
        if kept is None or len(kept) < rows:
            if len(self._repeated) > 64:  # entry ids never come back
                self._repeated.clear()
            kept = pa.repeat(pa.scalar(value, kind), REPEATED if isinstance(value, str) and rows < REPEATED else rows)
            self._repeated[name, value] = kept
        return kept[:rows]


def gathered(batches: Iterable[Any], rows: int, size: int) -> Iterator[Any]:
    """Small record batches become ones of so many rows or bytes: Spark does not join them."""
    held: list[Any] = []
    count = total = 0
    for batch in batches:
        if held and (count + len(batch) > rows or total + batch.nbytes > size):
            yield joined(held)
            held, count, total = [], 0, 0
        held.append(batch)
        count += len(batch)
        total += batch.nbytes
    if held:
        yield joined(held)


def joined(batches: Sequence[Any]) -> Any:
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]

"""Owns the way from raw column buffers to Arrow record batches: no Python object per row."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

Parts = tuple[Any, ...]
"""The buffers of one column, as `MessageBatch.columns` gives them."""


class Column(NamedTuple):
    """One column of a source: its Spark type, the native column it is made of ("": the same in all rows of a batch)."""

    name: str
    type: str
    native: str = ""
    default: bool = True
    """Whether it is there when nobody chose columns."""


class Undecoded(Protocol):
    """A codec's batch: its columns, and the rows of `more` batches behind its own."""

    def columns(self, names: Collection[str], more: Sequence[Any] = ()) -> Mapping[str, Parts]: ...


class Piece(NamedTuple):
    """Rows of one pull reply or entry, and the values that all its rows share."""

    batch: Undecoded
    rows: int
    size: int
    """Bytes of it, about."""
    same: Mapping[str, Any]
    first: int
    last: int
    """Which of the rows are meant: from `first` to before `last`."""

    @property
    def whole(self) -> bool:
        return self.first == 0 and self.last == self.rows


def array(kind: Any, parts: Parts, rows: int) -> Any:
    """An Arrow array around buffers, without a copy; times are still milliseconds."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        return text_map(kind, parts, rows)
    if pa.types.is_timestamp(kind):
        kind = pa.timestamp("ms", tz=kind.tz)
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


class Decoded(NamedTuple):
    """Raw buffers by native name, and which of their rows are meant."""

    parts: Mapping[str, Parts]
    rows: int
    first: int
    last: int


class Maker:
    """Makes record batches of one Arrow schema; what is the same in all rows is kept and sliced."""

    def __init__(self, schema: Any, columns: Mapping[str, Column]) -> None:
        self._schema = schema
        self._plan = [(field.name, field.type, columns[field.name].native) for field in schema]
        self.native = sorted({native for _, _, native in self._plan if native})
        """What to ask `MessageBatch.columns` for."""
        self._repeated: dict[str, tuple[Any, Any]] = {}
        """Of each shared column the last value, and an array of it."""

    def record_batch(self, pieces: Sequence[Piece]) -> Any:
        """One batch of them all. What they share is not made for each."""
        import pyarrow as pa

        decoded = self._decoded(pieces)
        arrays = [
            self._native(kind, native, decoded) if native else self._shared(name, kind, pieces)
            for name, kind, native in self._plan
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _decoded(self, pieces: Sequence[Piece]) -> list[Decoded]:
        """By the codec at once; one by one where a range begins or ends within them."""
        if all(piece.whole for piece in pieces):
            rows = sum(piece.rows for piece in pieces)
            first, *more = [piece.batch for piece in pieces]
            return [Decoded(first.columns(self.native, more), rows, 0, rows)]
        return [Decoded(piece.batch.columns(self.native), piece.rows, piece.first, piece.last) for piece in pieces]

    def _native(self, kind: Any, native: str, decoded: Sequence[Decoded]) -> Any:
        import pyarrow as pa

        arrays = []
        for parts, rows, first, last in decoded:
            made = array(kind, parts[native], rows)
            arrays.append(made if last - first == rows else made[first:last])
        joined = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        return joined if joined.type == kind else joined.cast(kind)

    def _shared(self, name: str, kind: Any, pieces: Sequence[Piece]) -> Any:
        import pyarrow as pa

        runs = [(piece.same[name], piece.last - piece.first) for piece in pieces]
        rows = sum(count for _, count in runs)
        value = runs[0][0]
        if all(other == value for other, _ in runs):
            kept = self._repeated.get(name)
            if kept is None or kept[0] != value or len(kept[1]) < rows:
                kept = self._repeated[name] = (value, pa.repeat(pa.scalar(value, kind), rows))
            return kept[1][:rows]
        if pa.types.is_integer(kind):
            width = kind.bit_width // 8
            data = b"".join([each.to_bytes(width, sys.byteorder, signed=True) * count for each, count in runs])
            return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(data)])
        return pa.concat_arrays([pa.repeat(pa.scalar(each, kind), count) for each, count in runs])


def gathered(pieces: Iterable[Piece], maker: Maker, rows: int, size: int) -> Iterator[Any]:
    """Record batches of so many rows or bytes: Spark does not join small ones, and each costs it as much as hundreds of
    rows."""
    held: list[Piece] = []
    count = total = 0
    for piece in pieces:
        new, more = piece.last - piece.first, piece.size
        if held and (count + new > rows or total + more > size):
            yield maker.record_batch(held)
            held, count, total = [], 0, 0
        held.append(piece)
        count += new
        total += more
    if held:
        yield maker.record_batch(held)

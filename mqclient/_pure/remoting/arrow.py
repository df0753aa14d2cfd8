"""Owns the way from a batch's columns to a `pyarrow.RecordBatch`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

INT64: Final = ("offset", "physical_offset", "born_at", "stored_at")
INT32: Final = ("queue_id", "flag", "sys_flag", "attempts")


def record_batch(columns: Mapping[str, Any], rows: int) -> Any:
    """Around the columns' buffers, which are not copied again; times are timestamps in milliseconds, UTC."""
    try:
        pa: Any = import_module("pyarrow")
    except ImportError as error:
        raise ImportError("to_arrow() needs pyarrow: pip install mqclient[arrow]") from error

    def array(name: str, parts: Any) -> Any:
        buffers = [None if part is None else pa.py_buffer(part) for part in parts]
        if name == "properties":
            return _map(pa, buffers, rows)
        if name in ("born_at", "stored_at"):
            return pa.Array.from_buffers(pa.timestamp("ms", tz="UTC"), rows, buffers)
        if name in INT64 or name in INT32:
            return pa.Array.from_buffers(pa.int64() if name in INT64 else pa.int32(), rows, buffers)
        return pa.Array.from_buffers(pa.binary() if name == "body" else pa.string(), rows, buffers)

    return pa.RecordBatch.from_arrays([array(name, parts) for name, parts in columns.items()], names=list(columns))


def _map(pa: Any, buffers: list[Any], rows: int) -> Any:
    _, offsets, key_offsets, keys, value_offsets, values = buffers
    kind = pa.map_(pa.string(), pa.string())
    entries = key_offsets.size // 4 - 1
    names = pa.Array.from_buffers(kind.key_type, entries, [None, key_offsets, keys])
    texts = pa.Array.from_buffers(kind.item_type, entries, [None, value_offsets, values])
    pairs = pa.StructArray.from_arrays([names, texts], fields=[kind.key_field, kind.item_field])
    return pa.Array.from_buffers(kind, rows, [None, offsets], children=[pairs])

"""Owns the way from the columns of an Arrow record batch to raw buffers, as the codecs' `encode_columns` takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqclient.errors import ConfigError

Parts = tuple[Any, ...]


def columns_of(batch: Any, names: Mapping[str, str], numbers: Mapping[str, str]) -> dict[str, Parts]:
    """Buffers by the codec's names, from the columns that `names` says they are in; `numbers`: the types of numbers.

    Text and bytes: (validity or None, int32 offsets, data); numbers (validity or None, data); a map of text to text
    as `MessageBatch.columns` has it. Nothing is copied but what Arrow holds in another type, or sliced with nulls.
    """
    found: dict[str, Parts] = {}
    for name, column in names.items():
        if column not in batch.schema.names:
            raise ConfigError(f"there is no column {column!r}: the batch has {', '.join(batch.schema.names)}")
        array = batch.column(column)
        kind = str(array.type)
        if kind.startswith("map<"):
            found[name] = _map(array)
        elif name in numbers:
            array = array if kind == numbers[name] else array.cast(numbers[name])
            found[name] = (_validity(array), _part(array, 8 if numbers[name] == "int64" else 4, 0))
        elif kind in ("string", "binary"):
            found[name] = _text(array)
        elif kind in ("large_string", "large_binary", "string_view", "binary_view"):
            found[name] = _text(array.cast("string" if "string" in kind else "binary"))
        else:
            raise ConfigError(f"column {column!r} is {kind}: text or binary is needed")
    return found


def first_empty(array: Any) -> int | None:
    """The first row of text or bytes that is null or empty."""
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.binary_length(array), 0)
    if not len(lengths) or pc.min(lengths).as_py() > 0:
        return None
    return int(pc.index(lengths, 0).as_py())


def _validity(array: Any) -> Any:
    """One bit a row, from the first row of this array on."""
    if not array.null_count:
        return None
    return array.buffers()[0] if array.offset == 0 else array.is_valid().buffers()[1]


def _part(array: Any, width: int, more: int) -> memoryview:
    """The fixed-size values of the rows of this array, and `more` behind them."""
    buffer = array.buffers()[1]
    if buffer is None:  # an array without rows may have none
        return memoryview(bytes(width * more))
    start = array.offset * width
    return memoryview(buffer)[start : start + (len(array) + more) * width]


def _text(array: Any) -> Parts:
    data = array.buffers()[2]
    return _validity(array), _part(array, 4, 1), b"" if data is None else data


def _map(array: Any) -> Parts:
    keys, values = (child if str(child.type) == "string" else child.cast("string") for child in _children(array))
    return (None, _part(array, 4, 1), *_text(keys)[1:], *_text(values)[1:])


def _children(array: Any) -> tuple[Any, Any]:
    if not str(array.type.key_type).endswith("string") or not str(array.type.item_type).endswith("string"):
        raise ConfigError(f"a map of text to text is needed, not {array.type}")
    return array.keys, array.items

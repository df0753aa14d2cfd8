"""Arrow's columns as raw buffers: whole, sliced, with nulls, in the types that Arrow knows of text."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient.core.columns import columns_of, first_empty
from mqclient.errors import ConfigError

pa: Any = pytest.importorskip("pyarrow")
TEXT = ["a", None, "", "dd", "é", None, "g" * 20, "h"]
MAPS = [[("k", "v")], [], [("a", "1"), ("b", "2")], [], [("x", "")], [], [("y", "yy")], []]


def again(kind: Any, parts: tuple[Any, ...], rows: int) -> list[Any]:
    """What the buffers say, read by Arrow itself."""
    buffers: list[Any] = [None if part is None else pa.py_buffer(bytes(part)) for part in parts]
    if not pa.types.is_map(kind):
        return list(pa.Array.from_buffers(kind, rows, buffers).to_pylist())
    _, places, *texts = buffers
    count = texts[0].size // 4 - 1
    names = pa.Array.from_buffers(pa.string(), count, [None, *texts[:2]])
    values = pa.Array.from_buffers(pa.string(), count, [None, *texts[2:]])
    return list(
        pa.MapArray.from_arrays(pa.Array.from_buffers(pa.int32(), rows + 1, [None, places]), names, values).to_pylist()
    )


@pytest.mark.parametrize(("start", "stop"), [(0, 8), (1, 7), (3, 5), (5, 6), (8, 8)])
@pytest.mark.parametrize("kind", ["string", "large_string", "string_view"])
def test_text(kind: str, start: int, stop: int) -> None:
    array = pa.array(TEXT, pa.string())
    try:
        array = array.cast(kind)
    except (NotImplementedError, pa.ArrowNotImplementedError, ValueError):
        pytest.skip(f"this Arrow cannot make {kind}")
    batch = pa.RecordBatch.from_arrays([array], ["t"])[start:stop]
    parts = columns_of(batch, {"tag": "t"}, {})["tag"]
    assert again(pa.string(), parts, stop - start) == TEXT[start:stop]


@pytest.mark.parametrize(("start", "stop"), [(0, 8), (2, 7), (4, 4)])
def test_maps_and_numbers(start: int, stop: int) -> None:
    numbers = [1, None, 3, 4, None, 6, 7, 8]
    batch = pa.RecordBatch.from_arrays(
        [pa.array(MAPS, pa.map_(pa.string(), pa.string())), pa.array(numbers, pa.int16())], ["m", "n"]
    )[start:stop]
    found = columns_of(batch, {"properties": "m", "event_time": "n"}, {"event_time": "int64"})
    assert again(pa.map_(pa.string(), pa.string()), found["properties"], stop - start) == MAPS[start:stop]
    assert again(pa.int64(), found["event_time"], stop - start) == numbers[start:stop]


def test_what_cannot_be_sent_is_told() -> None:
    batch = pa.RecordBatch.from_pydict({"n": [1], "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))})
    for names, message in (
        ({"body": "x"}, "no column 'x': the batch has n, m"),
        ({"body": "n"}, "column 'n' is int64: text or binary is needed"),
        ({"properties": "m"}, "a map of text to text is needed"),
    ):
        with pytest.raises(ConfigError, match=message):
            columns_of(batch, names, {})


def test_the_first_row_without_anything() -> None:
    assert first_empty(pa.array([b"a", b"b"])) is None
    assert first_empty(pa.array([b"a", None, b""])) == 1
    assert first_empty(pa.array([b"a", b"", None])) == 1
    assert first_empty(pa.array([], pa.binary())) is None

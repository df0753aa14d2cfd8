"""Owns the way of messages to Arrow's buffers, and of rows of such buffers to a batch."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mqclient._pure.pulsar.batch import single
from mqclient._pure.pulsar.entry import read_pairs
from mqclient._pure.pulsar.wire import Buffer
from mqclient.errors import ConfigError

if TYPE_CHECKING:
    from mqclient._pure.pulsar.messages import Message

Column = tuple[Buffer | None, ...]


def _longs(values: Iterable[int]) -> Column:
    return None, array("q", values).tobytes()


def _ints(values: Iterable[int]) -> Column:
    return None, array("i", values).tobytes()


def _offsets(lengths: Iterable[int]) -> bytes:
    ends = array("i", [0])
    end = 0
    for length in lengths:
        end += length
        ends.append(end)
    return ends.tobytes()


def _blobs(values: Sequence[bytes | None]) -> Column:
    """Offsets and data, with the validity bits that a None asks for."""
    there = [value or b"" for value in values]
    validity: bytes | None = None
    if None in values:
        bits = sum(1 << row for row, value in enumerate(values) if value is not None)
        validity = bits.to_bytes((len(values) + 7) // 8, "little")
    return validity, _offsets(map(len, there)), b"".join(there)


def _encoded(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def _properties(messages: Sequence[Message]) -> Column:
    rows = [read_pairs(message._single.properties) for message in messages]
    keys = [key.encode() for row in rows for key, _ in row]
    values = [value.encode() for row in rows for _, value in row]
    return (None, _offsets(map(len, rows)), *_blobs(keys)[1:], *_blobs(values)[1:])


_MAKERS: dict[str, Callable[[Sequence[Any]], Column]] = {
    "body": lambda messages: _blobs([None if message.null_value else message.body for message in messages]),
    "key": lambda messages: _blobs([_encoded(message.key) for message in messages]),
    "ordering_key": lambda messages: _blobs([message.ordering_key for message in messages]),
    "properties": _properties,
    "batch_index": lambda messages: _ints(message.batch_index for message in messages),
    "sequence_id": lambda messages: _longs(message.sequence_id for message in messages),
    "published_at": lambda messages: _longs(message.published_at for message in messages),
    "event_time": lambda messages: _longs(message.event_time for message in messages),
}
COLUMNS = tuple(_MAKERS)


def columns(messages: Sequence[Message], names: Collection[str] | None) -> dict[str, Column]:
    """The columns asked for; ConfigError for a name that there is none of."""
    asked = COLUMNS if names is None else names
    for name in asked:
        if name not in _MAKERS:
            raise ConfigError(f"no column is called {name!r}; there are {', '.join(COLUMNS)}")
    return {name: maker(messages) for name, maker in _MAKERS.items() if name in asked}


class _Blobs:
    """A column of text or bytes, read row by row; what lies outside of its buffers is a ConfigError."""

    def __init__(self, name: str, validity: Buffer | None, offsets: Buffer | None, data: Buffer | None) -> None:
        self._name = name
        self._validity = None if validity is None else memoryview(validity).cast("B")
        self._offsets = memoryview(offsets or b"").cast("B")
        self._data = memoryview(data or b"").cast("B")

    def span(self, row: int) -> tuple[int, int]:
        place = 4 * row
        start = int.from_bytes(self._offsets[place : place + 4], "little", signed=True)
        stop = int.from_bytes(self._offsets[place + 4 : place + 8], "little", signed=True)
        if place + 8 > len(self._offsets) or not 0 <= start <= stop:
            raise ConfigError(f"column {self._name}: the offsets of row {row} are not there or fall")
        return start, stop

    def bytes(self, row: int) -> memoryview:
        start, stop = self.span(row)
        if stop > len(self._data):
            raise ConfigError(f"column {self._name}: row {row} ends at {stop} of {len(self._data)} bytes")
        return self._data[start:stop]

    def valid(self, row: int) -> bool:
        if self._validity is None:
            return True
        if row // 8 >= len(self._validity):
            raise ConfigError(f"column {self._name}: no validity bit for row {row}")
        return bool(self._validity[row // 8] >> row % 8 & 1)

    def get(self, row: int) -> memoryview | None:
        return self.bytes(row) if self.valid(row) else None


class _Rows:
    """The columns of `encode_columns`."""

    def __init__(self, given: Mapping[str, Column]) -> None:
        for name in given:
            if name not in ("body", "key", "ordering_key", "event_time", "properties"):
                raise ConfigError(f"column {name!r} is none of a batch")
        if "body" not in given:
            raise ConfigError("the column body is needed")
        self._body, self._key, self._ordering = map(self._blobs(given), ("body", "key", "ordering_key"))
        self._times = memoryview(given["event_time"][1] or b"").cast("B") if "event_time" in given else None
        self._maps: tuple[_Blobs, _Blobs, _Blobs] | None = None
        if "properties" in given:
            validity, offsets, key_offsets, keys, value_offsets, values = given["properties"]
            self._maps = (
                _Blobs("properties", validity, offsets, b""),
                _Blobs("properties", None, key_offsets, keys),
                _Blobs("properties", None, value_offsets, values),
            )

    @staticmethod
    def _blobs(given: Mapping[str, Column]) -> Callable[[str], _Blobs | None]:
        return lambda name: _Blobs(name, *given[name]) if name in given else None

    def _time(self, row: int) -> int:
        if self._times is None:
            return 0
        if 8 * row + 8 > len(self._times):
            raise ConfigError(f"column event_time: no row {row}")
        return int.from_bytes(self._times[8 * row : 8 * row + 8], "little", signed=True)

    def _pairs(self, row: int) -> list[tuple[memoryview, memoryview]]:
        if self._maps is None:
            return []
        rows, keys, values = self._maps
        if not rows.valid(row):
            return []
        return [(keys.bytes(place), values.bytes(place)) for place in range(*rows.span(row))]

    def message(self, row: int, sequence_id: int) -> bytes:
        body = self._body.get(row) if self._body else None
        key = self._key.get(row) if self._key else None
        ordering = self._ordering.get(row) if self._ordering else None
        return single(body, key, self._pairs(row), self._time(row), ordering, sequence_id, False, False)


def encode_columns(
    columns: Mapping[str, Column],
    start: int,
    stop: int,
    /,
    *,
    sequence_id: int = -1,
    max_bytes: int = 131072,
) -> tuple[bytes, int]:
    """`(batch payload, next row)` of Arrow buffers, layout and names as in `MessageBatch.columns`."""
    if start < 0:
        raise ConfigError(f"rows begin at 0, not at {start}")
    rows = _Rows(columns)
    parts: list[bytes] = []
    size, row = 0, start
    while row < stop and (size < max_bytes or row == start):
        part = rows.message(row, sequence_id if sequence_id == -1 else sequence_id + row - start)
        if parts and size + len(part) > max_bytes:
            break
        parts.append(part)
        size += len(part)
        row += 1
    return b"".join(parts), row

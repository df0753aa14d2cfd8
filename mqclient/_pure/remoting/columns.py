"""Arrow's column buffers: made from messages, and turned into the body of a batch send."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from struct import pack, unpack_from
from typing import TYPE_CHECKING, Any, Final

from mqclient.errors import ConfigError

from .batch import element
from .ids import UniqueKeys
from .properties import MAX_TEXT

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from .messages import Message

    Column = tuple[Buffer | None, ...]

NUMBERS: Final = {
    "offset": "q",
    "physical_offset": "q",
    "born_at": "q",
    "stored_at": "q",
    "queue_id": "i",
    "flag": "i",
    "sys_flag": "i",
    "attempts": "i",
}
TEXTS: Final[dict[str, Callable[[Message], bytes | None]]] = {
    "body": lambda message: message.body,
    "topic": lambda message: message.topic.encode(),
    "tag": lambda message: _utf8(message.tag),
    "keys": lambda message: _utf8(message.key),
    "message_id": lambda message: message.message_id.encode(),
}
COLUMNS: Final = (*TEXTS, "properties", *NUMBERS)


def _utf8(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def columns_of(messages: Sequence[Message], names: Collection[str] | None) -> dict[str, Column]:
    """The columns asked for, all if None."""
    return {name: _column(messages, name) for name in (COLUMNS if names is None else names)}


def _column(messages: Sequence[Message], name: str) -> Column:
    if name in NUMBERS:
        return None, pack(f"<{len(messages)}{NUMBERS[name]}", *(getattr(message, name) for message in messages))
    if name in TEXTS:
        values = [TEXTS[name](message) for message in messages]
        return (_validity(values), *_packed([value or b"" for value in values]))
    if name == "properties":
        names = [key.encode() for message in messages for key in message.properties]
        texts = [value.encode() for message in messages for value in message.properties.values()]
        rows = _offsets(len(message.properties) for message in messages)
        return (None, rows, *_packed(names), *_packed(texts))
    raise ConfigError(f"column {name!r} is not known; there are {', '.join(COLUMNS)}")


def _packed(values: Sequence[bytes]) -> tuple[bytes, bytes]:
    return _offsets(len(value) for value in values), b"".join(values)


def _offsets(sizes: Iterator[int]) -> bytes:
    ends = list(accumulate(sizes, initial=0))
    return pack(f"<{len(ends)}i", *ends)


def _validity(values: Sequence[bytes | None]) -> bytes | None:
    """One bit a row, lowest first; None if every row has a value."""
    if all(value is not None for value in values):
        return None
    bits = bytearray((len(values) + 7) // 8)
    for row, value in enumerate(values):
        bits[row >> 3] |= (value is not None) << (row & 7)
    return bytes(bits)


# ----------------------------------------------------------------------------------------------------------- encode


def encode_columns(
    columns: Mapping[str, Column],
    start: int,
    stop: int,
    *,
    unique: UniqueKeys | None = None,
    now_ms: int = 0,
    wait: bool = True,
) -> bytes:
    """Rows start to stop of Arrow buffers as the body of a batch send."""
    if not 0 <= start <= stop:
        raise ConfigError(f"rows {start} to {stop} are no range")
    for name in columns:
        if name not in ("body", "tag", "keys", "properties", "flag"):
            raise ConfigError(f"column {name!r} cannot be sent; body, tag, keys, properties and flag can")
    bodies = _texts(columns, "body", start, stop)
    keys = _texts(columns, "keys", start, stop)
    tags = _texts(columns, "tag", start, stop)
    entries = _maps(columns, start, stop)
    flags = _flags(columns, start, stop)
    rows = []
    for row, body in enumerate(bodies):
        if body is None:
            raise ConfigError("a body is null or there is no column of them")
        text = [
            _entry(b"KEYS", keys[row] or b""),
            _entry(b"UNIQ_KEY", unique.next(now_ms).encode() if unique else b""),
            _entry(b"WAIT", b"true" if wait else b"false"),
            _entry(b"TAGS", tags[row] or b""),
            *(_entry(name, value, needed=True) for name, value in entries[row]),
        ]
        rows.append(element(body, _fits(b"".join(text), start + row), flags[row]))
    return b"".join(rows)


def _fits(text: bytes, row: int) -> bytes:
    if len(text) > MAX_TEXT:
        raise ConfigError(f"properties of row {row} take {len(text)} bytes; {MAX_TEXT} fit")
    return text


def _entry(name: bytes, value: bytes, needed: bool = False) -> bytes:
    if needed and not (name and value):
        raise ConfigError("a property name or value is empty")
    if any(separator in text for separator in b"\x01\x02" for text in (name, value)):
        raise ConfigError("a property name or value holds the separator 0x01 or 0x02")
    return b"%b\x01%b\x02" % (name, value) if value else b""


def _numbers(buffer: Any, form: str, start: int, stop: int) -> tuple[int, ...]:
    size = 4 if form == "i" else 1
    view = _bytes(buffer)
    if len(view) < stop * size:
        raise ConfigError(f"column buffer of {len(view)} bytes is too short for {stop} entries")
    return unpack_from(f"<{stop - start}{form}", view, start * size)


def _bytes(buffer: Any) -> memoryview:
    return memoryview(buffer).cast("B")


def _slices(offsets: Any, data: Any, start: int, stop: int) -> list[bytes]:
    ends = _numbers(offsets, "i", start, stop + 1)
    view = _bytes(data) if data is not None else memoryview(b"")
    if start == stop:
        return []
    if ends[0] < 0 or ends[-1] > len(view) or any(one > two for one, two in pairwise(ends)):
        raise ConfigError("offsets of a column do not fit its data")
    return [bytes(view[one:two]) for one, two in pairwise(ends)]


def _texts(columns: Mapping[str, Column], name: str, start: int, stop: int) -> list[bytes | None]:
    if name not in columns:
        return [None] * (stop - start)
    validity, offsets, data = columns[name]
    values = _slices(offsets, data, start, stop)
    if validity is None:
        return list(values)
    bits = _bytes(validity)
    if len(bits) * 8 < stop:
        raise ConfigError(f"validity of column {name!r} is too short for {stop} rows")
    return [value if bits[row >> 3] >> (row & 7) & 1 else None for row, value in enumerate(values, start)]


def _maps(columns: Mapping[str, Column], start: int, stop: int) -> list[list[tuple[bytes, bytes]]]:
    if "properties" not in columns:
        return [[] for _ in range(start, stop)]
    _, rows, name_offsets, names, value_offsets, values = columns["properties"]
    ends = _numbers(rows, "i", start, stop + 1)
    if start == stop:
        return []
    if ends[0] < 0 or any(one > two for one, two in pairwise(ends)):
        raise ConfigError("offsets of column 'properties' do not rise")
    first, last = ends[0], ends[-1]
    pairs = list(
        zip(_slices(name_offsets, names, first, last), _slices(value_offsets, values, first, last), strict=True)
    )
    return [pairs[one - first : two - first] for one, two in pairwise(ends)]


def _flags(columns: Mapping[str, Column], start: int, stop: int) -> tuple[int, ...]:
    if "flag" not in columns:
        return (0,) * (stop - start)
    return _numbers(columns["flag"][-1], "i", start, stop)

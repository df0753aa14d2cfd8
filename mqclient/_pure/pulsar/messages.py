"""Owns messages: an entry's payload, opened and taken apart by the loop over single-message metadata."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterable, Iterator
from types import GenericAlias
from typing import Any, ClassVar, Protocol, final, overload

from mqclient._pure.pulsar.columns import Column, columns
from mqclient._pure.pulsar.entry import CHECKSUM_MISMATCH, Entry, read_properties
from mqclient._pure.pulsar.message_id import MessageId
from mqclient._pure.pulsar.wire import BYTES, MASK, Buffer, Malformed, fields, int32, signed, to_text, u32
from mqclient.errors import ProtocolError

UNCOMPRESSED_SIZE_CORRUPTION, DECOMPRESSION_ERROR, BATCH_DESERIALIZE_ERROR = 0, 1, 3
MAX_MESSAGE = 5242880
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")


class Decompress(Protocol):
    """See the stub."""

    def __call__(self, kind: int, data: memoryview, limit: int, /) -> bytes: ...


class Single:
    """SingleMessageMetadata, and of a message that is no batch's what its entry says instead."""

    __slots__ = (
        "compacted_out",
        "event_time",
        "key",
        "key_b64",
        "null_key",
        "null_value",
        "ordering_key",
        "payload_size",
        "properties",
        "sequence_id",
    )

    def __init__(self) -> None:
        self.payload_size = -1
        self.compacted_out = self.null_value = self.null_key = False
        self.event_time = 0
        self.sequence_id: int | None = None
        self.key: str | None = None
        self.key_b64: bool | None = None
        self.ordering_key: bytes | None = None
        self.properties: list[Buffer] = []

    @staticmethod
    def of_entry(entry: Entry) -> Single:
        single = Single()
        single.event_time, single.sequence_id = entry.event_time, entry.sequence_id
        single.key, single.key_b64, single.null_key = entry.partition_key, entry.key_b64, entry._null_key
        single.ordering_key, single.null_value = entry.ordering_key, entry.null_value
        single.properties = entry._raw_properties()
        return single

    def read(self, data: Buffer, at: int, end: int) -> None:
        for tag, value, start, stop in fields(data, at, end):
            if tag == 3 << 3:
                self.payload_size = int32(value)
            elif tag == 8 << 3:
                self.sequence_id = value
            elif tag == 1 << 3 | BYTES:
                self.properties.append(data[start:stop])
            elif tag == 2 << 3 | BYTES:
                self.key = to_text(data[start:stop])
            elif tag == 7 << 3 | BYTES:
                self.ordering_key = bytes(data[start:stop])
            elif tag == 5 << 3:
                self.event_time = value
            else:
                self._read_flag(tag, value != 0)

    def _read_flag(self, tag: int, value: bool) -> None:
        if tag == 4 << 3:
            self.compacted_out = value
        elif tag == 6 << 3:
            self.key_b64 = value
        elif tag == 9 << 3:
            self.null_value = value
        elif tag == 10 << 3:
            self.null_key = value


@final
class Message:
    """One message; made by `decode_messages` only."""

    __slots__ = ("_single", "batch_index", "body", "compacted_out", "compression", "encrypted", "entry")

    __ack_id__: ClassVar[Any] = None
    """What only the extension has; see the stub."""
    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)

    entry: Entry
    body: bytes
    batch_index: int
    compacted_out: bool
    compression: int
    encrypted: bool
    _single: Single

    @property
    def message_id(self) -> MessageId:
        entry = self.entry
        size = entry.num_messages if self.batch_index >= 0 else 0
        return MessageId(entry.ledger, entry.entry, entry.partition, self.batch_index, size, entry.first_chunk)

    @property
    def key(self) -> str | None:
        """The partition key as on the wire."""
        return None if self._single.null_key else self._single.key

    partition_key = key

    @property
    def key_bytes(self) -> bytes | None:
        """The key with its base64 undone, if it was given as bytes."""
        key = self.key
        if key is None:
            return None
        flag = self._single.key_b64
        if (self.entry.key_b64 if flag is None else flag) and len(key) % 4 == 0 and _BASE64.fullmatch(key):
            return base64.b64decode(key)
        return key.encode()

    @property
    def ordering_key(self) -> bytes | None:
        return self._single.ordering_key

    @property
    def properties(self) -> dict[str, str]:
        return read_properties(self._single.properties)

    @property
    def published_at(self) -> int:
        return self.entry.published_at

    @property
    def event_time(self) -> int:
        return self._single.event_time

    @property
    def sequence_id(self) -> int:
        own = self._single.sequence_id
        return signed((self.entry.sequence_id + max(self.batch_index, 0)) & MASK) if own is None else own

    @property
    def producer_name(self) -> str:
        return self.entry.producer_name

    @property
    def redeliveries(self) -> int:
        return self.entry.redelivery_count

    @property
    def null_value(self) -> bool:
        return self._single.null_value

    @property
    def schema_version(self) -> bytes | None:
        return self.entry.schema_version

    @property
    def value(self) -> Any:
        """By the consumer's schema; without one the body, or None for a null value."""
        if self.entry.values is not None:
            return self.entry.values(self)
        return None if self.null_value else self.body

    @property
    def index(self) -> int | None:
        """From the broker entry metadata, which holds that of the last message."""
        last = self.entry.broker_index
        if last is None or self.batch_index < 0:
            return last
        return last - self.entry.num_messages + self.batch_index + 1

    @property
    def topic(self) -> str | None:
        return self.entry.topic

    def __repr__(self) -> str:
        return f"<Message {self.entry.ledger}:{self.entry.entry}:{self.batch_index}, {len(self.body)} bytes>"


def _message(entry: Entry, body: bytes, batch_index: int, single: Single) -> Message:
    made = Message()
    made.entry = entry
    made.body = body
    made.batch_index = batch_index
    made._single = single
    made.compacted_out = False
    made.compression = 0
    made.encrypted = False
    return made


@final
class MessageBatch:
    """The messages of one entry that are to be delivered."""

    __slots__ = ("_messages", "compacted", "corrupt", "entry", "lost")

    entry: Entry
    corrupt: int | None
    compacted: int
    lost: int
    _messages: list[Message]

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int, /) -> Message: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Message]: ...
    def __getitem__(self, index: int | slice, /) -> Message | list[Message]:
        return self._messages[index]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    def columns(self, names: Collection[str] | None = None, more: Iterable[MessageBatch] = ()) -> dict[str, Column]:
        """The columns asked for (all: `COLUMNS`) as Arrow buffers, one row a message; then those of `more` batches."""
        messages = list(self._messages)
        for batch in more:
            if type(batch) is not MessageBatch:
                raise TypeError(f"more columns come of MessageBatches, not of {type(batch).__name__}")
            messages += batch
        return columns(messages, names)


def _batch(entry: Entry, corrupt: int | None, messages: list[Message], compacted: int = 0) -> MessageBatch:
    made = MessageBatch()
    made.entry = entry
    made.corrupt = corrupt
    made.compacted = compacted
    made._messages = messages
    made.lost = max(entry.charged - len(messages) - compacted, 0)
    return made


def decode_messages(
    entry: Entry,
    payload: Buffer | None = None,
    /,
    *,
    decompress: Decompress | None = None,
    limit: int = MAX_MESSAGE,
    keep_compacted: bool = False,
) -> MessageBatch:
    """The messages of an entry. Bad bytes never raise: see `MessageBatch.corrupt`."""
    if entry.corrupt is not None:
        return _batch(entry, CHECKSUM_MISMATCH, [])
    data = memoryview(entry.payload if payload is None else payload)
    encrypted = entry.encrypted and payload is None
    if encrypted or (entry.compression and decompress is None):
        return _as_stored(entry, data, encrypted)
    if entry.compression and decompress is not None:
        if entry.uncompressed_size > limit:
            return _batch(entry, UNCOMPRESSED_SIZE_CORRUPTION, [])
        try:
            data = memoryview(decompress(entry.compression, data, entry.uncompressed_size))
        except ProtocolError:
            return _batch(entry, DECOMPRESSION_ERROR, [])
        if len(data) != entry.uncompressed_size:
            return _batch(entry, UNCOMPRESSED_SIZE_CORRUPTION, [])
    if not entry.batched:
        return _unbatched(entry, data)
    try:
        return _batched(entry, data, keep_compacted)
    except Malformed:
        return _batch(entry, BATCH_DESERIALIZE_ERROR, [])


def _as_stored(entry: Entry, data: memoryview, encrypted: bool) -> MessageBatch:
    """One message with the bytes that nobody could open; none if all in them are acknowledged."""
    if entry.charged == 0:
        return _batch(entry, None, [])
    message = _message(entry, bytes(data), -1, Single.of_entry(entry))
    message.compression, message.encrypted = entry.compression, encrypted
    return _batch(entry, None, [message])


def _unbatched(entry: Entry, data: memoryview) -> MessageBatch:
    if entry._acked(0):
        return _batch(entry, None, [])
    return _batch(entry, None, [_message(entry, bytes(data), -1, Single.of_entry(entry))])


def _batched(entry: Entry, view: memoryview, keep_compacted: bool) -> MessageBatch:
    data = bytes(view)  # whose single bytes read twice as fast
    messages: list[Message] = []
    at, end, compacted = 0, len(data), 0
    for index in range(entry.num_messages):
        if end - at < 4:
            raise Malformed(f"message {index} is missing")
        size: int = u32.unpack_from(data, at)[0]
        start = at + 4 + size
        if start > end:
            raise Malformed(f"the metadata of message {index} is cut")
        single = Single()
        single.read(data, at + 4, start)
        at = start + single.payload_size
        if single.payload_size < 0 or at > end:
            raise Malformed(f"the payload of message {index} is missing or cut")
        if entry._acked(index):
            continue
        gone = single.compacted_out or entry._gone(index)
        if gone and not keep_compacted:
            compacted += 1
            continue
        message = _message(entry, data[start:at], index, single)
        message.compacted_out = gone
        messages.append(message)
    return _batch(entry, None, messages, compacted)

"""Owns the entry: checksum, broker entry metadata and message metadata of what SEND and MESSAGE carry."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, final

from mqclient._pure.digest import crc32c
from mqclient._pure.pulsar.message_id import MessageId
from mqclient._pure.pulsar.wire import BYTES, Buffer, Malformed, fields, int32, to_text, u16, u32, words

CHECKSUM_MISMATCH = 2
MAGIC_CHECKSUM = 0x0E01
MAGIC_BROKER_ENTRY = 0x0E02

# number of a field -> attribute and how its value reads; by wire type
_LONGS = {2: "sequence_id", 3: "published_at", 12: "event_time", 19: "deliver_at", 24: "highest_sequence_id"}
_INTS = {8: "compression", 20: "marker_type", 27: "num_chunks", 28: "total_chunk_size", 29: "chunk_id"}
_BOOLS = {17: "key_b64", 25: "null_value", 30: "_null_key"}
_TEXTS = {1: "producer_name", 5: "replicated_from", 6: "partition_key", 26: "uuid"}
_BLOBS = {16: "schema_version", 18: "ordering_key"}


def _pair(source: Buffer) -> tuple[str, str]:
    """KeyValue; nearly always a short key and a short value, in this order."""
    end = len(source)
    if end > 3 and source[0] == 1 << 3 | BYTES and source[1] < min(128, end - 3):
        middle = 2 + source[1]
        if source[middle] == 2 << 3 | BYTES and source[middle + 1] == end - middle - 2 < 128:
            return to_text(source[2:middle]), to_text(source[middle + 2 :])
    key = value = ""
    for tag, _, start, stop in fields(source, 0, end):
        if tag == 1 << 3 | BYTES:
            key = to_text(source[start:stop])
        elif tag == 2 << 3 | BYTES:
            value = to_text(source[start:stop])
    return key, value


def read_pairs(pairs: Iterable[Buffer]) -> list[tuple[str, str]]:
    """KeyValues; none if any of them is malformed."""
    try:
        return list(map(_pair, pairs))
    except Malformed:
        return []


def read_properties(pairs: Iterable[Buffer]) -> dict[str, str]:
    """A dict of KeyValues; of a key that occurs twice the last value."""
    return dict(read_pairs(pairs))


@final
class Entry:
    """One stored entry as it came in SEND or MESSAGE: checked, its metadata read, its payload as sent."""

    __slots__ = (
        "_compacted",
        "_data",
        "_metadata",
        "_null_key",
        "_payload",
        "_permits",
        "_properties",
        "_stored",
        "_txn",
        "ack_set",
        "batch_index",
        "batched",
        "broker_index",
        "broker_timestamp",
        "chunk_id",
        "compression",
        "consumer_epoch",
        "consumer_id",
        "corrupt",
        "deliver_at",
        "encrypted",
        "entry",
        "epoch",
        "event_time",
        "first_chunk",
        "highest_sequence_id",
        "key_b64",
        "ledger",
        "marker_type",
        "null_value",
        "num_chunks",
        "num_messages",
        "ordering_key",
        "partition",
        "partition_key",
        "producer_name",
        "published_at",
        "redelivery_count",
        "replicated_from",
        "schema_version",
        "sequence_id",
        "topic",
        "total_chunk_size",
        "uncompressed_size",
        "uuid",
        "values",
    )

    def __init__(self) -> None:
        self.topic: str | None = None
        self.values: Callable[[Any], Any] | None = None
        self.first_chunk: MessageId | None = None
        self.epoch = 0
        self.consumer_id = self.ledger = self.entry = self.partition = self.batch_index = -1
        self.redelivery_count = 0
        self.ack_set: tuple[int, ...] | None = None
        self.consumer_epoch: int | None = None
        self._permits: int | None = None
        self.broker_timestamp: int | None = None
        self.broker_index: int | None = None
        self.corrupt: int | None = None
        self._data = b""
        self._stored = self._metadata = self._payload = (0, 0)
        self._forget()

    def _forget(self) -> None:
        """The metadata of an entry whose metadata cannot be read."""
        self.num_messages = 1
        self.batched = self.encrypted = self.key_b64 = self.null_value = self._null_key = False
        self.compression = self.uncompressed_size = 0
        self.chunk_id: int | None = None
        self.num_chunks: int | None = None
        self.total_chunk_size: int | None = None
        self.marker_type: int | None = None
        self.deliver_at: int | None = None
        self.uuid: str | None = None
        self.producer_name = ""
        self.sequence_id = self.highest_sequence_id = self.published_at = self.event_time = 0
        self.partition_key: str | None = None
        self.replicated_from: str | None = None
        self.ordering_key: bytes | None = None
        self.schema_version: bytes | None = None
        self._txn: list[int | None] = [None, None]
        self._properties: list[tuple[int, int]] = []
        self._compacted: set[int] = set()

    @staticmethod
    def from_stored(stored: Buffer, /, ledger: int = -1, entry: int = -1, partition: int = -1) -> Entry:
        """An entry from the bytes that a broker keeps (`stored`)."""
        made = read_entry(bytes(stored), True)
        made.ledger, made.entry, made.partition = ledger, entry, partition
        return made

    # ---- reading

    def _take(self, data: bytes, check_crc: bool) -> None:
        self._data = data
        try:
            good = self._read(check_crc)
        except Malformed:
            good = False
            self._forget()
        if not good:
            self.corrupt = CHECKSUM_MISMATCH

    def _read(self, check_crc: bool) -> bool:
        """False if the checksum is wrong; Malformed if there is nothing to read."""
        data, end = self._data, len(self._data)
        at = 0
        if self._magic(at) == MAGIC_BROKER_ENTRY:
            at, stop = self._sized(at + 2)
            self._read_broker(at, stop)
            at = stop
        self._stored = (at, end)
        good = True
        if self._magic(at) == MAGIC_CHECKSUM:
            if end - at < 6:
                raise Malformed("the checksum is cut")
            good = not check_crc or crc32c(memoryview(data)[at + 6 :]) == u32.unpack_from(data, at + 2)[0]
            at += 6
        start, stop = self._sized(at)
        self._metadata, self._payload = (start, stop), (stop, end)
        self._read_metadata(start, stop)
        return good

    def _magic(self, at: int) -> int:
        return u16.unpack_from(self._data, at)[0] if len(self._data) - at >= 2 else 0

    def _sized(self, at: int) -> tuple[int, int]:
        """The span of what follows its own 32-bit size."""
        end = len(self._data)
        if end - at < 4:
            raise Malformed("a size is cut")
        size: int = u32.unpack_from(self._data, at)[0]
        if size > end - at - 4:
            raise Malformed(f"a size of {size} with {end - at - 4} bytes left")
        return at + 4, at + 4 + size

    def _read_broker(self, at: int, end: int) -> None:
        for tag, value, _, _ in fields(self._data, at, end):
            if tag == 1 << 3:
                self.broker_timestamp = value
            elif tag == 2 << 3:
                self.broker_index = value

    def _read_metadata(self, at: int, end: int) -> None:
        for tag, value, start, stop in fields(self._data, at, end):
            kind = tag & 7
            if kind == 0:
                self._take_number(tag >> 3, value)
            elif kind == BYTES:
                self._take_bytes(tag >> 3, start, stop)
        if self.batched and self.num_messages < 1:
            raise Malformed(f"a batch of {self.num_messages}")

    def _take_number(self, field: int, value: int) -> None:
        if field in _LONGS:
            setattr(self, _LONGS[field], value)
        elif field in _INTS:
            setattr(self, _INTS[field], int32(value))
        elif field in _BOOLS:
            setattr(self, _BOOLS[field], value != 0)
        elif field == 9:
            self.uncompressed_size = value & 0xFFFFFFFF
        elif field == 11:
            self.num_messages = int32(value)
            self.batched = True
        elif field in (22, 23):
            self._txn[field - 22] = value
        elif field == 31:
            self._compacted.add(int32(value))

    def _take_bytes(self, field: int, start: int, stop: int) -> None:
        if field in _TEXTS:
            setattr(self, _TEXTS[field], to_text(self._data[start:stop]))
        elif field in _BLOBS:
            setattr(self, _BLOBS[field], self._data[start:stop])
        elif field == 4:
            self._properties.append((start, stop))
        elif field in (13, 14, 15):
            self.encrypted = True
        elif field == 31:
            self._compacted.update(int32(value) for value in words(self._data, start, stop))

    # ---- what is derived

    @property
    def charged(self) -> int:
        """Permits that the broker deducted."""
        if self._permits is not None:
            return self._permits
        if not self.ack_set:
            return self.num_messages
        left = 0
        for place, word in enumerate(self.ack_set):
            bits = min(max(self.num_messages - 64 * place, 0), 64)
            left += (word & ((1 << bits) - 1)).bit_count()
        return left

    def _acked(self, index: int) -> bool:
        """The ack set names this batch index as acknowledged."""
        if not self.ack_set:
            return False
        place, bit = divmod(index, 64)
        return place >= len(self.ack_set) or not self.ack_set[place] >> bit & 1

    def _gone(self, index: int) -> bool:
        """Compaction took this batch index."""
        return bool(self._compacted) and index not in self._compacted

    @property
    def txn(self) -> tuple[int, int] | None:
        """(most, least) bits"""
        least, most = self._txn
        return None if most is None and least is None else (most or 0, least or 0)

    @property
    def properties(self) -> dict[str, str]:
        return read_properties(self._raw_properties())

    def _raw_properties(self) -> list[Buffer]:
        """The KeyValues as sent."""
        return [self._data[start:stop] for start, stop in self._properties]

    @property
    def metadata(self) -> bytes:
        """MessageMetadata as sent."""
        return self._data[slice(*self._metadata)]

    @property
    def payload(self) -> memoryview:
        """Compressed and encrypted as sent."""
        return memoryview(self._data)[slice(*self._payload)]

    @property
    def stored(self) -> bytes:
        """Checksum, metadata and payload: what a broker keeps."""
        return self._data[slice(*self._stored)]

    def __repr__(self) -> str:
        return f"<Entry {self.ledger}:{self.entry} of {self.num_messages} messages>"

    def __reduce__(self) -> Any:
        raise TypeError("an entry cannot be pickled")


def read_entry(data: bytes, check_crc: bool) -> Entry:
    """The entry in these bytes, corrupt if they are."""
    entry = Entry()
    entry._take(data, check_crc)
    return entry

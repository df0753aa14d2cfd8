"""Owns the bytes of hot commands and of message metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mqclient._pure.digest import crc32c
from mqclient._pure.pulsar.commands import ACK, FLOW, MESSAGE, SEND, SEND_RECEIPT
from mqclient._pure.pulsar.wire import Buffer, data, number, text, u32, varint

_CHECKSUM = b"\x0e\x01"
_BROKER_ENTRY = b"\x0e\x02"


def _command(type: int, body: Buffer, behind: int = 0) -> bytes:
    """Sizes and BaseCommand of a frame in which `behind` more bytes follow."""
    base = number(1, type) + data(type, body)
    return u32.pack(4 + len(base) + behind) + u32.pack(len(base)) + base


def _txn(least: int, most: int, txn: tuple[int, int] | None) -> bytes:
    return b"" if txn is None else number(least, txn[1]) + number(most, txn[0])


def encode_command(type: int, body: Buffer = b"", /) -> bytes:
    """The frame of a cold command: its type and the bytes of its sub-message."""
    return _command(type, body)


def encode_send(
    producer_id: int,
    sequence_id: int,
    metadata: Buffer,
    payload: Buffer,
    /,
    *,
    num_messages: int = 0,
    highest_sequence_id: int | None = None,
    is_chunk: bool = False,
    marker: bool = False,
    txn: tuple[int, int] | None = None,
) -> bytes:
    """SEND with its CRC-32C. `num_messages` 0 leaves the field out."""
    body = number(1, producer_id) + number(2, sequence_id)
    if num_messages:
        body += number(3, num_messages)
    body += _txn(4, 5, txn)
    if highest_sequence_id is not None:
        body += number(6, highest_sequence_id)
    if is_chunk:
        body += number(7, 1)
    if marker:
        body += number(8, 1)
    covered = b"".join((u32.pack(len(metadata)), metadata, payload))
    return b"".join((_command(SEND, body, 6 + len(covered)), _CHECKSUM, u32.pack(crc32c(covered)), covered))


def encode_message(
    consumer_id: int,
    ledger: int,
    entry: int,
    stored: Buffer,
    /,
    *,
    partition: int | None = None,
    redelivery_count: int = 0,
    ack_set: Sequence[int] | None = None,
    consumer_epoch: int | None = None,
    broker_timestamp: int | None = None,
    broker_index: int | None = None,
    head_only: bool = False,
) -> bytes:
    """MESSAGE around `stored` as it is; broker entry metadata in front if one of its two fields is given."""
    place = number(1, ledger) + number(2, entry)
    if partition is not None:
        place += number(3, partition)
    body = number(1, consumer_id) + data(2, place)
    if redelivery_count:
        body += number(3, redelivery_count)
    for word in ack_set or ():
        body += number(4, word)
    if consumer_epoch is not None:
        body += number(5, consumer_epoch)
    front = b""
    if broker_timestamp is not None or broker_index is not None:
        if broker_timestamp is not None:
            front = number(1, broker_timestamp)
        if broker_index is not None:
            front += number(2, broker_index)
        front = _BROKER_ENTRY + u32.pack(len(front)) + front
    head = _command(MESSAGE, body, len(front) + len(stored)) + front
    return head if head_only else b"".join((head, stored))


def encode_receipt(
    producer_id: int, sequence_id: int, ledger: int, entry: int, /, highest_sequence_id: int = -1
) -> bytes:
    """SEND_RECEIPT"""
    place = number(1, ledger) + number(2, entry)
    body = number(1, producer_id) + number(2, sequence_id) + data(3, place) + number(4, highest_sequence_id)
    return _command(SEND_RECEIPT, body)


def _ack_id(ledger: int, entry: int, ack_set: Sequence[int] | None = None, batch_size: int = 0) -> bytes:
    out = number(1, ledger) + number(2, entry)
    for word in ack_set or ():
        out += number(5, word)
    if batch_size:
        out += number(6, batch_size)
    return data(3, out)


def encode_ack(
    consumer_id: int,
    ids: Sequence[tuple[Any, ...]],
    /,
    *,
    cumulative: bool = False,
    validation_error: int | None = None,
    txn: tuple[int, int] | None = None,
    request_id: int | None = None,
) -> bytes:
    """ACK. An id is `(ledger, entry)`, `(ledger, entry, ack_set)` or `(ledger, entry, ack_set, batch_size)`."""
    parts = [number(1, consumer_id), number(2, cumulative), *(_ack_id(*place) for place in ids)]
    if validation_error is not None:
        parts.append(number(4, validation_error))
    parts.append(_txn(6, 7, txn))
    if request_id is not None:
        parts.append(number(8, request_id))
    return _command(ACK, b"".join(parts))


def encode_flow(consumer_id: int, permits: int, /) -> bytes:
    """FLOW"""
    return _command(FLOW, number(1, consumer_id) + number(2, permits))


def encode_metadata(
    producer_name: str,
    sequence_id: int,
    published_at: int,
    /,
    *,
    properties: Mapping[str, str] | None = None,
    replicated_from: str | None = None,
    partition_key: str | None = None,
    replicate_to: Sequence[str] = (),
    compression: int = 0,
    uncompressed_size: int | None = None,
    num_messages: int = 0,
    event_time: int = 0,
    encryption_keys: Sequence[bytes] = (),
    encryption_algo: str | None = None,
    encryption_param: bytes | None = None,
    schema_version: bytes | None = None,
    key_b64: bool | None = None,
    ordering_key: bytes | None = None,
    deliver_at: int | None = None,
    txn: tuple[int, int] | None = None,
    highest_sequence_id: int | None = None,
    null_value: bool = False,
    uuid: str | None = None,
    num_chunks: int | None = None,
    total_chunk_size: int | None = None,
    chunk_id: int | None = None,
    null_key: bool = False,
) -> bytes:
    """MessageMetadata. `num_messages` 0 leaves the field out: not batch-framed."""
    pairs = properties.items() if properties else ()
    written = [
        text(1, producer_name),
        number(2, sequence_id),
        number(3, published_at),
        *(data(4, text(1, name) + text(2, value)) for name, value in pairs),
        _text(5, replicated_from),
        _text(6, partition_key),
        *(text(7, cluster) for cluster in replicate_to),
        _number(8, compression or None),
        _number(9, uncompressed_size),
        _number(11, num_messages or None),
        _number(12, event_time or None),
        *(data(13, key) for key in encryption_keys),
        _text(14, encryption_algo),
        _data(15, encryption_param),
        _data(16, schema_version),
        _number(17, key_b64),
        _data(18, ordering_key),
        _number(19, deliver_at),
        _txn(22, 23, txn),
        _number(24, highest_sequence_id),
        _number(25, null_value or None),
        _text(26, uuid),
        _number(27, num_chunks),
        _number(28, total_chunk_size),
        _number(29, chunk_id),
        _number(30, null_key or None),
    ]
    return b"".join(written)


def _number(field: int, value: int | None) -> bytes:
    return b"" if value is None else varint(field << 3) + varint(value)


def _text(field: int, value: str | None) -> bytes:
    return b"" if value is None else text(field, value)


def _data(field: int, value: Buffer | None) -> bytes:
    return b"" if value is None else data(field, value)


PING_FRAME = _command(18, b"")
PONG_FRAME = _command(19, b"")

"""Owns the decoding of hot commands: from the bytes of a frame to its event."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mqclient._pure.pulsar.entry import read_entry
from mqclient._pure.pulsar.wire import BYTES, Malformed, fields, int32, words

SEND, SEND_RECEIPT, MESSAGE, ACK, FLOW, PING, PONG = 6, 7, 9, 10, 11, 18, 19

Event = tuple[Any, ...]


def _numbers(data: bytes, at: int, end: int, names: dict[int, str]) -> dict[str, int]:
    """The last value of each varint field that has a name."""
    return {names[tag >> 3]: value for tag, value, _, _ in fields(data, at, end) if not tag & 7 and tag >> 3 in names}


def _needed(found: dict[str, Any], command: str, *names: str) -> None:
    for name in names:
        if name not in found:
            raise Malformed(f"{command} without {name}")


def _txn(found: dict[str, int]) -> tuple[int, int] | None:
    if "txn_most" not in found and "txn_least" not in found:
        return None
    return found.get("txn_most", 0), found.get("txn_least", 0)


class _Id:
    """MessageIdData, its first chunk left out."""

    __slots__ = ("ack_set", "batch_index", "batch_size", "entry", "ledger", "partition")

    def __init__(self) -> None:
        self.ledger = self.entry = self.partition = self.batch_index = -1
        self.batch_size = 0
        self.ack_set: list[int] = []

    def read(self, data: bytes, at: int, end: int) -> None:
        for tag, value, start, stop in fields(data, at, end):
            if tag == 1 << 3:
                self.ledger = value
            elif tag == 2 << 3:
                self.entry = value
            elif tag == 3 << 3:
                self.partition = int32(value)
            elif tag == 4 << 3:
                self.batch_index = int32(value)
            elif tag == 5 << 3:
                self.ack_set.append(value)
            elif tag == 5 << 3 | BYTES:
                self.ack_set.extend(words(data, start, stop))
            elif tag == 6 << 3:
                self.batch_size = int32(value)

    def plain(self) -> tuple[Any, ...]:
        words = tuple(self.ack_set) or None
        return self.ledger, self.entry, self.partition, self.batch_index, words, self.batch_size


_SEND_FIELDS = {
    1: "producer_id",
    2: "sequence_id",
    3: "num_messages",
    4: "txn_least",
    5: "txn_most",
    6: "highest",
    7: "is_chunk",
    8: "marker",
}


def _send(data: bytes, at: int, end: int, rest: bytes, check_crc: bool) -> Event:
    found = _numbers(data, at, end, _SEND_FIELDS)
    _needed(found, "SEND", "producer_id", "sequence_id")
    return (
        SEND,
        found["producer_id"],
        found["sequence_id"],
        int32(found.get("num_messages", 1)),
        found.get("highest", 0),
        found.get("is_chunk", 0) != 0,
        found.get("marker", 0) != 0,
        _txn(found),
        read_entry(rest, check_crc),
    )


def _message(data: bytes, at: int, end: int, rest: bytes, check_crc: bool) -> Event:
    found: dict[str, Any] = {}
    place = _Id()
    ack_set: list[int] = []
    for tag, value, start, stop in fields(data, at, end):
        if tag == 1 << 3:
            found["consumer_id"] = value
        elif tag == 2 << 3 | BYTES:
            found["message_id"] = place
            place.read(data, start, stop)
        elif tag == 3 << 3:
            found["redelivery_count"] = value & 0xFFFFFFFF
        elif tag == 4 << 3:
            ack_set.append(value)
        elif tag == 4 << 3 | BYTES:
            ack_set.extend(words(data, start, stop))
        elif tag == 5 << 3:
            found["consumer_epoch"] = value
        elif tag == 6 << 3:
            found["permits"] = value & 0xFFFFFFFF
    _needed(found, "MESSAGE", "consumer_id", "message_id")
    entry = read_entry(rest, check_crc)
    entry.consumer_id = found["consumer_id"]
    entry.ledger, entry.entry, entry.partition = place.ledger, place.entry, place.partition
    entry.batch_index = place.batch_index
    entry.redelivery_count = found.get("redelivery_count", 0)
    entry.ack_set = tuple(ack_set) or None
    entry.consumer_epoch = found.get("consumer_epoch")
    entry._permits = found.get("permits")
    return MESSAGE, entry


def _receipt(data: bytes, at: int, end: int, rest: bytes, check_crc: bool) -> Event:
    found: dict[str, Any] = {}
    place = _Id()
    for tag, value, start, stop in fields(data, at, end):
        if tag == 1 << 3:
            found["producer_id"] = value
        elif tag == 2 << 3:
            found["sequence_id"] = value
        elif tag == 3 << 3 | BYTES:
            place.read(data, start, stop)
        elif tag == 4 << 3:
            found["highest"] = value
    _needed(found, "SEND_RECEIPT", "producer_id", "sequence_id")
    highest = found.get("highest", -1)
    return SEND_RECEIPT, found["producer_id"], found["sequence_id"], place.ledger, place.entry, highest


_ACK_FIELDS = {1: "consumer_id", 2: "ack_type", 4: "validation_error", 6: "txn_least", 7: "txn_most", 8: "request_id"}


def _ack(data: bytes, at: int, end: int, rest: bytes, check_crc: bool) -> Event:
    found = _numbers(data, at, end, _ACK_FIELDS)
    _needed(found, "ACK", "consumer_id", "ack_type")
    ids = []
    for tag, _, start, stop in fields(data, at, end):
        if tag == 3 << 3 | BYTES:
            place = _Id()
            place.read(data, start, stop)
            ids.append(place.plain())
    wrong = found.get("validation_error")
    return (
        ACK,
        found["consumer_id"],
        int32(found["ack_type"]),
        ids,
        None if wrong is None else int32(wrong),
        _txn(found),
        found.get("request_id"),
    )


def _flow(data: bytes, at: int, end: int, rest: bytes, check_crc: bool) -> Event:
    found = _numbers(data, at, end, {1: "consumer_id", 2: "permits"})
    _needed(found, "FLOW", "consumer_id", "permits")
    return FLOW, found["consumer_id"], found["permits"] & 0xFFFFFFFF


_HOT: dict[int, Callable[[bytes, int, int, bytes, bool], Event]] = {
    SEND: _send,
    SEND_RECEIPT: _receipt,
    MESSAGE: _message,
    ACK: _ack,
    FLOW: _flow,
}


def read_command(command: bytes, rest: bytes, check_crc: bool) -> Event:
    """The event of a BaseCommand and of the bytes behind it in its frame. Malformed if it is none."""
    type = start = stop = 0
    for tag, value, _, _ in fields(command, 0, len(command)):
        if tag == 1 << 3:
            type = int32(value)
    if type < 2:
        raise Malformed(f"no command has the type {type}")
    for tag, _, first, last in fields(command, 0, len(command)):
        if tag == type << 3 | BYTES:
            start, stop = first, last
    if type in (PING, PONG):
        return (type,)
    if type in _HOT:
        return _HOT[type](command, start, stop, rest, check_crc)
    return type, command[start:stop]

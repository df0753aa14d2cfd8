"""Frames of a data folder: logs and tables come out of them."""

from __future__ import annotations

import json
import struct
from array import array

import pytest

from mqclient._impl import select
from mqclient.broker.data import BLOCK, CHANGES, ENTRY, RECORDS
from mqclient.broker.data_reading import Reading, tupled
from mqclient.broker.store import Log
from mqclient.errors import ConfigError


@pytest.fixture
def reading() -> Reading:
    return Reading(select("pure").digest)


def entry(kind: int, content: bytes) -> bytes:
    return ENTRY.pack(kind, len(content)) + content


def changes(*rows: list[object]) -> bytes:
    return entry(CHANGES, json.dumps(rows).encode())


def block(number: int, first: int, *records: bytes) -> bytes:
    count = len(records)
    ends = array("I", [sum(map(len, records[: place + 1])) for place in range(count)])
    columns = struct.pack(f"={count}q{count}i", *range(1000, 1000 + count), *range(count)) + ends.tobytes()
    return entry(RECORDS, BLOCK.pack(number, count, first) + columns + b"".join(records))


def records(log: Log) -> list[bytes]:
    return [bytes(log.record(number)) for number in range(log.first, log.next)]


def test_records_go_into_their_logs(reading: Reading) -> None:
    held: dict[int, int] = {}
    reading.take([block(1, 5, b"a", b"b"), block(7, 0, b"x")], held)
    reading.take([block(1, 7, b"c")], held)
    assert held == {1: 7, 7: 0}
    assert reading.highest() == 7
    log = reading.log(1, 6)
    assert (log.first, records(log), log.time(6), log.mark(6)) == (6, [b"b", b"c"], 1001, 1)


def test_tables_have_their_last_values(reading: Reading) -> None:
    first = changes(["o", "t", "a", 1], ["o", "t", ["b", 2], {"x": []}], ["o", "u", 3, 4])
    reading.take([first, changes(["o", "t", "a", None], ["o", "t", "gone", None])], {})
    assert reading.table("o", "u") == {3: 4}
    assert reading.table("o", "u") == {}
    assert reading.tables == {("o", "t"): {("b", 2): {"x": []}}}
    assert [tupled(["a", 1]), tupled("a")] == [("a", 1), "a"]


def test_a_log_without_records_begins_where_it_is_wanted(reading: Reading) -> None:
    log = reading.log(3, 40)
    assert (log.first, log.next, reading.highest()) == (40, 40, 3)


def test_only_who_wants_records_that_are_missing_is_refused(reading: Reading) -> None:
    reading.take([block(1, 0, b"a"), block(1, 4, b"e", b"f")], {})
    with pytest.raises(ConfigError, match="misses the records 1 to 3 of log 1: put back its files"):
        reading.log(1, 3)
    assert records(reading.log(1, 4)) == [b"e", b"f"]
    assert records(reading.log(1, 5)) == [b"f"]


def test_frames_of_another_version_are_refused(reading: Reading) -> None:
    with pytest.raises(ConfigError, match="another version of mqclient: an entry that is not whole"):
        reading.take([b"\x02"], {})

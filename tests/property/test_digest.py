"""Native and pure digests agree on any bytes and text, and checksums can be cut anywhere."""

from __future__ import annotations

import binascii
import os
import struct
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if os.environ.get("MQCLIENT_IMPL") == "pure":
    pytest.skip("compares native with pure", allow_module_level=True)

from mqclient._native import digest as native
from mqclient._pure import digest as pure
from tests.property.twins import compared, damaged, flips

numbers = st.integers(0, 0xFFFFFFFF)
PATIENT = settings(deadline=None)  # machines under load, sanitizers
long_bytes = st.builds(lambda seed, times, tail: seed * times + tail, st.binary(), st.integers(0, 60), st.binary())
bytes_of_any_length = st.binary() | long_bytes
any_text = st.text(st.characters(codec=None, exclude_categories=()))


@PATIENT
@given(bytes_of_any_length, numbers)
def test_checksums_and_hashes_agree(data: bytes, start: int) -> None:
    assert native.crc32(data, start) == pure.crc32(data, start) == binascii.crc32(data, start)
    assert native.crc32c(data, start) == pure.crc32c(data, start)
    assert native.murmur3_32(data, start) == pure.murmur3_32(data, start)
    assert native.boost_hash(data) == pure.boost_hash(data)


@PATIENT
@given(any_text)
def test_java_hashes_agree(text: str) -> None:
    assert native.java_string_hash(text) == pure.java_string_hash(text)


@PATIENT
@given(bytes_of_any_length, st.integers(0, 4000))
def test_a_checksum_can_be_cut_anywhere(data: bytes, cut: int) -> None:
    for digest in (native, pure):
        assert digest.crc32(data[cut:], digest.crc32(data[:cut])) == digest.crc32(data)
        assert digest.crc32c(data[cut:], digest.crc32c(data[:cut])) == digest.crc32c(data)


@PATIENT
@given(bytes_of_any_length, st.integers(0, 7))
def test_where_the_bytes_lie_does_not_matter(data: bytes, offset: int) -> None:
    moved = memoryview(bytes(offset) + data)[offset:]
    for function in (native.crc32, native.crc32c, native.murmur3_32, native.boost_hash):
        assert function(moved) == function(data)


@PATIENT
@given(st.binary(min_size=1, max_size=600), st.integers(0), st.integers(0, 7))
def test_every_bit_counts(data: bytes, place: int, bit: int) -> None:
    flipped = bytearray(data)
    flipped[place % len(data)] ^= 1 << bit
    for digest in (native, pure):
        assert digest.crc32(flipped) != digest.crc32(data)
        assert digest.crc32c(flipped) != digest.crc32c(data)


FRAME = struct.Struct("<4sII")
payloads_of = st.lists(st.binary(max_size=80), max_size=6)


def both(name: str, *arguments: Any) -> Any:
    return compared((native, pure), lambda twin: getattr(twin, name)(*arguments), (ValueError, TypeError))


@PATIENT
@given(payloads_of, flips, st.binary(max_size=20))
def test_frames_are_cut_apart_alike(payloads: list[bytes], places: list[tuple[int, int]], tail: bytes) -> None:
    content = b"".join(FRAME.pack(b"mqfr", len(one), pure.crc32c(one)) + one for one in payloads)
    assert both("split_frames", content + b"mqf", b"mqfr") == (payloads, len(content))
    found, end = both("split_frames", damaged(content, places) + tail, b"mqfr")
    assert end == sum(FRAME.size + len(one) for one in found)


@PATIENT
@given(st.lists(st.binary(max_size=20), min_size=1, max_size=3))
def test_frames_cut_at_every_byte_are_those_before(payloads: list[bytes]) -> None:
    content = b"".join(FRAME.pack(b"mqfr", len(one), pure.crc32c(one)) + one for one in payloads)
    for cut in range(len(content)):
        found, end = both("split_frames", content[:cut], b"mqfr")
        assert found == payloads[: len(found)]
        assert end <= cut


def entry(kind: int, content: bytes) -> bytes:
    return struct.pack("<BxxxI", kind, len(content)) + content


def block(number: int, first: int, records: list[bytes]) -> bytes:
    """Records with a time that tells their place, and a mark that tells their size."""
    ends = [sum(map(len, records[: place + 1])) for place in range(len(records))]
    times, marks = range(first, first + len(records)), map(len, records)
    count = len(records)
    head = struct.pack("<IIQ", number, count, first)
    return entry(2, head + struct.pack(f"={count}q{count}i{count}I", *times, *marks, *ends) + b"".join(records))


runs_of = st.lists(
    st.tuples(st.sampled_from([0, 1, 2, 256, 258]), st.booleans(), st.lists(st.binary(max_size=9), max_size=4)),
    max_size=30,
)


@PATIENT
@given(runs_of, st.lists(st.binary(max_size=5), max_size=3), st.integers(1, 5))
def test_records_are_gathered_in_runs(
    blocks: list[tuple[int, bool, list[bytes]]], changes: list[bytes], each: int
) -> None:
    """Blocks of some logs by turns; where one does not go on with the number that is due, a new run begins."""
    entries, following = [], dict[int, int]()
    expected: list[tuple[int, int, list[bytes]]] = []
    for number, gap, records in blocks:
        first = following.get(number, 0) + 3 * gap
        if number not in following or gap:
            expected.append((number, first, []))
        next(run for run in reversed(expected) if run[0] == number)[2].extend(records)
        following[number] = first + len(records)
        entries.append(block(number, first, records))
    entries += [entry(1, one) for one in changes] + [entry(9, b"of another version")]
    payloads = [b"".join(entries[at : at + each]) for at in range(0, len(entries), each)]
    told, runs = both("take_records", payloads)
    assert told == changes
    assert [(number, first) for number, first, *_ in runs] == [(number, first) for number, first, _ in expected]
    for (_, first, records, ends, marks, times), (_, _, whole) in zip(runs, expected, strict=True):
        starts = [0, *memoryview(ends).cast("I")]
        assert [records[start:end] for start, end in pairwise(starts)] == whole
        assert memoryview(times).cast("q").tolist() == list(range(first, first + len(whole)))
        assert memoryview(marks).cast("i").tolist() == list(map(len, whole))


@PATIENT
@given(runs_of, flips, st.integers(0))
def test_damaged_records_are_refused_alike(
    blocks: list[tuple[int, bool, list[bytes]]], places: list[tuple[int, int]], cut: int
) -> None:
    content = b"".join(block(number, 7 * gap, records) for number, gap, records in blocks)
    both("take_records", [damaged(content, places)])
    both("take_records", [content[: cut % (len(content) + 1)], content])
    both("take_records", [content, None])

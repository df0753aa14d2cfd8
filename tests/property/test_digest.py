"""Native and pure digests agree on any bytes and text, and checksums can be cut anywhere."""

from __future__ import annotations

import binascii
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if os.environ.get("MQCLIENT_IMPL") == "pure":
    pytest.skip("compares native with pure", allow_module_level=True)

from mqclient._native import digest as native
from mqclient._pure import digest as pure

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

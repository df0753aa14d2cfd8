"""Checksums and key hashes against published check values and the bytes of other clients."""

from __future__ import annotations

import binascii
import json
import shutil
import struct
import subprocess
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mqclient._impl import Impl

RECORDED = json.loads((Path(__file__).parents[1] / "vectors" / "digest.json").read_text())

# text, Java hash & 0x7fffffff, murmur3 raw, murmur3 & 0x7fffffff: the table of the Pulsar protocol sheet, part 10.1
KEYS = [
    ("", 0, 0x00000000, 0),
    ("a", 97, 0x3C2569B2, 1009084850),
    ("key1", 3288498, 0x9B970125, 462881061),
    ("key2", 3288499, 0x737139B4, 1936800180),
    ("hello", 99162322, 0x248BFA47, 613153351),
    ("my-key", 1086286526, 0x6DF0B931, 1844492593),
    ("key-10", 1012760653, 0x21E171EC, 568422892),
    ("ключ", 33309882, 0x9A592042, 442048578),
    ("the quick brown fox", 1302335171, 0x1EFC4BF4, 519850996),
    ("\U0001f600", 1772899, 0xBEB42EFA, 1051995898),
]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("crc32", b"", 0),
        ("crc32", b"123456789", 0xCBF43926),
        ("crc32", b"The quick brown fox jumps over the lazy dog", 0x414FA339),
        ("crc32c", b"", 0),
        ("crc32c", b"123456789", 0xE3069283),
        ("crc32c", b"The quick brown fox jumps over the lazy dog", 0x22620404),
        ("crc32c", bytes(32), 0x8A9136AA),  # this and the next three: RFC 3720, appendix B.4
        ("crc32c", b"\xff" * 32, 0x62A8AB43),
        ("crc32c", bytes(range(32)), 0x46DD794E),
        ("crc32c", bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_check_values(codec: Impl, name: str, data: bytes, expected: int) -> None:
    assert getattr(codec.digest, name)(data) == expected


def test_crc32c_of_a_pulsar_entry(codec: Impl) -> None:
    metadata = bytes.fromhex("0a017010001880d095ffbc31")
    assert codec.digest.crc32c(len(metadata).to_bytes(4, "big") + metadata + b"hello") == 0xCF85822F


@pytest.mark.parametrize("size", [*range(70), 127, 128, 129, 255, 256, 257, 511, 512, 1000, 1024, 4099, 70001])
def test_crc32_is_zlibs_for_every_way_that_the_length_chooses(codec: Impl, size: int) -> None:
    data = bytes(place * 37 + (place >> 3) & 0xFF for place in range(size))
    assert codec.digest.crc32(data) == binascii.crc32(data)
    assert codec.digest.crc32(data, 0xDEADBEEF) == binascii.crc32(data, 0xDEADBEEF)


def bit_by_bit(data: bytes) -> int:
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


@pytest.mark.parametrize("size", [*range(70), 127, 128, 129, 255, 256, 257, 511, 512, 1000, 1024, 4099])
def test_crc32c_is_the_definition_for_every_way_that_the_length_chooses(codec: Impl, size: int) -> None:
    data = bytes(place * 41 + (place >> 4) & 0xFF for place in range(size))
    assert codec.digest.crc32c(data) == bit_by_bit(data)


@pytest.mark.parametrize("name", ["crc32", "crc32c"])
def test_a_checksum_goes_on_where_it_stopped(codec: Impl, name: str) -> None:
    digest: Callable[..., int] = getattr(codec.digest, name)
    data = bytes(range(256)) * 5
    for cut in (0, 1, 7, 8, 63, 64, 255, 300, 1024, len(data)):
        assert digest(data[cut:], digest(data[:cut])) == digest(data)


@pytest.mark.parametrize(("text", "java", "murmur", "routed"), KEYS)
def test_the_keys_of_the_protocol_sheet(codec: Impl, text: str, java: int, murmur: int, routed: int) -> None:
    assert codec.digest.java_string_hash(text) & 0x7FFFFFFF == java
    assert codec.digest.murmur3_32(text.encode()) == murmur
    assert murmur & 0x7FFFFFFF == routed


@pytest.mark.parametrize("key", RECORDED["keys"], ids=lambda key: key["hex"][:16] or "empty")
def test_the_hashes_of_the_official_cpp_client(codec: Impl, key: dict[str, Any]) -> None:
    data = bytes.fromhex(key["hex"])
    assert codec.digest.boost_hash(data) == key["boost"]
    assert codec.digest.murmur3_32(data) & 0x7FFFFFFF == key["murmur3"]
    if data.isascii():
        assert codec.digest.java_string_hash(data.decode()) & 0x7FFFFFFF == key["java_cpp"]


def test_murmur_with_a_seed(codec: Impl) -> None:
    assert codec.digest.murmur3_32(b"", 1) == 0x514E28B7
    assert codec.digest.murmur3_32(b"", 0xFFFFFFFF) == 0x81F16F39
    assert codec.digest.murmur3_32(b"Hello, world!", 0x9747B28C) == 0x24884CBA


@pytest.mark.parametrize(
    ("text", "expected"),
    [("\x80", 128), ("\xff\xff", 8160), ("\ud800", 55296), ("a\udfff", 97 * 31 + 0xDFFF), ("\uffff" * 3, 65076255)],
)
def test_java_hash_counts_code_units_of_every_width(codec: Impl, text: str, expected: int) -> None:
    assert codec.digest.java_string_hash(text) == expected


def test_java_hash_is_signed(codec: Impl) -> None:
    assert codec.digest.java_string_hash("polygenelubricants") == -(1 << 31)


@pytest.mark.parametrize("name", ["crc32", "crc32c", "murmur3_32", "boost_hash"])
class TestBytesLike:
    def test_every_buffer_in_one_piece(self, codec: Impl, name: str) -> None:
        digest: Callable[..., int] = getattr(codec.digest, name)
        data = bytes(range(64))
        for other in (bytearray(data), memoryview(data), memoryview(b"x" + data)[1:], array("I", data)):
            assert digest(other) == digest(data)

    def test_text_and_scattered_bytes_are_refused(self, codec: Impl, name: str) -> None:
        digest: Callable[..., int] = getattr(codec.digest, name)
        with pytest.raises(TypeError):
            digest("text")
        with pytest.raises(BufferError):
            digest(memoryview(bytes(64))[::2])


def test_java_hash_wants_text(codec: Impl) -> None:
    with pytest.raises(TypeError):
        codec.digest.java_string_hash(b"bytes")


@pytest.mark.parametrize("name", ["crc32", "crc32c", "murmur3_32"])
def test_where_to_start_is_a_number_of_32_bits(codec: Impl, name: str) -> None:
    digest: Callable[..., int] = getattr(codec.digest, name)
    assert digest(b"x", 1 << 32 | 5) == digest(b"x", 5)
    assert digest(b"x", -1) == digest(b"x", 0xFFFFFFFF)
    with pytest.raises(TypeError):
        digest(b"x", "0")


def test_every_way_of_this_processor_agrees_with_the_portable_one(tmp_path: Path) -> None:
    """The extension chooses one way when it loads; this tries the others too."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = Path(__file__).with_name("digest_ways.c")
    headers = Path(__file__).parents[2] / "_native" / "common"
    strict = ["-O2", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *strict, f"-I{headers}", "-o", tmp_path / "ways", source], check=True)
    done = subprocess.run([tmp_path / "ways"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.split()[:3] == ["crc32", "crc32c", "md5"]


def framed(codec: Impl, *payloads: bytes) -> bytes:
    heads = [struct.pack("<4sII", b"mqfr", len(one), codec.digest.crc32c(one)) for one in payloads]
    return b"".join(head + one for head, one in zip(heads, payloads, strict=True))


def test_frames_are_cut_apart_up_to_the_first_that_is_not_whole(codec: Impl) -> None:
    content = framed(codec, b"one", b"", b"three")
    assert codec.digest.split_frames(content, b"mqfr") == ([b"one", b"", b"three"], len(content))
    assert codec.digest.split_frames(content[:-1], b"mqfr") == ([b"one", b""], len(content) - 17)
    assert codec.digest.split_frames(content, b"MQFR") == ([], 0)
    flipped = content.replace(b"three", b"thref")
    assert codec.digest.split_frames(flipped, b"mqfr") == ([b"one", b""], len(content) - 17)
    with pytest.raises(ValueError, match="a mark of 3 bytes"):
        codec.digest.split_frames(content, b"mqf")


def block(number: int, first: int, *records: bytes) -> bytes:
    count = len(records)
    ends = [sum(map(len, records[: place + 1])) for place in range(count)]
    columns = struct.pack(f"={count}q{count}i{count}I", *[1000 + first] * count, *[-first] * count, *ends)
    content = struct.pack("<IIQ", number, count, first) + columns + b"".join(records)
    return struct.pack("<BxxxI", 2, len(content)) + content


def test_records_of_a_log_in_a_row_are_one_run(codec: Impl) -> None:
    changes = struct.pack("<BxxxI", 1, 2) + b"[]"
    payloads = [block(1, 5, b"a", b"bc"), changes + block(2, 0, b"other"), block(1, 7, b"def") + block(1, 9)]
    told, runs = codec.digest.take_records(payloads)
    assert told == [b"[]"]
    number, first, records, ends, marks, times = runs[0]
    assert (number, first, records) == (1, 5, b"abcdef")
    assert array("I", ends).tolist() == [1, 3, 6]
    assert array("i", marks).tolist() == [-5, -5, -7]
    assert array("q", times).tolist() == [1005, 1005, 1007]
    assert [run[:3] for run in runs[1:]] == [(2, 0, b"other"), (1, 9, b"")]


@pytest.mark.parametrize(
    "payload",
    [
        b"\x01\0\0",
        block(1, 0, b"a")[:-1],
        struct.pack("<BxxxI", 2, 3) + b"abc",
        struct.pack("<BxxxIIIQ", 2, 16, 1, 1, 0),
        block(1, 0, b"a").replace(b"\x01\0\0\0a", b"\x02\0\0\0a"),
        block(1, 0, b"a", b"b").replace(b"\x01\0\0\0\x02\0\0\0ab", b"\x03\0\0\0\x02\0\0\0ab"),
    ],
)
def test_entries_that_do_not_fit_are_refused(codec: Impl, payload: bytes) -> None:
    with pytest.raises(ValueError, match=r"whole|head|fit|fill"):
        codec.digest.take_records([payload])


def test_payloads_are_bytes(codec: Impl) -> None:
    with pytest.raises(TypeError):
        codec.digest.take_records([None])

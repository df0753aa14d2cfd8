"""Checksums, key hashes and files of checked frames in plain Python: the twin of `_native/digest`."""

from __future__ import annotations

import struct
import zlib
from array import array
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["boost_hash", "crc32", "crc32c", "java_string_hash", "murmur3_32", "split_frames", "take_records"]

MASK_32 = 0xFFFFFFFF
MASK_64 = 0xFFFFFFFFFFFFFFFF
CASTAGNOLI = 0x82F63B78
SHORTEST_FOLD = 32
"""Bytes that one fold takes away at least; below, the loop is as fast."""


def crc32(data: Buffer, value: int = 0, /) -> int:
    return zlib.crc32(data, value & MASK_32)


def crc32c(data: Buffer, value: int = 0, /) -> int:
    return _register(_bytes(data), (value & MASK_32) ^ MASK_32) ^ MASK_32


def _bytes(data: Buffer) -> bytes:
    """A copy that later changes cannot reach; BufferError where the bytes are not in one piece, as in native."""
    if isinstance(data, bytes):
        return data
    view = memoryview(data)
    if not view.c_contiguous:
        raise BufferError("the bytes must be in one piece")
    return view.tobytes()


def _register(data: bytes, register: int) -> int:
    """The raw CRC-32C register after `data`."""
    if len(data) >= 2 * SHORTEST_FOLD + 3:
        data, register = _folded(data, register), 0
    table = _TABLE
    for byte in data:
        register = table[(register ^ byte) & 0xFF] ^ register >> 8
    return register


def _folded(data: bytes, register: int) -> bytes:
    """A short message that leads from register 0 to where `data` leads from `register`.

    A byte may be replaced by four bytes `distance` further on (its register after so many zeros), and the bytes of a
    whole block at once by `bytes.translate`: one table per byte of the register.
    """
    left = len(data)
    number = int.from_bytes(data, "little") ^ register
    distance = 1 << ((left - 3) // 2).bit_length() - 1
    while distance >= SHORTEST_FOLD:
        while left >= 2 * distance + 3:
            block = (number & (1 << 8 * distance) - 1).to_bytes(distance, "little")
            number >>= 8 * distance
            left -= distance
            for place, table in enumerate(_advance(distance)):
                number ^= int.from_bytes(block.translate(table), "little") << 8 * place
        distance >>= 1
    return number.to_bytes(left, "little")


@lru_cache(maxsize=32)
def _advance(distance: int) -> tuple[bytes, ...]:
    """Four tables: byte k of the register that a byte leaves `distance` bytes later; linear, so eight bits tell all."""
    zeros = bytes(distance - 1)
    bits = [_register(bytes([1 << bit]) + zeros, 0) for bit in range(8)]
    registers = [0] * 256
    for byte in range(1, 256):
        registers[byte] = registers[byte & byte - 1] ^ bits[(byte & -byte).bit_length() - 1]
    return tuple(bytes(register >> 8 * place & 0xFF for register in registers) for place in range(4))


def _byte_table(polynomial: int) -> list[int]:
    table = []
    for register in range(256):
        for _ in range(8):
            register = register >> 1 ^ (polynomial if register & 1 else 0)
        table.append(register)
    return table


_TABLE = _byte_table(CASTAGNOLI)


def murmur3_32(data: Buffer, seed: int = 0, /) -> int:
    raw = _bytes(data)
    whole = len(raw) & ~3
    state = seed & MASK_32
    for (block,) in struct.iter_unpack("<I", raw[:whole]):
        state ^= _murmur_mix(block)
        state = (state << 13 | state >> 19) & MASK_32
        state = (5 * state + 0xE6546B64) & MASK_32
    state ^= _murmur_mix(int.from_bytes(raw[whole:], "little"))
    state ^= len(raw) & MASK_32
    state = (state ^ state >> 16) * 0x85EBCA6B & MASK_32
    state = (state ^ state >> 13) * 0xC2B2AE35 & MASK_32
    return state ^ state >> 16


def _murmur_mix(block: int) -> int:
    block = block * 0xCC9E2D51 & MASK_32
    return (block << 15 | block >> 17) * 0x1B873593 & MASK_32


def java_string_hash(text: str, /) -> int:
    state = 0
    for (unit,) in struct.iter_unpack("<H", str.encode(text, "utf-16-le", "surrogatepass")):
        state = (31 * state + unit) & MASK_32
    return state - (state >> 31 << 32)


BOOST_STEP = 0x9E3779B97F4A7C15
BOOST_FACTOR = BOOST_STEP * BOOST_STEP & MASK_64


def _boost_mix(left: int, right: int) -> int:
    """The two halves of the 128-bit product, folded onto each other."""
    product = (left & MASK_64) * right
    return product >> 64 ^ product & MASK_64


def boost_hash(data: Buffer, /) -> int:
    raw = _bytes(data)
    weight = _boost_mix(BOOST_STEP, BOOST_FACTOR)
    state = weight ^ len(raw)
    for start in range(0, len(raw) // 8 * 8 + 1, 8):  # the last word is the rest, perhaps empty
        weight = weight + BOOST_STEP & MASK_64
        state ^= _boost_mix(int.from_bytes(raw[start : start + 8], "little") + weight, BOOST_FACTOR)
    return _boost_mix(state + weight, BOOST_FACTOR) & 0x7FFFFFFF


FRAME = struct.Struct("<4sII")
ENTRY = struct.Struct("<BxxxI")
BLOCK = struct.Struct("<IIQ")
CHANGES, RECORDS = 1, 2


def split_frames(content: bytes, mark: bytes, /) -> tuple[list[bytes], int]:
    if len(mark) != 4:
        raise ValueError(f"a mark of {len(mark)} bytes")
    unpack, head, size, at = FRAME.unpack_from, FRAME.size, len(content), 0
    payloads: list[bytes] = []
    while (start := at + head) <= size:
        found, length, expected = unpack(content, at)
        payload = content[start : start + length]
        if found != mark or len(payload) != length or crc32c(payload) != expected:
            break
        payloads.append(payload)
        at = start + length
    return payloads, at


class _Run:
    """Records of one log in a row."""

    __slots__ = ("columns", "first", "next", "records", "size")

    def __init__(self, first: int) -> None:
        self.first = self.next = first
        self.size = 0
        self.records: list[bytes] = []
        self.columns = array("I"), array("i"), array("q")

    def told(self) -> tuple[bytes, bytes, bytes, bytes]:
        ends, marks, times = self.columns
        return b"".join(self.records), ends.tobytes(), marks.tobytes(), times.tobytes()


def take_records(payloads: list[bytes], /) -> tuple[list[bytes], list[tuple[int, int, bytes, bytes, bytes, bytes]]]:
    changes: list[bytes] = []
    runs: list[tuple[int, _Run]] = []
    last: dict[int, _Run] = {}
    for payload in payloads:
        at, size = 0, len(payload)
        while at < size:
            if size - at < ENTRY.size:
                raise ValueError("an entry that is not whole")
            kind, length = ENTRY.unpack_from(payload, at)
            at += ENTRY.size
            content = payload[at : at + length]
            if len(content) != length:
                raise ValueError("an entry that is not whole")
            at += length
            if kind == RECORDS:
                _take_block(content, runs, last)
            elif kind == CHANGES:
                changes.append(content)
    return changes, [(number, run.first, *run.told()) for number, run in runs]


def _take_block(content: bytes, runs: list[tuple[int, _Run]], last: dict[int, _Run]) -> None:
    if len(content) < BLOCK.size:
        raise ValueError("a block of records without a head")
    number, count, first = BLOCK.unpack_from(content)
    at = BLOCK.size + 16 * count
    size = len(content) - at
    if size < 0:
        raise ValueError("a block of records that is not whole")
    run = last.get(number)
    if run is None or run.next != first or run.size + size > MASK_32:
        run = last[number] = _Run(first)
        runs.append((number, run))
    ends = array("I", content[at - 4 * count : at])
    if [*ends] != sorted(ends) or (ends[-1] if ends else 0) != size:
        raise ValueError("records that do not fit their block")
    behind, marks, times = run.columns
    behind.extend(array("I", map(run.size.__add__, ends)) if run.size else ends)
    times.frombytes(content[BLOCK.size : BLOCK.size + 8 * count])
    marks.frombytes(content[BLOCK.size + 8 * count : at - 4 * count])
    run.records.append(content[at:])
    run.next += count
    run.size += size

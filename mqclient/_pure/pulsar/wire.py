"""Owns protobuf's wire format: varints, and the fields of a message one by one, every read checked."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Buffer = bytes | bytearray | memoryview

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MASK = (1 << 64) - 1
_FIXED = {FIXED64: struct.Struct("<q"), FIXED32: struct.Struct("<i")}

u16 = struct.Struct(">H")
u32 = struct.Struct(">I")


class Malformed(Exception):
    """Bytes that are no protobuf message, or end too early; never leaves the codec."""


def varint(value: int) -> bytes:
    """A varint; a negative number as its 64-bit two's complement."""
    if 0 <= value < 128:
        return _SHORT[value]
    if not -(1 << 63) <= value < 1 << 63:
        raise OverflowError(f"{value} does not fit 64 bits")
    value &= MASK
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


_SHORT = [bytes((value,)) for value in range(128)]


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return varint(field << 3) + varint(value)


def data(field: int, value: Buffer) -> bytes:
    """A length-delimited field."""
    return b"".join((varint(field << 3 | BYTES), varint(len(value)), value))


def text(field: int, value: str) -> bytes:
    """A string field."""
    return data(field, from_text(value))


def from_text(value: str) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"str wanted, not {type(value).__name__}")
    return value.encode()


def to_text(value: Buffer) -> str:
    """A string of the wire; what is not UTF-8 is replaced."""
    return str(value, "utf-8", "replace")


def signed(value: int) -> int:
    """64 bits as the signed number that they also are."""
    return value - (1 << 64) if value >> 63 else value


def int32(value: int) -> int:
    """The low 32 bits as a signed number: how a varint reads as an int32."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def read_varint(source: Buffer, at: int, end: int) -> tuple[int, int]:
    """The unsigned value and the place behind it."""
    value = shift = 0
    while shift < 70:
        if at >= end:
            break
        byte = source[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & MASK, at
        shift += 7
    raise Malformed(f"a varint does not end by {at}")


def fields(source: Buffer, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Each field as `(tag, value, start, stop)`: the value of a number, or the span of bytes."""
    while at < end:
        tag = source[at]
        if tag < 128:
            at += 1
        else:
            tag, at = read_varint(source, at, end)
        kind = tag & 7
        if tag < 8 or tag > 0xFFFFFFFF:
            raise Malformed(f"no field has the tag {tag}")
        if kind == VARINT:
            if at < end and source[at] < 128:
                yield tag, source[at], 0, 0
                at += 1
                continue
            value, at = read_varint(source, at, end)
            yield tag, value - (1 << 64) if value >> 63 else value, 0, 0
        elif kind == BYTES:
            if at < end and source[at] < 128:
                length = source[at]
                at += 1
            else:
                length, at = read_varint(source, at, end)
            if length > end - at:
                raise Malformed(f"{length} bytes announced at {at}, {end - at} there")
            yield tag, 0, at, at + length
            at += length
        elif kind in _FIXED:
            fixed = _FIXED[kind]
            if fixed.size > end - at:
                raise Malformed(f"a number at {at} is cut")
            yield tag, fixed.unpack_from(source, at)[0], 0, 0
            at += fixed.size
        else:
            raise Malformed(f"wire type {kind} at {at}")


def words(source: Buffer, at: int, end: int) -> Iterator[int]:
    """A packed list of varints."""
    while at < end:
        value, at = read_varint(source, at, end)
        yield signed(value)

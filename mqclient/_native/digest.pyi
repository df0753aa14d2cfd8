"""Checksums, key hashes, files of checked frames; `data` is anything with a contiguous buffer, `text` a str."""

from __future__ import annotations

from typing_extensions import Buffer

def crc32(data: Buffer, value: int = 0, /) -> int:
    """CRC-32 as zlib and RocketMQ bodies use it, unsigned; `value` is the checksum of what came before."""

def crc32c(data: Buffer, value: int = 0, /) -> int:
    """CRC-32C (Castagnoli) as Pulsar frames use it, unsigned; `value` is the checksum of what came before."""

def murmur3_32(data: Buffer, seed: int = 0, /) -> int:
    """MurmurHash3 x86 32-bit, unsigned.

    Pulsar hashes the UTF-8 bytes of a key with seed 0; routing takes the lower 31 bits modulo partitions,
    Key_Shared the whole value modulo 65536 (slot 0 is replaced by 1).
    """

def java_string_hash(text: str, /) -> int:
    """Java's `String.hashCode`: over UTF-16 code units, signed 32 bits. Pulsar routing takes the lower 31 bits."""

def boost_hash(data: Buffer, /) -> int:
    """The C++ client's `BoostHash` of a key's UTF-8 bytes: 31 bits, not negative.

    Boost changed its string hash in 1.81 and 1.82; this is the one since 1.82 on 64-bit machines, which the wheels of
    pulsar-client 3.13 carry. It does not agree with older builds.
    """

def split_frames(content: bytes, mark: bytes, /) -> tuple[list[bytes], int]:
    """The payloads of the whole frames with which this begins, and where the last of them ends.

    A frame is `mark` (four bytes), the size of its payload, the CRC-32C of that (uint32 each, little-endian), the
    payload. The first that is not whole, or not what its checksum says, ends it.
    """

def take_records(payloads: list[bytes], /) -> tuple[list[bytes], list[tuple[int, int, bytes, bytes, bytes, bytes]]]:
    """What the payloads of a data folder's frames hold (`mqclient/broker/data.py` tells how it is written).

    The contents of their entries that are changes; and runs of records whose numbers follow each other: number of the
    log, number of the first record, then the records, where each ends in there (uint32), their marks (int32) and times
    (int64), in native order. Runs of one log are in the order in which they came. ValueError for an entry that does not
    fit in its frame.
    """

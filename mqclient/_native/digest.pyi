"""Checksums and key hashes; `data` is anything with a contiguous buffer, `text` a str."""

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

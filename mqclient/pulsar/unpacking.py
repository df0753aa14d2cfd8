"""Owns the way from an entry, or from a message in parts, to its messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqclient.core.compress import decompress
from mqclient.errors import ProtocolError
from mqclient.pulsar.chunks import Whole
from mqclient.pulsar.codes import CompressionType

_FORMATS: Mapping[int, str] = {
    CompressionType.LZ4: "lz4-block",
    CompressionType.ZLIB: "zlib",
    CompressionType.ZSTD: "zstd",
    CompressionType.SNAPPY: "snappy",
}


def unpacked(codec: Any, sealed: Any) -> tuple[Any, Any]:
    """The entry that was sealed, and its messages; it may have come in parts."""
    if not isinstance(sealed, Whole):
        return sealed, codec.decode_messages(sealed, decompress=_decompress)
    entry, payload = sealed
    limit = max(entry.uncompressed_size, len(payload))
    return entry, codec.decode_messages(entry, payload, decompress=_decompress, limit=limit)


def _decompress(kind: int, data: memoryview, limit: int) -> bytes:
    """A library that is missing is no fault of the entry: that error goes to who receives, and nothing is lost."""
    if kind not in _FORMATS:
        raise ProtocolError(f"compression {kind} is not known")
    return decompress(_FORMATS[kind], data, limit)

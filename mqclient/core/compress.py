"""Owns compression: a table of formats by name, libraries looked up once, and a limit that stops bombs."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError, ProtocolError

Buffer = bytes | bytearray | memoryview
Decompress = Callable[[int, memoryview, int], bytes]


class Format(NamedTuple):
    """One format. `decompress(data, limit)` gives at most `limit` bytes or raises; `level` means what the library does.

    A block format does not know its own size: there, the limit must be at least the size.
    """

    compress: Callable[[Buffer, int | None], bytes]
    decompress: Callable[[Buffer, int], bytes]


class TooLarge(Exception):
    """More comes out than the limit allows."""


FORMATS: Final = ("zlib", "gzip", "lz4-frame", "lz4-block", "zstd", "snappy")
_INSTALL: Final = "pip install 'mqclient[compress]'"
_found: dict[str, Format | ImportError] = {}


def lookup(name: str) -> Format:
    """The format of this name; a ConfigError that names the cure if its library is not installed."""
    found = _found.get(name)
    if found is None:
        if name not in _MAKERS:
            raise ConfigError(f"compression {name!r} is not known; there are {', '.join(FORMATS)}")
        try:
            found = _MAKERS[name]()
        except ImportError as error:
            found = error
        _found[name] = found
    if isinstance(found, ImportError):
        raise ConfigError(f"compression {name!r} needs a library that is missing ({found}): {_INSTALL}") from found
    return found


def compress(name: str, data: Buffer, level: int | None = None) -> bytes:
    return lookup(name).compress(data, level)


def decompress(name: str, data: Buffer, limit: int) -> bytes:
    """At most `limit` bytes; a ProtocolError for more of them, or for bytes that are not of this format."""
    found = lookup(name)
    try:
        return found.decompress(data, limit)
    except TooLarge as error:
        raise ProtocolError(f"{name}: more than {limit} bytes come out") from error
    except Exception as error:  # each library has its own
        raise ProtocolError(f"{name}: {error}") from error


def decompressor(names: Mapping[int, str]) -> Decompress:
    """What decoders are given: a protocol's numbers instead of names.

    An unknown number, and a library that is missing, are ProtocolErrors: the message cannot be read here.
    """
    table = dict(names)

    def by_kind(kind: int, data: memoryview, limit: int) -> bytes:
        name = table.get(kind)
        if name is None:
            raise ProtocolError(f"compression {kind} is not known")
        try:
            return decompress(name, data, limit)
        except ConfigError as error:
            raise ProtocolError(str(error)) from error

    return by_kind


# ---- the formats


def _zlib_like(bits: int) -> Format:
    def shrink(data: Buffer, level: int | None) -> bytes:
        machine = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, bits)
        return machine.compress(data) + machine.flush()

    def grow(data: Buffer, limit: int) -> bytes:
        machine = zlib.decompressobj(bits)
        out = machine.decompress(data, limit + 1)  # never more, whatever the data promises; 0 would mean no limit
        if len(out) > limit:
            raise TooLarge
        if not machine.eof:
            raise ValueError("the stream is cut off")
        return out

    return Format(shrink, grow)


def _lz4_frame() -> Format:
    library = import_module("lz4.frame")

    def shrink(data: Buffer, level: int | None) -> bytes:
        out: bytes = library.compress(data, compression_level=level or 0)
        return out

    def grow(data: Buffer, limit: int) -> bytes:
        machine = library.LZ4FrameDecompressor()
        out: bytes = machine.decompress(data, max_length=limit + 1)
        if len(out) > limit:
            raise TooLarge
        if not machine.eof:
            raise ValueError("the frame is cut off")
        return out

    return Format(shrink, grow)


def _lz4_block() -> Format:
    library = import_module("lz4.block")

    def shrink(data: Buffer, level: int | None) -> bytes:
        high = {"mode": "high_compression", "compression": level} if level else {}
        out: bytes = library.compress(data, store_size=False, **high)
        return out

    def grow(data: Buffer, limit: int) -> bytes:
        out: bytes = library.decompress(data, uncompressed_size=limit)
        return out

    return Format(shrink, grow)


def _zstd() -> Format:
    library = import_module("zstandard")

    def shrink(data: Buffer, level: int | None) -> bytes:
        out: bytes = library.ZstdCompressor(level=3 if level is None else level).compress(data)
        return out

    def grow(data: Buffer, limit: int) -> bytes:
        if library.frame_content_size(data) > limit:
            raise TooLarge
        _check_whole(data, library.frame_header_size(data), library.get_frame_parameters(data).has_checksum)
        with library.ZstdDecompressor(max_window_size=1 << 27).stream_reader(data) as stream:
            out: bytes = stream.read(limit + 1)
        if len(out) > limit:
            raise TooLarge
        return out

    return Format(shrink, grow)


def _check_whole(data: Buffer, start: int, checksum: bool) -> None:
    """Walk the block headers of a zstd frame: the library's stream takes a frame that is cut off for its end."""
    view = memoryview(data)
    last = False
    while not last and start + 3 <= len(view):
        head = int.from_bytes(view[start : start + 3], "little")
        last = bool(head & 1)
        run_length = head >> 1 & 3 == 1
        start += 3 + (1 if run_length else head >> 3)
    if not last or start + 4 * checksum > len(view):
        raise ValueError("the frame is cut off")


def _snappy() -> Format:
    library = import_module("cramjam").snappy

    def shrink(data: Buffer, level: int | None) -> bytes:
        return bytes(library.compress_raw(bytes(data)))

    def grow(data: Buffer, limit: int) -> bytes:
        size: Any = library.decompress_raw_len(bytes(data))
        if size > limit:
            raise TooLarge
        return bytes(library.decompress_raw(bytes(data)))

    return Format(shrink, grow)


_MAKERS: Final[Mapping[str, Callable[[], Format]]] = {
    "zlib": lambda: _zlib_like(zlib.MAX_WBITS),
    "gzip": lambda: _zlib_like(zlib.MAX_WBITS | 16),
    "lz4-frame": _lz4_frame,
    "lz4-block": _lz4_block,
    "zstd": _zstd,
    "snappy": _snappy,
}

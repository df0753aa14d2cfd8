"""Checksums and key hashes, per call, beside every C library that is installed."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from timeit import repeat
from typing import Any

import pytest

from benchmarks.support import Compare, twins

native, pure = twins("digest")

CALLS = 100
Checksum = Callable[[bytes], int]

# contender: package, module, name of the function
LIBRARIES: dict[str, dict[str, tuple[str, str]]] = {
    "crc32": {
        "isal": ("isal.isal_zlib", "crc32"),
        "zlib_ng": ("zlib_ng.zlib_ng", "crc32"),
        "fastcrc": ("fastcrc", "crc32.iso_hdlc"),
    },
    "crc32c": {
        "crc32c": ("crc32c", "crc32c"),
        "google_crc32c": ("google_crc32c", "value"),
        "fastcrc": ("fastcrc", "crc32.iscsi"),
    },
}
CHECK = {"crc32": 0xCBF43926, "crc32c": 0xE3069283}


def libraries(checksum: str) -> dict[str, Checksum]:
    """Those that can be imported; zlib always can."""
    found: dict[str, Checksum] = {"zlib": zlib.crc32} if checksum == "crc32" else {}
    for name, (module, function) in LIBRARIES[checksum].items():
        try:
            found[name] = attrgetter(function)(import_module(module))
        except ImportError:
            continue
        assert found[name](b"123456789") == CHECK[checksum], name
    return found


def fastest(found: dict[str, Checksum], data: bytes) -> str:
    return min(found, key=lambda name: min(repeat(lambda: found[name](data), number=500, repeat=20)))


def calling(function: Callable[[Any], object], argument: object) -> Callable[[], None]:
    def run() -> None:
        call = function
        for _ in range(CALLS):
            call(argument)

    return run


@pytest.mark.parametrize("size", [100, 1024, 65536])
@pytest.mark.parametrize("checksum", ["crc32", "crc32c"])
def bench_checksum(compare: Compare, checksum: str, size: int) -> None:
    data = random.Random(size).randbytes(size)
    compare(
        f"digest.{checksum}.{size}",
        per=CALLS,
        native=calling(getattr(native, checksum), data),
        pure=calling(getattr(pure, checksum), data),
        zlib=calling(zlib.crc32, data),
        asked="<= 1.3 x the best C library" if size == 1024 else "",
    )


@pytest.mark.parametrize("checksum", ["crc32", "crc32c"])
def bench_checksum_of_libraries(compare: Compare, checksum: str) -> None:
    """`library` is the fastest of those that are there; the others stand beside it under their names."""
    data = random.Random(1024).randbytes(1024)
    found = libraries(checksum)
    if not found.keys() - {"zlib"}:
        pytest.skip(f"none of {', '.join(LIBRARIES[checksum])} is installed")
    compare(
        f"digest.{checksum}_libraries.1024",
        per=CALLS,
        native=calling(getattr(native, checksum), data),
        library=calling(found[fastest(found, data)], data),
        asked="<= 1.3 x the best C library",
        **{name: calling(function, data) for name, function in found.items()},
    )


@pytest.mark.parametrize("name", ["murmur3_32", "boost_hash", "java_string_hash"])
def bench_key(compare: Compare, name: str) -> None:
    key: bytes | str = "customer-1234567" if name == "java_string_hash" else b"customer-1234567"
    compare(
        f"digest.{name}.16",
        per=CALLS,
        native=calling(getattr(native, name), key),
        pure=calling(getattr(pure, name), key),
    )

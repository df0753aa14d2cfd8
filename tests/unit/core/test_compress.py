"""Compression by name, with a limit."""

from __future__ import annotations

import zlib
from random import Random

import pytest

from mqclient.core import compress as module
from mqclient.core.compress import FORMATS, compress, decompress, decompressor, lookup
from mqclient.errors import ConfigError, ProtocolError

TEXT = b"the quick brown fox jumps over the lazy dog " * 500
BOMB = bytes(50_000_000)


@pytest.fixture(autouse=True)
def nothing_found_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test looks the libraries up anew, whoever was here first."""
    monkeypatch.setattr(module, "_found", {})


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("data", [b"", b"x", TEXT, Random(1).randbytes(100_000)], ids=["none", "one", "text", "noise"])
def test_round_trip_from_any_buffer(name: str, data: bytes) -> None:
    packed = compress(name, memoryview(data))
    for form in (packed, bytearray(packed), memoryview(packed)):
        assert decompress(name, form, max(len(data), 1)) == data


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "snappy"])
def test_levels_change_the_size(name: str) -> None:
    data = bytes(Random(1).choices(b"abcdefgh", k=200_000))
    low, high = (compress(name, data, level) for level in (1, 9))
    assert len(high) != len(low)
    assert decompress(name, high, len(data)) == data


@pytest.mark.parametrize("name", FORMATS)
def test_the_exact_limit_is_enough_and_one_less_is_not(name: str) -> None:
    packed = compress(name, TEXT)
    assert decompress(name, packed, len(TEXT)) == TEXT
    with pytest.raises(ProtocolError, match=name):
        decompress(name, packed, len(TEXT) - 1)


@pytest.mark.parametrize("name", FORMATS)
def test_a_bomb_stops_at_the_limit(name: str) -> None:
    import tracemalloc

    packed = compress(name, BOMB)
    decompress(name, compress(name, b"x"), 1)  # the library is loaded
    tracemalloc.start()
    with pytest.raises(ProtocolError):
        decompress(name, packed, 1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_cut_off_or_damaged_is_a_protocol_error(name: str) -> None:
    packed = compress(name, TEXT)
    for cut in (1, 2, len(packed) // 2, len(packed) - 1):
        with pytest.raises(ProtocolError, match=name):
            decompress(name, packed[:cut], len(TEXT))
    with pytest.raises(ProtocolError, match=name):
        decompress(name, b"\xff" * 100, 1000)


def test_zstd_of_a_writer_that_did_not_know_the_size() -> None:
    library = pytest.importorskip("zstandard")
    machine = library.ZstdCompressor(write_checksum=True, write_content_size=False).compressobj()
    packed = machine.compress(TEXT) + machine.flush()
    assert library.frame_content_size(packed) == -1
    assert decompress("zstd", packed, len(TEXT)) == TEXT
    for cut in range(len(packed)):
        with pytest.raises(ProtocolError):
            decompress("zstd", packed[:cut], len(TEXT))
    with pytest.raises(ProtocolError, match="more than"):
        decompress("zstd", packed, len(TEXT) - 1)


def test_decoders_ask_by_number() -> None:
    ask = decompressor({2: "zlib"})
    assert ask(2, memoryview(zlib.compress(TEXT)), len(TEXT)) == TEXT
    with pytest.raises(ProtocolError, match="9 is not known"):
        ask(9, memoryview(b""), 10)


def test_unknown_names_and_missing_libraries_name_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="zlib"):
        lookup("brotli")

    def missing(name: str) -> None:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(module, "import_module", missing)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"pip install 'mqclient\[compress\]'"):
            lookup("zstd")
    with pytest.raises(ProtocolError, match="pip install"):
        decompressor({3: "zstd"})(3, memoryview(b""), 10)
    assert decompress("zlib", zlib.compress(TEXT), len(TEXT)) == TEXT

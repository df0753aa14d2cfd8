"""Primitives: what goes in comes out, what was changed does not, and each mistake names its key."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from mqclient.errors import ConfigError, CryptoError
from mqclient.pulsar import crypto
from tests.support.keys import curve, pair, signing
from tests.support.tree import ROOT


def test_a_payload_and_its_way_back() -> None:
    cipher, iv = crypto.Cipher(crypto.new_key()), crypto.Cipher.new_iv()
    sealed = cipher.seal(iv, b"body")
    assert len(sealed) == 4 + crypto.TAG_SIZE
    assert cipher.open(iv, memoryview(sealed)) == b"body"


@pytest.mark.parametrize(
    ("iv", "sealed"), [(b"0" * 12, b"x" * 20), (b"", b"x" * 20), (b"0" * 12, b"short"), (b"0" * 12, b"")]
)
def test_what_is_no_sealed_payload(iv: bytes, sealed: bytes) -> None:
    with pytest.raises(CryptoError, match="changed, or sealed with another key"):
        crypto.Cipher(bytes(32)).open(iv, sealed)


def test_a_data_key_of_a_strange_size() -> None:
    with pytest.raises(CryptoError, match="not 5"):
        crypto.Cipher(b"short")


def test_a_key_wrapped_and_unwrapped() -> None:
    key = crypto.new_key()
    assert crypto.unwrap("k", pair().private, crypto.wrap("k", pair().public, key)) == key


@pytest.mark.parametrize("name", ["SECP256R1", "SECP384R1", "SECP521R1"])
@pytest.mark.parametrize("size", [16, 24, 32])
def test_wrapped_for_a_key_on_a_curve(name: str, size: int) -> None:
    key, own = bytes(range(size)), curve(name)
    wrapped = crypto.wrap("k", own.public, key)
    assert crypto.unwrap("k", own.private, wrapped) == key
    assert crypto.wrap("k", own.public, key) != wrapped
    for changed in (wrapped[:-1], wrapped[:-1] + bytes([wrapped[-1] ^ 1]), wrapped[1:], b"", bytes(len(wrapped))):
        with pytest.raises(CryptoError, match="'k': the data key was wrapped for another key"):
            crypto.unwrap("k", own.private, changed)


CASES = json.loads((ROOT / "tests/vectors/ecies.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["curve"] for case in CASES])
def test_java_s_way_of_wrapping(case: dict[str, str]) -> None:
    """Recorded: the digest inside says that all of it is understood. Its PEM has the curve before the key."""
    assert crypto.unwrap("k", case["private"].encode(), bytes.fromhex(case["wrapped"])).hex() == case["key"]


def test_mistakes_name_the_key() -> None:
    with pytest.raises(CryptoError, match="'k': no public key in PEM"):
        crypto.wrap("k", b"nonsense", bytes(32))
    with pytest.raises(CryptoError, match="'k': no private key in PEM"):
        crypto.unwrap("k", pair().public, b"")
    with pytest.raises(CryptoError, match="'k' is of a kind that cannot wrap others"):
        crypto.wrap("k", signing().public, bytes(32))
    with pytest.raises(CryptoError, match="'k' is of a kind that cannot wrap others"):
        crypto.unwrap("k", signing().private, b"")
    with pytest.raises(CryptoError, match="wrapped for another key"):
        crypto.unwrap("k", pair("other").private, crypto.wrap("k", pair().public, bytes(32)))


def test_a_library_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    gone: Any = None
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", gone)
    crypto.library.cache_clear()
    with pytest.raises(ConfigError, match=r"pip install 'mqclient\[crypto\]'"):
        crypto.library()
    monkeypatch.undo()
    assert crypto.library() is crypto.library()

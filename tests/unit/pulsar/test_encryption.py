"""What users may say about encryption, and where keys are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqclient.errors import ConfigError, CryptoError
from mqclient.pulsar.encryption import Decryption, Encryption, Key, key_of, look_up


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({"keys": "k"}, r"keys=\['k'\]"),
        ({"keys": []}, "at least one key"),
        ({"on_failure": "consume"}, "'fail', 'send'"),
        ({"renew": 0}, "above 0"),
    ],
)
def test_mistakes_of_producers(given: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ConfigError, match=wrong):
        Encryption(**{"keys": ["k"], "public": {}, **given})


def test_mistakes_of_consumers() -> None:
    with pytest.raises(ConfigError, match="'fail', 'discard', 'consume'"):
        Decryption({}, on_failure="send")


def test_keys_are_no_matter_of_the_log() -> None:
    assert "PRIVATE" not in repr(Decryption({"k": b"-----BEGIN PRIVATE KEY-----"}))


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a.pem").write_bytes(b"A")
    found: Any = look_up(str(tmp_path / "{name}.pem"), "a", {})
    assert found == Key(b"A")
    assert look_up(tmp_path / "a.pem", "whoever", {}) == Key(b"A")
    assert key_of("a", str(tmp_path / "a.pem")) == key_of("a", tmp_path / "a.pem") == Key(b"A")
    with pytest.raises(CryptoError, match="'b' cannot be read"):
        look_up(str(tmp_path / "{name}.pem"), "b", {})


def test_by_name() -> None:
    assert look_up({"a": b"A"}, "a", {}) == b"A"
    with pytest.raises(CryptoError, match="no key 'b' among those given: a"):
        look_up({"a": b"A"}, "b", {})


def test_a_function() -> None:
    asked: list[Any] = []
    look_up(lambda name, metadata: asked.append((name, metadata)) or b"A", "a", {"v": "1"})  # type: ignore[func-returns-value]
    assert asked == [("a", {"v": "1"})]


def test_forms_of_a_key() -> None:
    text = "-----BEGIN PUBLIC KEY-----\n…"
    assert key_of("a", text) == Key(text.encode())
    assert key_of("a", b"A") == Key(b"A")
    assert key_of("a", Key(b"A", {"v": "1"})).metadata == {"v": "1"}
    with pytest.raises(CryptoError, match="gave a int"):
        key_of("a", 5)

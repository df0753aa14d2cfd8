"""URL-safe base64 as Java reads it: no other characters, padding or none."""

from __future__ import annotations

import pytest

from mqclient.core.base64url import decode


@pytest.mark.parametrize(
    ("text", "data"), [("", b""), ("Pz8_", b"???"), ("-_8=", b"\xfb\xff"), ("-_8", b"\xfb\xff"), ("Pw==", b"?")]
)
def test_what_is_decoded(text: str, data: bytes) -> None:
    assert decode(text) == data


@pytest.mark.parametrize("text", ["Pz8/", "+_8=", "Pz 8_", "Pz8_\n", "P", "P===", "=Pw=", "é"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"base64|padded|characters"):
        decode(text)

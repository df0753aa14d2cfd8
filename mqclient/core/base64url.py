"""Owns the decoding of URL-safe base64: strict, as Java's decoder is, whatever Python's own thinks of the rest."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from typing import Final

_TEXT: Final = re.compile(r"[A-Za-z0-9_-]*={0,2}")


def decode(text: str) -> bytes:
    """With or without padding; a ValueError for everything that is not of the alphabet.

    >>> decode("Pz8_"), decode("Pw==") == decode("Pw")
    (b'???', True)
    """
    if _TEXT.fullmatch(text) is None:
        raise ValueError("this is no URL-safe base64")
    return urlsafe_b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))

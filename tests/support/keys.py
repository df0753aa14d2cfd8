"""Pairs of keys for tests of end-to-end encryption."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pytest


class Pair(NamedTuple):
    public: bytes
    private: bytes


@cache
def pair(name: str = "") -> Pair:
    """RSA in PEM; the same for the same name, for making one takes a while."""
    rsa: Any = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    return written(rsa.generate_private_key(65537, 2048))


@cache
def curve() -> Pair:
    """A pair that is no RSA."""
    ec: Any = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ec")
    return written(ec.generate_private_key(ec.SECP256R1()))


def written(private: Any) -> Pair:
    form: Any = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    public = private.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    secret = private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return Pair(public, secret)

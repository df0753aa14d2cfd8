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
def curve(name: str = "SECP256R1") -> Pair:
    """A pair on an elliptic curve."""
    ec: Any = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ec")
    return written(ec.generate_private_key(getattr(ec, name)()))


@cache
def signing() -> Pair:
    """A pair that can sign, and nothing else."""
    ed: Any = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    return written(ed.Ed25519PrivateKey.generate())


def written(private: Any) -> Pair:
    form: Any = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    public = private.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    secret = private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    return Pair(public, secret)

"""Owns the primitives of end-to-end encryption: AES-GCM for payloads, RSA for the keys of those who may read them."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError, CryptoError

IV_SIZE: Final = 12
TAG_SIZE: Final = 16
"""What a payload grows by."""
KEY_SIZE: Final = 32

Buffer = bytes | bytearray | memoryview


class _Library(NamedTuple):
    aead: Any
    serialization: Any
    padding: Any
    hashes: Any
    rsa: Any


@cache
def library() -> _Library:
    """The one place that knows the package; a ConfigError that names the cure if it is not installed."""
    base = "cryptography.hazmat.primitives"
    try:
        return _Library(
            import_module(f"{base}.ciphers.aead"),
            import_module(f"{base}.serialization"),
            import_module(f"{base}.asymmetric.padding"),
            import_module(f"{base}.hashes"),
            import_module(f"{base}.asymmetric.rsa"),
        )
    except ImportError as error:
        raise ConfigError(
            f"encryption needs a library that is missing ({error}): pip install 'mqclient[crypto]'"
        ) from error


def new_key() -> bytes:
    """A data key: AES of 256 bits."""
    return os.urandom(KEY_SIZE)


class Cipher:
    """One data key: payloads in and out, each with a start value of its own."""

    __slots__ = ("_aes",)

    def __init__(self, key: bytes) -> None:
        if len(key) not in (16, 24, 32):
            raise CryptoError(f"a data key has 16, 24 or 32 bytes, not {len(key)}: it was wrapped by something else")
        self._aes = library().aead.AESGCM(key)

    @staticmethod
    def new_iv() -> bytes:
        return os.urandom(IV_SIZE)

    def seal(self, iv: bytes, payload: Buffer) -> bytes:
        sealed: bytes = self._aes.encrypt(iv, payload, None)
        return sealed

    def open(self, iv: bytes, sealed: Buffer) -> bytes:
        try:
            payload: bytes = self._aes.decrypt(iv, sealed, None)
        except Exception as error:  # InvalidTag, or a start value that is none
            raise CryptoError(f"the payload was changed, or sealed with another key: {error!r}") from error
        return payload


def wrap(name: str, pem: bytes, key: bytes) -> bytes:
    """A data key for the owner of a public key."""
    known = library()
    try:
        public = known.serialization.load_pem_public_key(pem)
    except Exception as error:  # the library has many
        raise CryptoError(f"encryption key {name!r}: no public key in PEM ({error})") from error
    if not isinstance(public, known.rsa.RSAPublicKey):
        raise CryptoError(f"encryption key {name!r} is no RSA key: the clients of all languages share RSA only")
    wrapped: bytes = public.encrypt(key, _oaep(known))
    return wrapped


def unwrap(name: str, pem: bytes, wrapped: bytes) -> bytes:
    """A data key that was wrapped for us."""
    known = library()
    try:
        private: Any = known.serialization.load_pem_private_key(pem, None)
    except Exception as error:
        raise CryptoError(f"encryption key {name!r}: no private key in PEM, without password ({error})") from error
    if not isinstance(private, known.rsa.RSAPrivateKey):
        raise CryptoError(f"encryption key {name!r} is no RSA key: the clients of all languages share RSA only")
    try:
        key: bytes = private.decrypt(wrapped, _oaep(known))
    except Exception as error:
        raise CryptoError(f"encryption key {name!r}: the data key was wrapped for another key of this name") from error
    return key


def _oaep(known: _Library) -> Any:
    """The protocol's own choice, SHA-1 included: as a mask, not as a signature, it is not broken."""
    sha1 = known.hashes.SHA1()
    return known.padding.OAEP(mgf=known.padding.MGF1(sha1), algorithm=sha1, label=None)

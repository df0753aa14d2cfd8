"""Owns the primitives of end-to-end encryption: AES-GCM for payloads, RSA or ECIES for those who may read them."""

from __future__ import annotations

import hmac
import os
from functools import cache
from hashlib import sha1
from importlib import import_module
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError, CryptoError

IV_SIZE: Final = 12
TAG_SIZE: Final = 16
"""What a payload grows by."""
KEY_SIZE: Final = 32
_MAC_KEY: Final = 16
_MAC_SIZE: Final = 20
_KINDS: Final = "it is to be RSA, or on an elliptic curve (which only Java's client and this one know)"

Buffer = bytes | bytearray | memoryview


class _Library(NamedTuple):
    aead: Any
    serialization: Any
    padding: Any
    hashes: Any
    rsa: Any
    ec: Any


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
            import_module(f"{base}.asymmetric.ec"),
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
    if isinstance(public, known.ec.EllipticCurvePublicKey):
        return _wrap_on_curve(known, public, key)
    if not isinstance(public, known.rsa.RSAPublicKey):
        raise CryptoError(f"encryption key {name!r} is of a kind that cannot wrap others: {_KINDS}")
    wrapped: bytes = public.encrypt(key, _oaep(known))
    return wrapped


def unwrap(name: str, pem: bytes, wrapped: bytes) -> bytes:
    """A data key that was wrapped for us."""
    known = library()
    try:
        private: Any = known.serialization.load_pem_private_key(pem, None)
    except Exception as error:
        raise CryptoError(f"encryption key {name!r}: no private key in PEM, without password ({error})") from error
    if not isinstance(private, known.rsa.RSAPrivateKey | known.ec.EllipticCurvePrivateKey):
        raise CryptoError(f"encryption key {name!r} is of a kind that cannot wrap others: {_KINDS}")
    try:
        if isinstance(private, known.ec.EllipticCurvePrivateKey):
            return _unwrap_on_curve(known, private, wrapped)
        key: bytes = private.decrypt(wrapped, _oaep(known))
    except Exception as error:
        raise CryptoError(f"encryption key {name!r}: the data key was wrapped for another key of this name") from error
    return key


def _wrap_on_curve(known: _Library, public: Any, key: bytes) -> bytes:
    """ECIES as Java's provider has it: a fresh point, the key under a stream, and a digest of that."""
    own = known.ec.generate_private_key(public.curve)
    form = known.serialization
    point = own.public_key().public_bytes(form.Encoding.X962, form.PublicFormat.UncompressedPoint)
    mac_key, stream = _derived(point + own.exchange(known.ec.ECDH(), public), len(key))
    sealed = _xor(key, stream)
    return bytes(point + sealed + _digest(mac_key, sealed))


def _unwrap_on_curve(known: _Library, private: Any, wrapped: bytes) -> bytes:
    size = 1 + 2 * ((private.curve.key_size + 7) // 8)
    point, sealed, tag = wrapped[:size], wrapped[size:-_MAC_SIZE], wrapped[-_MAC_SIZE:]
    public = known.ec.EllipticCurvePublicKey.from_encoded_point(private.curve, point)
    mac_key, stream = _derived(point + private.exchange(known.ec.ECDH(), public), len(sealed))
    if not hmac.compare_digest(_digest(mac_key, sealed), tag):
        raise ValueError("the digest does not fit")
    return _xor(sealed, stream)


def _derived(secret: bytes, size: int) -> tuple[bytes, bytes]:
    """The digest's key, and a stream of so many bytes: KDF2 of IEEE 1363a over SHA-1."""
    rounds = range(1, 2 + (_MAC_KEY + size) // _MAC_SIZE)
    found = b"".join(sha1(secret + number.to_bytes(4, "big")).digest() for number in rounds)
    return found[:_MAC_KEY], found[_MAC_KEY : _MAC_KEY + size]


def _digest(key: bytes, sealed: bytes) -> bytes:
    """Behind what is digested stands how long a text beside it is: there is none."""
    return hmac.digest(key, sealed + bytes(8), "sha1")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


def _oaep(known: _Library) -> Any:
    """The protocol's own choice, SHA-1 included: as a mask, not as a signature, it is not broken."""
    sha1 = known.hashes.SHA1()
    return known.padding.OAEP(mgf=known.padding.MGF1(sha1), algorithm=sha1, label=None)

"""Owns what users say about end-to-end encryption: whose keys, where they are, and what happens without one."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from mqclient.errors import ConfigError, CryptoError
from mqclient.pulsar.crypto import library


class Key(NamedTuple):
    """A key as a reader gives it: PEM, and what readers elsewhere are to be told about it."""

    pem: bytes
    metadata: Mapping[str, str] = {}


Found: TypeAlias = "Key | bytes | str | os.PathLike[str]"
"""PEM, as text or bytes, or the file that holds it."""
KeyReader: TypeAlias = Callable[[str, Mapping[str, str]], "Found | Awaitable[Found]"]
"""Called with a key's name and metadata, where it may take its time."""
Keys: TypeAlias = "str | os.PathLike[str] | Mapping[str, Found] | KeyReader"
"""One file for all names (`{name}` in it stands for the name), keys by name, or a function."""


@dataclass(frozen=True)
class Encryption:
    """For producers: `keys` are the names of those who may read, `public` where their public keys are: PEM of
    RSA, which the clients of all languages share, or of an elliptic curve, which Java's client knows, too.

    `on_failure`: what becomes of messages while a key cannot be had: "fail", or "send" them as they are. The data key
    is made anew every `renew` seconds; a public key that cannot be had then leaves the old one in use.
    """

    keys: Sequence[str]
    public: Keys = field(repr=False)
    on_failure: str = "fail"
    renew: float = 4 * 3600.0

    def __post_init__(self) -> None:
        if isinstance(self.keys, str):
            raise ConfigError(f"keys={self.keys!r}: a list of names, as in keys=[{self.keys!r}]")
        if not self.keys:
            raise ConfigError("encryption needs the name of at least one key")
        if self.on_failure not in ("fail", "send"):
            raise ConfigError(f"on_failure={self.on_failure!r}: it is one of 'fail', 'send'")
        if self.renew <= 0:
            raise ConfigError("renew is above 0, in seconds")
        library()  # one that is missing is told now


@dataclass(frozen=True)
class Decryption:
    """For consumers: `private` is where private keys are: PEM without password, of RSA or an elliptic curve.

    `on_failure`: what becomes of a message that cannot be read. "fail": it stays unacknowledged, nobody sees it.
    "discard": it is acknowledged. "consume": it comes as it is, and `message.encrypted` says so; a batch is then one
    message.
    """

    private: Keys = field(repr=False)
    on_failure: str = "fail"

    def __post_init__(self) -> None:
        if self.on_failure not in ("fail", "discard", "consume"):
            raise ConfigError(f"on_failure={self.on_failure!r}: it is one of 'fail', 'discard', 'consume'")
        library()


def look_up(keys: Keys, name: str, metadata: Mapping[str, str]) -> Found | Awaitable[Found]:
    """Ask for a key; where user code runs."""
    if callable(keys):
        return keys(name, metadata)
    if isinstance(keys, Mapping):
        if name not in keys:
            raise CryptoError(f"there is no key {name!r} among those given: {', '.join(keys) or 'none'}")
        return keys[name]
    return key_of(name, os.fspath(keys).replace("{name}", name))


def key_of(name: str, found: object) -> Key:
    """What a reader gave, as a key; where files may be read."""
    if isinstance(found, Key):
        return found
    if isinstance(found, bytes):
        return Key(found)
    if isinstance(found, str) and found.lstrip().startswith("-----BEGIN"):
        return Key(found.encode())
    if not isinstance(found, str | os.PathLike):
        raise CryptoError(f"encryption key {name!r}: the reader gave a {type(found).__name__}, no PEM and no file")
    try:
        with open(found, "rb") as file:
            return Key(file.read())
    except OSError as error:
        raise CryptoError(f"encryption key {name!r} cannot be read: {error}") from error

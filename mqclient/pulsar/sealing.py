"""Owns a producer's data key: made, wrapped for each who may read, renewed; what it seals and says in the metadata."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mqclient import _schema
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.core.timers import Timer
from mqclient.errors import ConfigError, CryptoError, MQError
from mqclient.pulsar.codes import ServerError
from mqclient.pulsar.crypto import TAG_SIZE, Buffer, Cipher, new_key, wrap
from mqclient.pulsar.encryption import Encryption, key_of, look_up

if TYPE_CHECKING:
    from mqclient.pulsar.client import ClientEngine
    from mqclient.pulsar.names import TopicName

log = logging.getLogger("mqclient.pulsar")

AGAIN = 60.0
"""Seconds until the next try, where a key could not be had."""


def refuses_plain(error: MQError) -> bool:
    """The broker's word for a topic on which everything is encrypted: a code that is used for much else, and a text."""
    return error.code == ServerError.MetadataError and "ncryption is required" in str(error)


def must_encrypt(topic: TopicName) -> ConfigError:
    """Asking again would not help."""
    return ConfigError(f"{topic}: its namespace requires encryption: give the producer encrypt=Encryption(…)")


class Sealer:
    """One producer's. Keys are asked for outside of entries; what is sealed is sealed inside.

    A data key that cannot be renewed stays in use: messages are readable for whom they were, rather than lost.
    """

    __slots__ = ("_cipher", "_client", "_encryption", "_keys", "_timer", "_topic")

    def __init__(self, client: ClientEngine, topic: str, encryption: Encryption) -> None:
        self._client = client
        self._topic = topic
        self._encryption = encryption
        self._cipher: Cipher | None = None
        self._keys: tuple[bytes, ...] = ()
        self._timer: Timer | None = None

    @property
    def overhead(self) -> int:
        """What a payload grows by; 0 while messages leave as they are."""
        return TAG_SIZE if self._cipher is not None else 0

    def start_steps(self) -> Steps[None]:
        """The first data key; without one a producer that may not send in the clear is not opened."""
        try:
            yield run_steps(self._renew_steps())
        except MQError as error:
            if self._encryption.on_failure == "fail":
                raise
            log.warning("%s: messages leave unencrypted: %s", self._topic, error)
        self._later()

    def fields(self) -> dict[str, Any]:
        """What the metadata says about the next payload; empty while messages leave as they are."""
        if self._cipher is None:
            return {}
        return {"encryption_keys": self._keys, "encryption_param": Cipher.new_iv()}

    def seal(self, fields: dict[str, Any], payload: Buffer) -> Buffer:
        """The payload that goes with these fields."""
        return payload if self._cipher is None else self._cipher.seal(fields["encryption_param"], payload)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _later(self) -> None:
        wait = self._encryption.renew if self._cipher is not None else AGAIN
        self._timer = self._client.timers.after(wait, self._on_timer)

    def _on_timer(self, now: Any) -> None:
        run_steps(self._renew_steps()).then(self._renewed)

    def _renewed(self, slot: Slot[None]) -> None:
        if self._timer is None:
            return  # stopped meanwhile
        if slot.error is not None:
            log.warning("%s: the data key was not renewed: %s", self._topic, slot.error)
            self._timer = self._client.timers.after(AGAIN, self._on_timer)
        else:
            self._later()

    def _renew_steps(self) -> Steps[None]:
        data_key, wrapped = new_key(), []
        for name in self._encryption.keys:
            found = yield run_steps(found_steps(self._client, self._encryption.public, name, {}))
            wrapped.append(_encryption_key(name, wrap(name, found.pem, data_key), found.metadata))
        self._cipher, self._keys = Cipher(data_key), tuple(wrapped)


def found_steps(client: ClientEngine, keys: Any, name: str, metadata: Any) -> Steps[Any]:
    """A key by its name, however long the user's code takes."""
    try:
        found = yield client.ask_user(lambda: look_up(keys, name, metadata))
        key = yield client.ask_user(lambda: key_of(name, found))
    except MQError:
        raise
    except Exception as error:
        raise CryptoError(f"the reader of encryption key {name!r} failed: {error!r}") from error
    return key


def _encryption_key(name: str, wrapped: bytes, metadata: Any) -> bytes:
    """As the metadata of a message holds it."""
    make: Any = _schema.message("EncryptionKeys")
    pairs = [{"key": key, "value": value} for key, value in metadata.items()]
    made: bytes = make(key=name, value=wrapped, metadata=pairs).SerializeToString()
    return made

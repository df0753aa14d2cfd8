"""Owns a consumer's way to read what was sealed: data keys asked for once, while entries wait in order, and what
becomes of those that nobody here can read."""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import CryptoError, MQError, ProtocolError
from mqclient.pulsar import requests
from mqclient.pulsar.crypto import Cipher, unwrap
from mqclient.pulsar.encryption import Decryption
from mqclient.pulsar.sealing import found_steps

if TYPE_CHECKING:
    from mqclient.pulsar.consumer import ConsumerEngine

log = logging.getLogger("mqclient.pulsar")

MOST = 1000
"""Data keys that are remembered; those that were not used for longest are forgotten first."""
MOST_KEYS = 100
"""Of one entry, that are looked at."""
FAILED = 5.0
"""Seconds for which a key that could not be had is not asked for again."""


class Wrapped(NamedTuple):
    """A data key as a message brings it."""

    name: str
    value: bytes
    metadata: tuple[tuple[str, str], ...]


class Sealed(NamedTuple):
    """What is needed to open an entry."""

    entry: Any
    source: Any
    keys: tuple[Wrapped, ...]
    iv: bytes


class Failure(NamedTuple):
    error: MQError
    until: float


class Unsealer:
    """Inside entries only; the reader of keys is asked outside of them. Until a data key is known, what came after it
    waits, too.
    """

    __slots__ = ("_asking", "_consumer", "_decryption", "_known", "_waiting", "unread")

    def __init__(self, consumer: ConsumerEngine, decryption: Decryption | None) -> None:
        self._consumer = consumer
        self._decryption = decryption
        self._known: OrderedDict[bytes, Cipher | Failure] = OrderedDict()
        """By the wrapped data key."""
        self._waiting: deque[Sealed] = deque()
        self._asking = False
        self.unread = 0
        """Entries that could not be read."""

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self, entry: Any, source: Any) -> None:
        """An entry that was charged: handed over now or, in its turn, later."""
        sealed = _read(entry, source)
        if self._waiting or not self._hand_over(sealed):
            self._waiting.append(sealed)
            self._ask()

    def clear(self) -> int:
        """Drop what waits; the permits of it."""
        dropped: int = sum(sealed.entry.charged for sealed in self._waiting)
        self._waiting.clear()
        return dropped

    def _hand_over(self, sealed: Sealed) -> bool:
        """Whether it is decided what becomes of it."""
        entry, source, keys, iv = sealed
        intake = self._consumer.intake
        if not entry.encrypted:
            intake.hand_over(entry, source)
            return True
        if self._decryption is None or not keys:
            names = ", ".join(key.name for key in keys) or "nobody"
            cure = "the consumer needs decrypt=Decryption(…)" if self._decryption is None else "its sender is broken"
            self._give_up(sealed, CryptoError(f"it is encrypted for {names}: {cure}"))
            return True
        failures: list[MQError] = []
        for known in map(self._look_up, keys):
            if isinstance(known, Cipher):
                try:
                    payload = known.open(iv, entry.payload)
                except CryptoError as error:
                    failures.append(error)
                else:
                    intake.hand_over(entry, source, payload)
                    return True
            elif known is not None:
                failures.append(known)
        if len(failures) < len(keys):
            return False
        self._give_up(sealed, failures[-1])
        return True

    def _look_up(self, key: Wrapped) -> Cipher | MQError | None:
        """The data key, or why there is none, or nothing yet."""
        known = self._known.get(key.value)
        if isinstance(known, Cipher):
            self._known.move_to_end(key.value)
            return known
        return known.error if known is not None and known.until > self._consumer.client.driver.now.mono else None

    def _give_up(self, sealed: Sealed, error: MQError) -> None:
        consumer, (entry, source) = self._consumer, sealed[:2]
        if not self.unread:
            log.error("%s: entry %d:%d cannot be read: %s", consumer.topic, entry.ledger, entry.entry, error)
        self.unread += 1
        action = "fail" if self._decryption is None else self._decryption.on_failure
        if action == "consume":
            consumer.intake.hand_over_raw(entry, source)
            return
        if action == "discard":
            consumer.acks.refuse(entry, consumer.client.impl.pulsar.DECRYPTION_ERROR)
        elif consumer.unacked is not None:
            consumer.unacked.track(entry, [entry])
        consumer.intake.leave_out(entry, source)

    def _ask(self) -> None:
        if not self._asking and self._waiting:
            self._asking = True
            run_steps(self._ask_steps(self._waiting[0].keys)).then(self._answered)

    def _ask_steps(self, keys: tuple[Wrapped, ...]) -> Steps[None]:
        """Until one of them is ours."""
        client = self._consumer.client
        failures: list[tuple[Wrapped, MQError]] = []
        assert self._decryption is not None
        for key in keys:
            try:
                found = yield run_steps(found_steps(client, self._decryption.private, key.name, dict(key.metadata)))
                data_key = yield client.ask_user(partial(unwrap, key.name, found.pem, key.value))
                self._remember(key.value, Cipher(data_key))
                return
            except MQError as error:
                failures.append((key, error))
        until = client.driver.now.mono + FAILED
        for key, failure in failures:
            self._remember(key.value, Failure(failure, until))

    def _answered(self, slot: Slot[None]) -> None:
        self._asking = False
        while self._waiting and self._hand_over(self._waiting[0]):
            self._waiting.popleft()
        self._consumer.intake.look_for_receivers()
        self._ask()

    def _remember(self, wrapped: bytes, known: Cipher | Failure) -> None:
        self._known[wrapped] = known
        self._known.move_to_end(wrapped)
        while len(self._known) > MOST:
            self._known.popitem(last=False)


def _read(entry: Any, source: Any) -> Sealed:
    """What the metadata says about its seal."""
    if not entry.encrypted:
        return Sealed(entry, source, (), b"")
    try:
        metadata = requests.parse("MessageMetadata", entry.metadata)
    except ProtocolError:  # the codec asks for less than the schema does: such an entry is sealed for nobody
        return Sealed(entry, source, (), b"")
    keys = [
        Wrapped(key.key, key.value, tuple((pair.key, pair.value) for pair in key.metadata))
        for key in metadata.encryption_keys[:MOST_KEYS]
    ]
    return Sealed(entry, source, tuple(dict.fromkeys(keys)), metadata.encryption_param)

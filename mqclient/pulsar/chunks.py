"""Owns messages that travel in parts: gathers them, gives the whole, and knows which parts a whole was made of."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from mqclient.core.driver import Now
from mqclient.core.timers import Timer

if TYPE_CHECKING:
    from mqclient.pulsar.consumer import ConsumerEngine

Key = tuple[int, int]
MAX_BYTES = 256 << 20
"""Of parts that wait for others."""

log = logging.getLogger("mqclient.pulsar")


class Whole(NamedTuple):
    """A message that came in parts."""

    entry: Any
    """The last part; it stands for the message."""
    payload: bytes


class Gathering:
    """The parts of one message so far, from the first one on."""

    __slots__ = ("first", "keys", "parts", "since", "size", "total")

    def __init__(self, entry: Any, since: float) -> None:
        self.first = entry
        self.since = since
        self.total = entry.num_chunks or 1
        self.keys: list[Key] = []
        self.parts: list[bytes] = []
        self.size = 0

    def append(self, entry: Any, payload: Any) -> None:
        self.keys.append((entry.ledger, entry.entry))
        self.parts.append(bytes(payload))
        self.size += len(payload)


class Chunks:
    """Inside entries only. The permit of a part goes back when it comes; the whole keeps the permit of the last one.

    Gatherings stand in the order in which their first parts came. One that is too old is acknowledged, for the rest of
    it will not come; one that must make room for others is asked back.
    """

    __slots__ = ("_bytes", "_consumer", "_expiry", "_gatherings", "_limit", "_parts", "_timer")

    def __init__(self, consumer: ConsumerEngine, limit: int, expiry: float) -> None:
        self._consumer = consumer
        self._limit = limit
        self._expiry = expiry
        self._gatherings: dict[str, Gathering] = {}
        self._bytes = 0
        self._parts: dict[Key, list[Key]] = {}
        """Of a whole, by the place of its last part: the others. Kept until it is acknowledged or asked back."""
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._gatherings)

    def add(self, entry: Any, payload: Any) -> Whole | None:
        """Take a part, with its payload as it was sealed; what comes back is the message, if it is whole with it."""
        gathering = self._begun(entry)
        if gathering is None:
            return None
        gathering.append(entry, payload)
        self._bytes += len(payload)
        if len(gathering.keys) < gathering.total:
            self._make_room()
            self._arm()
            return None
        self._drop(str(entry.uuid))
        self._parts[gathering.keys[-1]] = gathering.keys[:-1]
        first = gathering.first
        entry.first_chunk = self._consumer.client.impl.pulsar.MessageId(first.ledger, first.entry, first.partition)
        return Whole(entry, b"".join(gathering.parts))

    def others(self, keys: Iterable[Key]) -> list[Key]:
        """The other parts of the wholes among these, which end here: acknowledged, or asked back."""
        parts = self._parts
        return [other for key in keys if key in parts for other in parts.pop(key)] if parts else []

    def end_until(self, key: Key) -> None:
        """Acknowledged cumulatively."""
        for known in [known for known in self._parts if known <= key]:
            del self._parts[known]

    def clear(self) -> None:
        """A new subscription: what is not acknowledged comes again from its first part on."""
        self._gatherings.clear()
        self._bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begun(self, entry: Any) -> Gathering | None:
        """The gathering that waits for just this part; None: the part is of no use."""
        uuid, key, number = str(entry.uuid), (entry.ledger, entry.entry), entry.chunk_id
        gathering = self._gatherings.get(uuid)
        if number == 0:
            if gathering is not None:
                old = self._drop(uuid)
                if key not in old.keys:  # sent anew by its producer: these places are of no use any more
                    self._consumer.ack_keys(old.keys)
            gathering = self._gatherings[uuid] = Gathering(entry, self._consumer.client.driver.now.mono)
        elif gathering is None:
            self._useless(entry, "its beginning is not here")
        elif number < len(gathering.keys):
            if key not in gathering.keys:
                self._consumer.ack_keys([key])
            return None
        elif number > len(gathering.keys):
            self._drop(uuid)
            self._useless(entry, "a part is missing")
            return None
        return gathering

    def _useless(self, entry: Any, why: str) -> None:
        old = entry.published_at + self._expiry * 1000 < self._consumer.client.driver.now.wall_ms
        log.info("%s: part %s of %s cannot be used: %s", entry.topic, entry.chunk_id, entry.uuid, why)
        if self._expiry and old:
            self._consumer.ack_keys([(entry.ledger, entry.entry)])
        else:
            self._consumer.ask_parts_back([(entry.ledger, entry.entry)])

    def _make_room(self) -> None:
        while len(self._gatherings) > self._limit > 0 or self._bytes > MAX_BYTES:
            oldest = next(iter(self._gatherings))
            log.warning("%s: too many messages in parts, %s has to come again", self._consumer.topic, oldest)
            self._consumer.ask_parts_back(self._drop(oldest).keys)

    def _drop(self, uuid: str) -> Gathering:
        gathering = self._gatherings.pop(uuid)
        self._bytes -= gathering.size
        return gathering

    def _arm(self) -> None:
        if self._expiry and self._timer is None and self._gatherings:
            oldest = next(iter(self._gatherings.values()))
            self._timer = self._consumer.client.timers.at(oldest.since + self._expiry, self._on_timer)

    def _on_timer(self, now: Now) -> None:
        self._timer = None
        over = [uuid for uuid, one in self._gatherings.items() if one.since + self._expiry <= now.mono]
        for uuid in over:
            log.warning("%s: message %s in parts was not complete in %s s", self._consumer.topic, uuid, self._expiry)
            self._consumer.ack_keys(self._drop(uuid).keys)
        self._arm()

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
Sender = tuple[str, str | None]
MAX_BYTES = 256 << 20
"""Of parts that wait for others."""
MAX_EMPTIED = 10_000
"""Of messages whose parts made room; the places of more than these stay unacknowledged until they come again."""

log = logging.getLogger("mqclient.pulsar")


class Whole(NamedTuple):
    """A message that came in parts."""

    entry: Any
    """The last part; it stands for the message."""
    payload: bytes


class Gathering:
    """The parts of one message so far, from the first one on."""

    __slots__ = ("first", "keys", "parts", "producer", "since", "size", "total")

    def __init__(self, entry: Any, since: float) -> None:
        self.first = entry
        self.producer: Sender = (entry.producer_name, entry.replicated_from)
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

    Race: a broker dies, and producers send again what it has not answered. With deduplication it stores the first parts
    of each such message once more, but not the last one: more of them in a row than may be gathered at a time. Where
    messages come in order, the parts of one producer do, one message after the other: when it begins the next one, the
    rest of the last one will not come any more. These left ones make room first: their places are kept, and
    acknowledged in their time.
    """

    __slots__ = ("_bytes", "_consumer", "_emptied", "_expiry", "_gatherings", "_latest", "_left", "_limit", "_parts",
                 "_timer")  # fmt: skip

    def __init__(self, consumer: ConsumerEngine, limit: int, expiry: float) -> None:
        self._consumer = consumer
        self._limit = limit
        self._expiry = expiry
        self._gatherings: dict[str, Gathering] = {}
        self._latest: dict[Sender, str] = {}
        """Of each producer that has a gathering: the one that it began last."""
        self._left: dict[str, None] = {}
        """Gatherings whose producers have begun another one, in order."""
        self._emptied: dict[str, Gathering] = {}
        """Of these, the ones that had to make room."""
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
        self._latest.clear()
        self._left.clear()
        self._emptied.clear()
        self._bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _begun(self, entry: Any) -> Gathering | None:
        """The gathering that waits for just this part; None: the part is of no use."""
        uuid, key, number = str(entry.uuid), (entry.ledger, entry.entry), entry.chunk_id
        gathering = self._gatherings.get(uuid)
        if number == 0:
            old = self._emptied.pop(uuid, None) if gathering is None else self._drop(uuid)
            if old is not None and key not in old.keys:  # sent anew by its producer: these are of no use any more
                self._consumer.ack_keys(old.keys)
            gathering = self._begin(uuid, entry)
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

    def _begin(self, uuid: str, entry: Any) -> Gathering:
        gathering = self._gatherings[uuid] = Gathering(entry, self._consumer.client.driver.now.mono)
        left = self._latest.get(gathering.producer)
        if left is not None and self._consumer.options.in_order:
            self._left[left] = None
        self._latest[gathering.producer] = uuid
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
            if self._left:
                self._empty(next(iter(self._left)))
                continue
            oldest = next(iter(self._gatherings))
            log.warning(
                "%s: message %s in parts has to come again%s: more than %s at a time (chunked_pending) or %s bytes",
                self._consumer.topic,
                oldest,
                ", with the next connection" if self._consumer.options.in_order else "",
                self._limit or "any number",
                MAX_BYTES,
            )
            self._consumer.ask_parts_back(self._drop(oldest).keys)

    def _empty(self, uuid: str) -> None:
        if self._expiry:
            self._emptied[uuid] = self._drop(uuid)
            self._emptied[uuid].parts = []
            if len(self._emptied) > MAX_EMPTIED:
                del self._emptied[next(iter(self._emptied))]
        else:
            self._drop(uuid)

    def _drop(self, uuid: str) -> Gathering:
        gathering = self._gatherings.pop(uuid)
        self._bytes -= gathering.size
        self._left.pop(uuid, None)
        if self._latest.get(gathering.producer) == uuid:
            del self._latest[gathering.producer]
        return gathering

    def _arm(self) -> None:
        if not self._expiry or self._timer is not None:
            return
        begun = [next(iter(some.values())).since for some in (self._gatherings, self._emptied) if some]
        if begun:
            self._timer = self._consumer.client.timers.at(min(begun) + self._expiry, self._on_timer)

    def _on_timer(self, now: Now) -> None:
        self._timer = None
        over = [uuid for uuid, one in self._gatherings.items() if one.since + self._expiry <= now.mono]
        for uuid in over:
            log.warning("%s: message %s in parts was not complete in %s s", self._consumer.topic, uuid, self._expiry)
            self._consumer.ack_keys(self._drop(uuid).keys)
        for uuid in [uuid for uuid, one in self._emptied.items() if one.since + self._expiry <= now.mono]:
            self._consumer.ack_keys(self._emptied.pop(uuid).keys)
        self._arm()

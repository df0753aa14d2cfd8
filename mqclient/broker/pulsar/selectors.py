"""Owns which consumer of a key-shared subscription has which keys: by a ring of points, or by ranges asked for.

The two ways count hashes differently, as upstream: the ring from 1 to 65535, ranges from 0 to 65535 without 0.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mqclient.broker.pulsar.refused import Refused
from mqclient.pulsar.codes import ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.consumer import Consumer

POINTS = 100
SLOTS = 65536


class Selector(Protocol):
    """Knows the consumers of one subscription."""

    def slot(self, murmur: int) -> int:
        """The hash of a key, as this way counts it."""

    def add(self, consumer: Consumer) -> None: ...

    def remove(self, consumer: Consumer) -> None: ...

    def owner(self, slot: int) -> Consumer | None: ...

    def ranges(self, consumer: Consumer) -> list[list[int]]:
        """What a consumer has, for statistics."""


class Ring:
    """Each consumer has 100 points; a key belongs to the next point at or after it, behind the last to the first."""

    __slots__ = ("_digest", "_names", "_owners", "_points")

    def __init__(self, digest: Any) -> None:
        self._digest = digest
        self._names: Counter[str] = Counter()
        self._owners: dict[int, list[Consumer]] = {}
        self._points: list[int] = []

    def slot(self, murmur: int) -> int:
        return (murmur & 0x7FFFFFFF) % (SLOTS - 1) + 1

    def add(self, consumer: Consumer) -> None:
        """Of two consumers on one point the first has it."""
        index = self._names[consumer.name]
        self._names[consumer.name] += 1
        for point in range(POINTS):
            key = f"{consumer.name}\0{index}\0{point}".encode()
            self._owners.setdefault(self.slot(self._digest.murmur3_32(key)), []).append(consumer)
        self._points = sorted(self._owners)

    def remove(self, consumer: Consumer) -> None:
        for slot, owners in list(self._owners.items()):
            owners[:] = [owner for owner in owners if owner is not consumer]
            if not owners:
                del self._owners[slot]
        if all(consumer.name != owner.name for owners in self._owners.values() for owner in owners):
            del self._names[consumer.name]
        self._points = sorted(self._owners)

    def owner(self, slot: int) -> Consumer | None:
        if not self._points:
            return None
        return self._owners[self._points[bisect_left(self._points, slot) % len(self._points)]][0]

    def ranges(self, consumer: Consumer) -> list[list[int]]:
        found: list[list[int]] = []
        start = 1
        for point in [*self._points, SLOTS - 1]:
            if start <= point and self.owner(point) is consumer:
                if found and found[-1][1] == start - 1:
                    found[-1][1] = point
                else:
                    found.append([start, point])
            start = point + 1
        return found


class Sticky:
    """Each consumer has the ranges that it asked for; nobody has the rest, which waits."""

    __slots__ = ("_ranges",)

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, Consumer]] = []

    def slot(self, murmur: int) -> int:
        return (murmur & 0x7FFFFFFF) % SLOTS or 1

    def check(self, wanted: Sequence[tuple[int, int]]) -> None:
        """Refused if a range is none, or somebody has some of it."""
        if not wanted:
            raise Refused(ServerError.ConsumerAssignError, "Ranges for KeyShared policy must not be empty.")
        for index, (start, end) in enumerate(wanted):
            if not 0 <= start <= end < SLOTS:
                raise Refused(ServerError.ConsumerAssignError, f"Range [{start}, {end}] is not within [0, 65535]")
            others = [(known, last) for known, last, _ in self._ranges] + list(wanted[:index])
            for known, last in others:
                if start <= last and known <= end:
                    text = f"Range conflict with consumer: [{start}, {end}] and [{known}, {last}]"
                    raise Refused(ServerError.ConsumerAssignError, text)

    def add(self, consumer: Consumer) -> None:
        self._ranges += [(start, end, consumer) for start, end in consumer.hash_ranges]
        self._ranges.sort(key=lambda known: known[0])

    def remove(self, consumer: Consumer) -> None:
        self._ranges = [known for known in self._ranges if known[2] is not consumer]

    def owner(self, slot: int) -> Consumer | None:
        return next((owner for start, end, owner in self._ranges if start <= slot <= end), None)

    def ranges(self, consumer: Consumer) -> list[list[int]]:
        return [[start, end] for start, end, owner in self._ranges if owner is consumer]


def chosen_by_ring(digest: Any, topic: str, consumers: Sequence[Consumer]) -> Consumer:
    """The active one of a failover subscription on a topic without partitions: another ring, of whole hashes."""
    ring = {
        digest.murmur3_32(f"{consumer.name}{point}".encode()) & 0x7FFFFFFF: consumer
        for consumer in consumers
        for point in range(POINTS)
    }
    points = sorted(ring)
    return ring[points[bisect_left(points, digest.murmur3_32(topic.encode()) & 0x7FFFFFFF) % len(points)]]

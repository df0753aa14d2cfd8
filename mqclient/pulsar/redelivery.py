"""Owns what is asked back: messages refused by the user, after a delay, and redelivery at once."""

from __future__ import annotations

from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING

from mqclient.core.driver import Now
from mqclient.core.timers import Timer
from mqclient.pulsar import requests

if TYPE_CHECKING:
    from mqclient.pulsar.consumer import ConsumerEngine

MAX_IDS = 1000


class Redelivery:
    """Asks entry by entry where the subscription type can (shared, key_shared), else for everything unacknowledged.

    The broker knows entries only: refusing one message of a batch brings back all of it that is not acknowledged.
    """

    __slots__ = ("_by_entry", "_consumer", "_due", "_entries", "_timer")

    def __init__(self, consumer: ConsumerEngine, by_entry: bool) -> None:
        self._consumer = consumer
        self._by_entry = by_entry
        self._due: list[tuple[float, tuple[int, int]]] = []
        self._entries: dict[tuple[int, int], float] = {}
        """Each with its time; what stands in the heap with another one was refused anew, and does not count."""
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def nack(self, ledger: int, entry: int, delay: float) -> None:
        """Ask for it back after the delay; refused twice, the earlier time counts."""
        when = self._consumer.client.driver.now.mono + delay
        if self._entries.get((ledger, entry), inf) <= when:
            return
        self._entries[ledger, entry] = when
        heappush(self._due, (when, (ledger, entry)))
        self._arm()

    def clear(self) -> None:
        """A new subscription: the broker redelivers everything that is not acknowledged by itself."""
        self._entries.clear()
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def all(self) -> None:
        """Everything that is not acknowledged, now."""
        self.clear()
        self._ask([])

    def _arm(self) -> None:
        if self._due and (self._timer is None or self._due[0][0] < self._timer.when):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._consumer.client.timers.at(self._due[0][0], self._on_timer)

    def _on_timer(self, now: Now) -> None:
        self._timer = None
        entries: list[tuple[int, int]] = []
        while self._due and self._due[0][0] <= now.mono:
            when, entry = heappop(self._due)
            if self._entries.get(entry) == when:
                del self._entries[entry]
                entries.append(entry)
        # A part that was refused by itself may also be one of a message refused as a whole: it is asked for once.
        entries = list(dict.fromkeys(entries + self._consumer.chunks.others(entries)))
        if entries:
            self._consumer.acks.flush()  # else a batch would come again with what was acknowledged a moment ago
        if entries and self._by_entry:
            for start in range(0, len(entries), MAX_IDS):
                self._ask(entries[start : start + MAX_IDS])
        elif entries:
            self._consumer.redeliver()
        self._arm()

    def _ask(self, entries: list[tuple[int, int]]) -> None:
        connection = self._consumer.connection
        if connection is not None:
            epoch = None if self._by_entry else self._consumer.epoch
            connection.tell(requests.redeliver(self._consumer.consumer_id, entries, epoch))

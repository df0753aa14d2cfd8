"""Owns looking at Pulsar topics for Spark's driver: where they end, where a time lies, how much lies between."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime, timezone
from difflib import get_close_matches
from typing import Any, Final

from mqclient import pulsar
from mqclient.errors import ConfigError, MQError
from mqclient.spark.access import pulsar_client, reaching
from mqclient.spark.options import LATEST, SERVICE_URL, Position
from mqclient.spark.plan import Ahead
from mqclient.spark.pulsar_places import BEGIN, Place, Range, behind, full, nested, order
from mqclient.spark.read_options import TIME, ReadOptions, time_of

log = logging.getLogger("mqclient.spark")

FORMAT: Final = "mq-pulsar"
FAR: Final = 1 << 40
"""An entry behind the end of every ledger: what comes after it lies in the next one."""
SYSTEM: Final = re.compile(r"__.*")
"""Names of the broker's own topics begin so."""


class Heads:
    """Looks where topics and partitions end, over readers that stay open and ask for no message."""

    def __init__(self, options: ReadOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._open = ExitStack()
        self._readers: dict[str, pulsar.Reader] = {}
        self._subscribers: dict[str, pulsar.Consumer] = {}
        self._client: Any = None
        self._sampled: dict[str, tuple[float, Ahead]] = {}
        """Of each topic what its entries were like, and when: for as long as topics are remembered."""
        self._names: list[str] = []
        self._named_at = float("-inf")

    def look(self) -> dict[str, Place]:
        """Of each topic or partition the place of its last message, BEGIN if it is empty."""
        if self._client is None:
            self._client = self._open.enter_context(pulsar_client(self._options.access))
        found = {}
        with reaching(SERVICE_URL, self._options.access):
            if self._due():
                self._names = self._partitions()
                self._named_at = self._clock()
            for topic in self._names:
                last = self._reader(topic).last_message_id(self._options.timeout)
                found[topic] = BEGIN if last is None else (last.ledger, last.entry, last.batch_index)
        return found

    def settle(self, position: Position, there: Mapping[str, Place], what: str) -> Position:
        """A position by time becomes one by places."""
        if not isinstance(position, dict) or TIME not in position:
            return position
        at = position[TIME]
        by_name = {full(topic): moment for topic, moment in at.items()} if isinstance(at, dict) else at
        found: dict[str, Place] = {}
        for topic, last in there.items():
            moment = time_of({TIME: by_name}, topic.rpartition("-partition-")[0] or topic)
            moment = time_of({TIME: by_name}, topic) if moment is None else moment
            if moment is not None:
                found[topic] = self._before(topic, moment, last)
        return nested(found)

    def measure(
        self, starts: Mapping[str, Place], ends: Mapping[str, Place], there: Mapping[str, Place], sized: bool
    ) -> dict[str, Ahead]:
        """How many entries lie between, and what the first of them holds: an entry is what a producer sent at once."""
        found = {}
        for topic, end in ends.items():
            start = starts.get(topic, BEGIN)
            at, known = self._sampled.get(topic, (float("-inf"), None))
            if known is not None and self._clock() - at < self._options.refresh and within_ledger(start, known, end):
                found[topic] = counted(start, known, end)
                continue
            first = self.first_after(topic, start, end)
            if first is not None:
                found[topic] = ahead_of(first, end)
                self._sampled[topic] = (self._clock(), found[topic])
        return found

    def first_after(self, topic: str, place: Place, end: Place) -> Any:
        """The batch of messages that comes next after a place and not after the end: of the same entry, if more of it
        comes; None if there is none."""
        if not behind(place, end):
            return None
        with self._client.reader(topic, **reading(place, 1, self._options.timeout)) as reader:
            while (batch := reader.receive_batch(self._options.timeout)) is not None:
                here = (batch.entry.ledger, batch.entry.entry)
                if here > end[:2]:
                    return None
                if here != place[:2] or place[2] < 0 or batch[len(batch) - 1].batch_index > place[2]:
                    return batch
                if here == end[:2]:
                    return None
        raise ConfigError(
            f"{topic}: nothing comes after {place}, but it should until {end}: was the topic trimmed, or made anew?"
        )

    def ledgers(self, whole: Range) -> list[tuple[int, int]]:
        """Those that a range lies in, each with its first entry in it."""
        found: list[tuple[int, int]] = []
        place: Place = whole.after
        while (first := self.first_after(whole.topic, place, whole.upto)) is not None:
            found.append((first.entry.ledger, first.entry.entry))
            if first.entry.ledger == whole.upto[0]:
                break
            place = (first.entry.ledger, FAR, -1)
        return found

    def commit(self, places: Mapping[str, Place]) -> None:
        """The named subscription has consumed so far: brokers keep what is behind no longer, and operators see the
        lag."""
        if self._options.subscription is None or self._client is None:
            return
        for topic, (ledger, entry, index) in places.items():
            if ledger >= 0:
                self._subscriber(topic).ack_cumulative(pulsar.MessageId(ledger, entry, -1, index))

    def close(self) -> None:
        self._readers.clear()
        self._subscribers.clear()
        self._client = None
        self._open.close()

    def begin(self, topics: Mapping[str, Place]) -> None:
        """Have the durable subscription from the first look on: nothing may be trimmed before it was read."""
        if self._options.subscription is not None:
            for topic in topics:
                self._subscriber(topic)

    def _subscriber(self, topic: str) -> pulsar.Consumer:
        found = self._subscribers.get(topic)
        if found is None:
            start = "latest" if (self._options.start or LATEST) == LATEST else "earliest"
            opening = self._client.consumer(
                topic, self._options.subscription, type="failover", start=start, receiver_queue=0,
                timeout=self._options.timeout,
            )  # fmt: skip
            found = self._subscribers[topic] = self._open.enter_context(opening)
        return found

    def _reader(self, topic: str) -> pulsar.Reader:
        reader = self._readers.get(topic)
        if reader is None:
            opening = self._client.reader(topic, start="latest", receiver_queue=0, timeout=self._options.timeout)
            reader = self._readers[topic] = self._open.enter_context(opening)
        return reader

    def _due(self) -> bool:
        """Partitions that were added count at once: to ask costs as much as one of them does. All topics of a namespace
        cost more; what was assigned stays, and so does what has no partitions."""
        named = self._options.pattern is None and not self._options.assign
        grows = named and any("-partition-" in name for name in self._names)
        return grows or self._clock() - self._named_at >= self._options.refresh

    def _partitions(self) -> list[str]:
        """What to open: every partition of every topic that is wanted."""
        options, found = self._options, []
        names = list(options.topics) if options.pattern is None else self._matching(options.pattern)
        numbers = {full(topic): wanted for topic, wanted in options.assign.items()}
        for name in names:
            partitions = self._client.partitions(name, options.timeout)
            self._check_there(name, partitions)
            wanted = numbers.get(full(name))
            if wanted is not None:
                chosen = set(wanted if isinstance(wanted, list) else ())
                if not chosen or max(chosen) >= len(partitions):
                    raise ConfigError(
                        f"option assign: topic {name!r} has {len(partitions)} partitions, not all of {wanted}."
                    )
                partitions = [partition for number, partition in enumerate(partitions) if number in chosen]
            found += partitions
        return found

    def _matching(self, pattern: str) -> list[str]:
        found = self._client.topics(pattern, self._options.timeout)
        return [topic for topic in found if not SYSTEM.match(topic.rpartition("/")[2])]

    def _check_there(self, name: str, partitions: list[str]) -> None:
        """A topic without partitions is made by whoever opens it: so look for it before."""
        if partitions != [full(name)] or self._named_at > float("-inf"):
            return
        folder, _, local = full(name).removeprefix("persistent://").rpartition("/")
        try:
            there = self._client.topics(f"{folder}/.*", self._options.timeout)
        except MQError as error:
            log.warning("%s: cannot see which topics %s has: %s", FORMAT, folder, error)
            return
        if full(name).rpartition("-partition-")[0] not in there and full(name) not in there:
            near = get_close_matches(local, [topic.rpartition("/")[2] for topic in there], 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"there is no topic {name!r} at {self._options.access.address}.{hint} A source makes none."
            )

    def _before(self, topic: str, moment: int, last: Place) -> Place:
        """The place behind which messages of that time or later begin."""
        if last == BEGIN:
            return BEGIN
        end = pulsar.MessageId(last[0], last[1], -1, -1)
        given: dict[str, Any] = {"by_batch": True, "receiver_queue": 1, "timeout": self._options.timeout}
        with self._client.reader(topic, start=end, start_inclusive=True, **given) as reader:
            batch = reader.receive_batch(self._options.timeout)
            if batch is None or batch.entry.published_at < moment:
                return last
            reader.seek(datetime.fromtimestamp(moment / 1000, timezone.utc), self._options.timeout)
            batch = reader.receive_batch(self._options.timeout)
        if batch is None:
            return last
        first = (batch.entry.ledger, batch.entry.entry - 1, -1)
        return last if order(last) < order(first) else first


def reading(after: Place, window: int, timeout: float) -> dict[str, Any]:
    """How a reader is opened that begins with the message after a place."""
    given: dict[str, Any] = {"by_batch": True, "receiver_queue": window, "timeout": timeout}
    if after == BEGIN:
        return {"start": "earliest", **given}
    if after[1] < 0:  # before the first entry of a ledger
        return {"start": pulsar.MessageId(after[0], 0, -1, -1), "start_inclusive": True, **given}
    return {"start": pulsar.MessageId(after[0], after[1], -1, after[2]), **given}


def ahead_of(first: Any, end: Place) -> Ahead:
    """From the first entry that comes to the end. Entries are counted within a ledger; brokers alone know how many the
    ones between have."""
    entry = first.entry
    begin = (entry.ledger, entry.entry - 1, -1)
    steps = max(1, end[1] - entry.entry + 1) if entry.ledger == end[0] else None
    return Ahead(begin, steps, float(max(1, len(first))), float(entry.uncompressed_size or len(entry.payload)))


def within_ledger(start: Place, known: Ahead, end: Place) -> bool:
    """Whether a range can be counted by what is known of its ledger's entries."""
    return start[0] == known.begin[0] == end[0] and behind(start, end)


def counted(start: Place, known: Ahead, end: Place) -> Ahead:
    """As `ahead_of`, without looking: an entry that was read in part is counted once more."""
    begin = (start[0], start[1] - (start[2] >= 0), -1)
    return Ahead(begin, max(1, end[1] - begin[1]), known.rows, known.size)

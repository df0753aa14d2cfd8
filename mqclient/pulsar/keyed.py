"""Owns batching by key: entries whose messages share their key, as key-shared subscriptions want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mqclient.errors import ConfigError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.gathering import Gathering, of_batch
from mqclient.pulsar.outgoing import Part, Special, plain, size_of


class KeyedGathering(Gathering):
    """One batch for each key; together they have the limits of one, and are sealed together.

    Each message reserves its own bytes: many batches are open at once, each of them small.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._lanes: dict[tuple[bytes, tuple[Any, ...]], tuple[Batch, Any]] = {}
        self._count = 0
        self._bytes = 0

    @property
    def count(self) -> int:
        return self._count

    def _portion(self, message: Any) -> tuple[int, int]:
        return size_of(plain(message)), 1

    def _overflows(self, message: Any) -> bool:
        """What gathers, in all, is closed before this one."""
        if not self._lanes:
            return False
        item = plain(message)
        return self._bytes + size_of(item) > self.options.batch_max_bytes or -1 < item[5] < self.next_sequence

    def add(self, message: Any, reserved: bool = False) -> Batch:
        add = self._add_special if type(message) is Special else self._add_slowly
        return add(message, reserved)

    def _add_slowly(self, message: Any, reserved: bool) -> Batch:
        self._check(message, reserved)
        portion = self._take_room(message, reserved)
        if self._overflows(message):
            self.seal()
        batch, builder = self._lane(message)
        item = plain(message)
        body, key, properties, event_time, ordering_key, own_id, key_b64 = item
        sequence_id = own_id if own_id >= 0 else self.next_sequence
        if batch.count:
            batch.gaps += sequence_id - batch.last_sequence_id - 1
        try:
            builder.add(body, key, properties, event_time, ordering_key, sequence_id, key_b64)
        except BaseException:
            self._take_back(message, batch, portion)
            raise
        batch.count += 1
        batch.held = (batch.held[0] + portion[0], batch.held[1] + 1)
        self.next_sequence = sequence_id + 1
        self._count += 1
        self._bytes += portion[0]
        if self._count >= self.options.batch_max_messages or self._bytes >= self.options.batch_max_bytes:
            self.seal()
        return batch

    def open(self) -> None:
        """Each reserves its own room, so none is joined without an entry."""

    def join(self, message: Any) -> Batch | None:
        return None  # each reserves its own room

    def add_run(self, items: Sequence[Any], start: int, parts: list[Part], reserved: bool) -> int:
        return self.add_one(items, start, parts, reserved)

    def add_rows(
        self, columns: Mapping[str, Any], start: int, stop: int, reserved: bool, sequence_id: int | None = None
    ) -> tuple[Batch, int]:
        raise ConfigError("rows are not sorted by key: send_arrow needs a producer with batching=True")

    def seal(self) -> None:
        """One entry for each key, in the order of their first messages."""
        lanes, self._lanes = self._lanes, {}
        self.batch, self._count, self._bytes = None, 0, 0
        for batch, builder in lanes.values():
            payload, count = builder.seal()
            self._frame(batch, payload, of_batch(batch, count))

    def _take_back(self, message: Any, batch: Batch, portion: tuple[int, int]) -> None:
        """Of a message that the builder could not write: its room, and its lane if that was made for it."""
        self.client.budget.give(*portion)
        self._uncount()
        if not batch.count:
            del self._lanes[self._key(message)]
            self._drop(batch)
            if self.batch is batch:
                self.batch = next((other for other, _ in self._lanes.values()), None)

    def _key(self, message: Any) -> tuple[bytes, tuple[Any, ...]]:
        item = plain(message)
        return item[4] or (item[1] or "").encode(), tuple(self._introductions.lot(message).items())

    def _lane(self, message: Any) -> tuple[Batch, Any]:
        """Of a key, and of each lot of it."""
        key = self._key(message)
        lane = self._lanes.get(key)
        if lane is None:
            batch = self._new_batch(message)
            batch.scattered = True
            lane = self._lanes[key] = batch, self._codec.BatchBuilder(*self._limits)
            if self.batch is None:
                self.batch = batch
                self._soon()
        return lane

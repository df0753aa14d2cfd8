"""Owns entries of one message each that were written at once: their frames, and the slots of those who wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, final

from mqclient._pure.pulsar.commands import SEND_RECEIPT
from mqclient._pure.pulsar.message_id import MessageId
from mqclient._pure.pulsar.train import is_plain, plain_entry


@final
class EntryFlight:
    """SEND frames of single messages without receipt, in their order, and the slots of those who wait for them."""

    __slots__ = ("_limit", "_name", "_partition", "_producer", "_version", "_waiting", "closed", "landed_bytes")

    def __init__(
        self, producer_id: int, producer_name: str, partition: int, limit: int, schema_version: bytes | None = None
    ) -> None:
        self._producer = producer_id
        self._name = producer_name
        self._partition = partition
        self._limit = limit
        self._version = schema_version
        self._waiting: deque[tuple[bytes, int, int, float, Any]] = deque()
        self.closed = False
        self.landed_bytes = 0

    @property
    def count(self) -> int:
        return len(self._waiting)

    @property
    def size(self) -> int:
        """Of the bodies without receipt."""
        return sum(one[1] for one in self._waiting)

    @property
    def sequence_id(self) -> int:
        return self._waiting[0][2]

    @property
    def last_sequence_id(self) -> int:
        return self._waiting[-1][2]

    @property
    def deadline(self) -> float:
        return self._waiting[0][3]

    def add(self, message: Any, sequence_id: int, published_at: int, deadline: float, slot: Any, /) -> bytes | None:
        """Its frame, to be written now; None where it says what only the long way can, or when this was parted."""
        if self.closed or not is_plain(message):
            return None
        frame = plain_entry(message, self._producer, self._name, sequence_id, published_at, self._limit, self._version)
        if frame is None:
            return None
        self._waiting.append((frame, len(message[0]), sequence_id, deadline, slot))
        return frame

    def take_receipts(self, events: Sequence[Any], at: int, /) -> int:
        """How many SEND_RECEIPT events from `at` on are those of the next entries, in their order; who waits is
        told."""
        taken = self.landed_bytes = 0
        for event in islice(events, at, None):
            if not self._waiting or len(event) != 6 or event[0] != SEND_RECEIPT:
                break
            _, size, number, _, slot = self._waiting[0]
            if event[1:3] != (self._producer, number) or event[3] < 0:
                break
            self._waiting.popleft()
            self.landed_bytes += size
            taken += 1
            slot.complete(MessageId(event[3], event[4], self._partition))
        return taken

    def part(self) -> list[tuple[bytes, int, int, float, Any]]:
        """`(frame, size, sequence id, deadline, slot)` of those without receipt; nobody joins any more."""
        self.closed = True
        left = list(self._waiting)
        self._waiting.clear()
        return left

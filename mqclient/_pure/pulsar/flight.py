"""Owns entries of one message each that were written at once: their frames, and the slots of those who wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, final

from mqclient._pure.pulsar.commands import SEND_RECEIPT
from mqclient._pure.pulsar.encode import encode_metadata, encode_send
from mqclient._pure.pulsar.message_id import MessageId


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
        if self.closed or type(message) is not tuple or len(message) != 7:
            return None
        body, key, properties, event_time, ordering_key, own_id, key_b64 = message
        if type(body) is not bytes or properties is not None or own_id != -1:
            return None
        if type(key) not in (str, type(None)) or type(ordering_key) not in (bytes, type(None)):
            return None
        metadata = encode_metadata(
            self._name,
            sequence_id,
            published_at,
            partition_key=key,
            event_time=event_time,
            schema_version=self._version,
            key_b64=key_b64 or None,
            ordering_key=ordering_key,
        )
        if len(metadata) + len(body) > self._limit:
            return None
        frame = encode_send(self._producer, sequence_id, metadata, body)
        self._waiting.append((frame, len(body), sequence_id, deadline, slot))
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

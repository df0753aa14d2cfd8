"""Owns entries of one message each, put together one behind the other: their frames, and where they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from threading import Lock
from typing import Any, Final, final

from mqclient._pure.pulsar.commands import SEND_RECEIPT
from mqclient._pure.pulsar.encode import encode_metadata, encode_send

_FULL: Final = -1
_OTHER: Final = -2
_AROUND: Final = 72
"""What is reckoned for all that stands in front of the metadata."""
_JOINING: Final = Lock()
"""Of all trains: what native code does in one step takes several here."""


Plain = tuple[bytes, str | None, None, int, bytes | None, int, bool]
"""Of `BatchBuilder.add_many`'s tuples those that `is_plain` lets pass."""


def is_plain(message: Any) -> bool:
    """Whether it says nothing that only the long way can."""
    if type(message) is not tuple or len(message) != 7:
        return False
    body, key, properties, _, ordering_key, own_id, _ = message
    if type(body) is not bytes or properties is not None or own_id != -1:
        return False
    return type(key) in (str, type(None)) and type(ordering_key) in (bytes, type(None))


def plain_entry(
    message: Plain, producer: int, name: str, number: int, published_at: int, limit: int, version: bytes | None
) -> bytes | None:
    """SEND of one message; None if that is larger than an entry may be."""
    body, key, _, event_time, ordering_key, _, key_b64 = message
    metadata = encode_metadata(
        name,
        number,
        published_at,
        partition_key=key,
        event_time=event_time,
        schema_version=version,
        key_b64=key_b64 or None,
        ordering_key=ordering_key,
    )
    return encode_send(producer, number, metadata, body) if len(metadata) + len(body) <= limit else None


@final
class EntryTrain:
    """SEND frames of single messages, one entry each, and where the broker stored each of them."""

    __slots__ = ("_closed", "_dropped", "_frames", "_limit", "_most", "_name", "_places", "_producer", "_published_at",
                 "_version", "first", "size")  # fmt: skip

    def __init__(
        self,
        producer_id: int,
        producer_name: str,
        sequence_id: int,
        published_at: int,
        max_bytes: int,
        limit: int,
        schema_version: bytes | None = None,
    ) -> None:
        self._producer = producer_id
        self._name = producer_name
        self._published_at = published_at
        self._most = max_bytes
        self._limit = limit
        self._version = schema_version
        self._frames: list[bytes] = []
        self._places: list[tuple[int, int]] = []
        self._closed = self._dropped = False
        self.first = sequence_id
        self.size = 0

    @property
    def count(self) -> int:
        return len(self._frames)

    @property
    def landed(self) -> int:
        return len(self._places)

    @property
    def following(self) -> int:
        return self.first + len(self._frames)

    def add(self, message: Any, /) -> int:
        """Its index; -1 where there is no room any more; -2 where it says what only the long way can."""
        if not is_plain(message):
            return _OTHER
        with _JOINING:
            return self._append(message)

    def _append(self, message: Plain) -> int:
        if self._closed or (self._frames and self.size + len(message[0]) + _AROUND > self._most):
            return _FULL
        frame = plain_entry(
            message, self._producer, self._name, self.following, self._published_at, self._limit, self._version
        )
        if frame is None:
            return _OTHER
        self._frames.append(frame)
        self.size += len(frame)
        return len(self._frames) - 1

    def close(self) -> bytes:
        with _JOINING:
            self._closed = True
        return b"".join(self._frames)

    def drop(self) -> None:
        self._frames = [b""] * len(self._frames)
        self._dropped = True
        self.size = 0

    def frame(self, index: int, /) -> bytes:
        if not self._closed or self._dropped or not 0 <= index < len(self._frames):
            raise IndexError(f"frame {index} of {len(self._frames)}, closed: {self._closed}")
        return self._frames[index]

    def land(self, ledger: int, entry: int, /) -> None:
        if len(self._places) >= len(self._frames):
            raise IndexError(f"all {len(self._frames)} have landed")
        self._places.append((ledger, entry))

    def place(self, index: int, /) -> tuple[int, int]:
        if not 0 <= index < len(self._places):
            raise IndexError(f"place {index} of {len(self._places)}")
        return self._places[index]

    def take_receipts(self, events: Sequence[Any], at: int, /) -> int:
        """How many SEND_RECEIPT events from `at` on are those of the next entries, in their order."""
        taken = 0
        for event in islice(events, at, None):
            if not self._closed or self.landed >= self.count or len(event) != 6 or event[0] != SEND_RECEIPT:
                break
            if event[1:3] != (self._producer, self.first + self.landed) or event[3] < 0:
                break
            self._places.append((event[3], event[4]))
            taken += 1
        return taken

"""The accounts in plain Python: Pulsar permits, RocketMQ offsets in flight, acknowledgements not yet told."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mqclient._native.permits import _Ack, _Ackable

DELIVERED: Final = 0
SKIPPED: Final = 1
DISCARDED: Final = 2
EXPIRED: Final = 3
CHUNK: Final = 4

COUNT: Final = 1
BYTES: Final = 2
SPAN: Final = 3

ARM: Final = 1
FLUSH: Final = 2

_REASONS: Final = ("delivered", "skipped", "discarded", "expired", "chunk")
_MOST: Final = 2**31 - 1
_LARGEST_BATCH: Final = 2**24
_WHOLE: Final = _MOST
"""As a batch index: the whole entry, behind every message of it."""


def _checked(count: int) -> int:
    if not 0 <= count <= _MOST:
        raise ValueError(f"{count} is no number of permits")
    return count


class Credits:
    """The permits of one Pulsar consumer, conserved and bound to the epoch of a connection."""

    __slots__ = (
        "_arrived",
        "_excess",
        "_flows",
        "_granted",
        "_live",
        "_owed",
        "_reasons",
        "_resets",
        "_stale_arrived",
        "_stale_released",
        "at_broker",
        "epoch",
        "here",
        "paused",
        "window",
        "zero_queue",
    )

    def __init__(self, window: int) -> None:
        self.window = _checked(window)
        self.zero_queue = window == 0
        self.epoch = -1
        self.at_broker = 0
        self.here = 0
        self.paused = False
        self._live = False
        self._owed = window
        """window - at_broker - here, kept as a sum of its own: the invariant is that both agree."""
        self._arrived = self._granted = self._flows = self._resets = 0
        self._stale_arrived = self._stale_released = self._excess = 0
        self._reasons = [0] * len(_REASONS)

    @property
    def released(self) -> int:
        return max(self._owed, 0)

    @property
    def debt(self) -> int:
        return max(-self._owed, 0)

    @property
    def half(self) -> int:
        return 1 if self.zero_queue else max(self.window // 2, 1)

    def reset(self, epoch: int, /) -> None:
        if epoch < max(self.epoch, 0):
            raise ValueError(f"epoch {epoch} is over, {self.epoch} was reached")
        self.epoch = epoch
        self._live = True
        self.at_broker = self.here = 0
        self._owed = self.window
        self._resets += 1

    def lost(self) -> None:
        self._live = False

    def arrive(self, count: int, epoch: int, /) -> bool:
        _checked(count)
        if epoch != self.epoch or not self._live:
            self._stale_arrived += count
            return False
        self.at_broker -= count
        self.here += count
        self._arrived += count
        return True

    def release(self, count: int, reason: int, epoch: int, /) -> bool:
        _checked(count)
        if not 0 <= reason < len(_REASONS):
            raise ValueError(f"{reason} is no reason to release")
        if epoch != self.epoch or not self._live:
            self._stale_released += count
            return False
        if count > self.here:
            self._excess += count - self.here
            count = self.here
        self.here -= count
        self._owed += count
        self._reasons[reason] += count
        return self.due() > 0

    def due(self) -> int:
        if self._owed < self.half or self.paused or not self._live:
            return 0
        if self.zero_queue and self.window <= self.here:
            return 0
        return self._owed

    def flow(self) -> int:
        count = self.due()
        if count:
            self.at_broker += count
            self._owed -= count
            self._granted += count
            self._flows += 1
        return count

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def resize(self, delta: int, /) -> None:
        if self.zero_queue:
            raise ValueError("the window of a zero-queue consumer is the number of its waiting receives")
        if not 1 <= self.window + delta <= _MOST:
            raise ValueError(f"a window of {self.window + delta} is impossible")
        self._move(delta)

    def receive_waits(self) -> None:
        self._zero_queue_only()
        self._move(1)

    def receive_ends(self) -> None:
        self._zero_queue_only()
        if not self.window:
            raise ValueError("no receive waits")
        self._move(-1)

    def counts(self) -> dict[str, int]:
        return {
            "arrived": self._arrived,
            **dict(zip(_REASONS, self._reasons, strict=True)),
            "granted": self._granted,
            "flows": self._flows,
            "stale_arrived": self._stale_arrived,
            "stale_released": self._stale_released,
            "excess": self._excess,
            "resets": self._resets,
        }

    def _move(self, delta: int) -> None:
        self.window += delta
        self._owed += delta

    def _zero_queue_only(self) -> None:
        if not self.zero_queue:
            raise ValueError("receives are counted by a zero-queue consumer only")


class Outstanding:
    """The offsets of one RocketMQ queue that are here and not yet consumed."""

    __slots__ = ("_order", "_sizes", "bytes", "highest_seen")

    def __init__(self) -> None:
        self._order: deque[int] = deque()
        """Ascending; its first and its last are in flight, those between may be done."""
        self._sizes: dict[int, int] = {}
        self.bytes = 0
        self.highest_seen = -1

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, offset: object, /) -> bool:
        return offset in self._sizes

    @property
    def count(self) -> int:
        return len(self._sizes)

    @property
    def span(self) -> int:
        return self._order[-1] - self._order[0] if self._order else 0

    @property
    def lowest(self) -> int:
        return self._order[0] if self._order else -1

    @property
    def commit_offset(self) -> int:
        if self._order:
            return self._order[0]
        return self.highest_seen + 1 if self.highest_seen >= 0 else -1

    def add(self, offset: int, size: int, /) -> bool:
        if offset < 0 or not 0 <= size <= _MOST:
            raise ValueError(f"no message has offset {offset} and size {size}")
        if offset <= self.highest_seen:
            return False
        self.highest_seen = offset
        self._order.append(offset)
        self._sizes[offset] = size
        self.bytes += size
        return True

    def add_many(self, offsets: Sequence[int], sizes: Sequence[int], /) -> int:
        if len(offsets) != len(sizes):
            raise ValueError(f"{len(offsets)} offsets with {len(sizes)} sizes")
        return sum(map(self.add, offsets, sizes))

    def done(self, offset: int, /) -> bool:
        size = self._sizes.pop(offset, None)
        if size is None:
            return False
        self.bytes -= size
        order, sizes = self._order, self._sizes
        while order and order[0] not in sizes:
            order.popleft()
        while order and order[-1] not in sizes:
            order.pop()
        return True

    def done_many(self, offsets: Iterable[int], /) -> int:
        return sum(map(self.done, offsets))

    def over(self, count: int, bytes: int, span: int, /) -> int:
        if 0 <= count < len(self._sizes):
            return COUNT
        if 0 <= bytes < self.bytes:
            return BYTES
        if 0 <= span < self.span:
            return SPAN
        return 0

    def offsets(self) -> list[int]:
        return list(self._sizes)

    def clear(self) -> int:
        count = len(self._sizes)
        self._order.clear()
        self._sizes.clear()
        self.bytes = 0
        self.highest_seen = -1
        return count


class _Entry:
    """What is acknowledged of one entry: bit set in `left` = not yet."""

    __slots__ = ("forgotten", "left", "size", "waits")

    def __init__(self, size: int, left: int) -> None:
        self.size = size
        self.left = left
        self.waits = False
        self.forgotten = False


def _words(bits: int) -> tuple[int, ...]:
    """Signed 64-bit words, the lowest first."""
    words = []
    while bits:
        word = bits & (2**64 - 1)
        words.append(word - 2**64 if word >> 63 else word)
        bits >>= 64
    return tuple(words)


def _bits(words: Iterable[int]) -> int:
    return sum((word & (2**64 - 1)) << (64 * place) for place, word in enumerate(words))


class AckSet:
    """Acknowledgements of one Pulsar subscription that wait to be told in one ACK."""

    __slots__ = ("_batch_index", "_entries", "_group", "_limit", "_lock", "_moved", "_position", "_size")

    def __init__(self, limit: int = 1000, *, batch_index: bool = True) -> None:
        if not 1 <= limit <= _MOST:
            raise ValueError(f"a group of {limit} acknowledgements is impossible")
        self._limit = limit
        self._batch_index = batch_index
        self._lock = threading.Lock()
        self._entries: dict[tuple[int, int], _Entry] = {}
        self._group: list[tuple[int, int]] = []
        self._position = (-1, -1, -1)
        self._size = 0
        self._moved = False

    def __len__(self) -> int:
        return len(self._group)

    def add(self, message: _Ackable, /) -> int:
        ledger, entry, index, size, ack_set = _place(message)
        with self._lock:
            return self._add(ledger, entry, index, size, ack_set)

    def add_many(self, messages: Iterable[_Ackable], /) -> int:
        return max(map(self.add, messages), default=0)

    def add_id(self, ledger: int, entry: int, batch_index: int = -1, batch_size: int = 0, /) -> int:
        with self._lock:
            return self._add(ledger, entry, batch_index, batch_size, None)

    def add_cumulative(self, message: _Ackable, /) -> int:
        ledger, entry, index, size, _ = _place(message)
        _check_index(index, size)
        if index < 0 or index == size - 1:
            position = (ledger, entry, _WHOLE)
        elif self._batch_index:
            position = (ledger, entry, index)
        else:
            position = (ledger, entry - 1, _WHOLE)
        with self._lock:
            if position <= self._position:
                return self._signal(armed=True)
            armed = self._moved or bool(self._group)
            self._position, self._size, self._moved = position, size, True
            return self._signal(armed)

    def take(self) -> list[_Ack]:
        acks: list[_Ack] = []
        with self._lock:
            for key in self._group:
                entry = self._entries[key]
                entry.waits = False
                acks.append((*key, _words(entry.left)) if entry.left else key)
                if not entry.left or entry.forgotten:
                    del self._entries[key]
            self._group.clear()
        return acks

    def take_cumulative(self) -> _Ack | None:
        with self._lock:
            if not self._moved:
                return None
            self._moved = False
            ledger, entry, index = self._position
            if index == _WHOLE:
                return ledger, entry
            return ledger, entry, _words((1 << self._size) - (1 << index + 1))

    def covers(self, ledger: int, entry: int, batch_index: int = -1, /) -> bool:
        with self._lock:
            if (ledger, entry, _WHOLE if batch_index < 0 else batch_index) <= self._position:
                return True
            known = self._entries.get((ledger, entry))
            if known is None:
                return False
            if batch_index < 0:
                return not known.left
            return batch_index < max(known.size, 1) and not known.left >> batch_index & 1

    def forget(self) -> None:
        with self._lock:
            self._entries = {key: entry for key, entry in self._entries.items() if entry.waits}
            for entry in self._entries.values():
                entry.forgotten = True

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()
            self._group.clear()
            self._position = (-1, -1, -1)
            self._moved = False

    def _add(self, ledger: int, entry: int, index: int, size: int, ack_set: Iterable[int] | None) -> int:
        _check_index(index, size)
        key = (ledger, entry)
        known = self._entries.get(key)
        if known is None:
            left = (1 << size) - 1 if index >= 0 else 0
            if ack_set:
                left &= _bits(ack_set)
            known = self._entries[key] = _Entry(size if index >= 0 else 0, left)
        elif not known.left or (index >= 0 and not known.left >> index & 1):
            return self._signal(armed=True)
        known.left &= ~(1 << index) if index >= 0 else 0
        if known.waits or (known.left and not self._batch_index):
            return self._signal(armed=True)
        armed = self._moved or bool(self._group)
        known.waits = True
        self._group.append(key)
        return self._signal(armed)

    def _signal(self, armed: bool) -> int:
        if len(self._group) >= self._limit or (self._moved and self._limit == 1):
            return FLUSH
        return 0 if armed else ARM


def _place(message: Any) -> tuple[int, int, int, int, Iterable[int] | None]:
    """Ledger, entry, batch index, batch size and ack set of a message or a message id."""
    try:
        entry = message.entry
    except AttributeError:
        shown = repr(message) if isinstance(message, str) else type(message).__name__
        raise TypeError(f"a message, its id, or a list of these is needed here, not {shown}") from None
    if isinstance(entry, int):
        return message.ledger, entry, message.batch_index, message.batch_size, None
    return entry.ledger, entry.entry, message.batch_index, entry.num_messages, entry.ack_set


def _check_index(index: int, size: int) -> None:
    if index >= 0 and not index < size <= _LARGEST_BATCH:
        raise ValueError(f"batch index {index} is not within a batch of {size}")

"""Owns where a message lies: `MessageId`, and how official clients serialize it."""

from __future__ import annotations

from typing import Any, final

from mqclient._pure.pulsar.wire import BYTES, Malformed, data, fields, int32, number
from mqclient.errors import ProtocolError

_DEPTH = 2
"""An id holds that of its first chunk, and that one none."""


@final
class MessageId:
    """Where a message lies. Ordered by ledger, entry and batch index; hashable, picklable."""

    __module__ = "mqclient._pure.pulsar"  # its public name: pickles hold it
    __slots__ = ("batch_index", "batch_size", "entry", "first_chunk", "ledger", "partition")

    ledger: int
    entry: int
    partition: int
    batch_index: int
    batch_size: int
    first_chunk: MessageId | None

    def __init__(
        self,
        ledger: int,
        entry: int,
        partition: int = -1,
        batch_index: int = -1,
        batch_size: int = 0,
        first_chunk: MessageId | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "ledger", ledger)
        put(self, "entry", entry)
        put(self, "partition", partition)
        put(self, "batch_index", batch_index)
        put(self, "batch_size", batch_size)
        put(self, "first_chunk", first_chunk)

    @property
    def ok(self) -> bool:
        """True: in a list of results an id is told from an error by this."""
        return True

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} of a message id cannot be set")

    @staticmethod
    def of_batch(ledger: int, entry: int, partition: int, start: int, stop: int, size: int, /) -> list[MessageId]:
        return [MessageId(ledger, entry, partition, index, size) for index in range(start, stop)]

    @staticmethod
    def from_bytes(data: bytes, /) -> MessageId:
        """Read `to_bytes`, or what the official clients serialize; ProtocolError if it is not that."""
        try:
            return _read(data, 0, len(data), _DEPTH)
        except Malformed as error:
            raise ProtocolError(f"not a message id: {error}") from None

    def to_bytes(self) -> bytes:
        """MessageIdData, as the official clients serialize it."""
        out = number(1, self.ledger) + number(2, self.entry)
        if self.partition != -1:
            out += number(3, self.partition)
        if self.batch_index != -1:
            out += number(4, self.batch_index)
        if self.batch_size > 0:
            out += number(6, self.batch_size)
        if self.first_chunk is not None:
            out += data(7, self.first_chunk.to_bytes())
        return out

    def _place(self) -> tuple[int, int, int, int]:
        return self.ledger, self.entry, self.batch_index, self.partition

    def __lt__(self, other: MessageId, /) -> bool:
        return self._place() < other._place() if isinstance(other, MessageId) else NotImplemented

    def __le__(self, other: MessageId, /) -> bool:
        return self._place() <= other._place() if isinstance(other, MessageId) else NotImplemented

    def __gt__(self, other: MessageId, /) -> bool:
        return self._place() > other._place() if isinstance(other, MessageId) else NotImplemented

    def __ge__(self, other: MessageId, /) -> bool:
        return self._place() >= other._place() if isinstance(other, MessageId) else NotImplemented

    def __eq__(self, other: object, /) -> bool:
        return self._place() == other._place() if isinstance(other, MessageId) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._place())

    def __repr__(self) -> str:
        return f"MessageId({self.ledger}, {self.entry}, {self.partition}, {self.batch_index})"

    def __reduce__(self) -> tuple[Any, ...]:
        return MessageId.from_bytes, (self.to_bytes(),)


def _read(source: bytes, at: int, end: int, depth: int) -> MessageId:
    found: dict[int, int] = {}
    first_chunk = None
    for tag, value, start, stop in fields(source, at, end):
        if tag & 7 == 0:
            found[tag >> 3] = value
        elif tag == 7 << 3 | BYTES:
            if depth == 1:
                raise Malformed("the first chunk's id holds another")
            first_chunk = _read(source, start, stop, depth - 1)
    if 1 not in found or 2 not in found:
        raise Malformed("ledger or entry is missing")
    partition, batch_index, batch_size = (int32(found.get(field, none)) for field, none in ((3, -1), (4, -1), (6, 0)))
    return MessageId(found[1], found[2], partition, batch_index, batch_size, first_chunk)

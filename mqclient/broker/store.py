"""Owns stored records: append-only logs in wire form, of which slices are written to sockets as they are."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

Buffer = bytes | bytearray | memoryview

SEGMENT = 1 << 20
LARGE = SEGMENT // 16
"""A record of so many bytes may have a block of its own."""


class Block(NamedTuple):
    """Records in a row: what `Log.extend` takes, but for the records being in several views."""

    times: array[int]
    marks: array[int]
    ends: array[int]
    views: list[memoryview]
    size: int
    """Bytes of the views."""


class Segment:
    """A run of records in one block that never moves or grows, so views of it may live as long as they like."""

    __slots__ = ("_block", "_used", "ends", "first", "view")

    def __init__(self, first: int, block: bytes | bytearray, ends: array[int] | None = None) -> None:
        self.first = first
        self.ends = array("I") if ends is None else ends
        self._block = block
        self._used = self.ends[-1] if self.ends else 0
        self.view = memoryview(block).toreadonly()

    def room(self) -> int:
        return len(self._block) - self._used

    def append(self, record: Buffer) -> None:
        assert isinstance(self._block, bytearray)
        end = self._used + len(record)
        self._block[self._used : end] = record
        self._used = end
        self.ends.append(end)

    def extend(self, records: Buffer, ends: array[int]) -> None:
        """Several records in one block, with where each ends in there."""
        assert isinstance(self._block, bytearray)
        used = self._used
        self._used += len(records)
        self._block[used : self._used] = records
        self.ends.extend(array("I", map(used.__add__, ends)) if used else ends)

    def start(self, index: int) -> int:
        return self.ends[index - 1] if index else 0

    def search(self, text: bytes) -> Iterator[int]:
        end = self._used
        while (at := self._block.rfind(text, 0, end)) >= 0:
            index = bisect_right(self.ends, at)
            if at + len(text) <= self.ends[index]:
                yield self.first + index
                end = self.start(index)
            else:  # the end of one record and the beginning of the next
                end = at + len(text) - 1


class Log:
    """The records of one queue or topic, numbered from 0, each with the wall time (ms) at which it was stored and a
    mark: a number of 32 bits that means something to the protocol.

    >>> log = Log()
    >>> log.append(b"one", 1000), log.append(b"two", 2000)
    (0, 1)
    >>> views, following = log.read(0, 10, 1 << 20)
    >>> [bytes(view) for view in views], following
    ([b'onetwo'], 2)
    """

    __slots__ = (
        "_capacity",
        "_firsts",
        "_kept",
        "_marks",
        "_next",
        "_segments",
        "_times",
        "bytes",
        "first",
        "saved",
        "unsaved",
    )

    def __init__(self, capacity: int = SEGMENT) -> None:
        self._capacity = capacity
        self._segments: list[Segment] = []
        self._firsts: list[int] = []
        self._times = array("q")
        self._marks = array("i")
        self._kept = 0  # the number of the record to which _times[0] and _marks[0] belong
        self._next = 0
        self.first = 0
        """The oldest record that still may be read."""
        self.bytes = 0
        """How much the records that are kept take."""
        self.saved = 0
        """Where that goes on which is in no file yet, if there are files."""
        self.unsaved: Callable[[Log], None] | None = None
        """Told when there is a first record that is in no file."""

    @property
    def next(self) -> int:
        """The number that the next record will get."""
        return self._next

    @property
    def second(self) -> int:
        """Where the second of its blocks begins: trimming there makes room."""
        return self._firsts[1] if len(self._firsts) > 1 else self._next

    def __len__(self) -> int:
        return self._next - self.first

    def append(self, record: Buffer, when: int, mark: int = 0) -> int:
        """Store one record; its number. A large one that is bytes is kept as it is."""
        if self.unsaved is not None and self.saved == self._next:
            self.unsaved(self)
        if not self._segments or self._segments[-1].room() < len(record):
            if isinstance(record, bytes) and len(record) >= LARGE:
                self._segments.append(Segment(self._next, record, array("I", (len(record),))))
                self._firsts.append(self._next)
            else:
                self._open(len(record))
        if self._segments[-1].first + len(self._segments[-1].ends) == self._next:
            self._segments[-1].append(record)
        self._times.append(when)
        self._marks.append(mark)
        self.bytes += len(record)
        self._next += 1
        return self._next - 1

    def extend(self, records: bytes, ends: array[int], marks: array[int], times: array[int]) -> int:
        """Store several, which lie in one block and end there; the number of the first. A large block is kept as it
        is."""
        first = self._next
        if not ends:
            return first
        if self.unsaved is not None and self.saved == first:
            self.unsaved(self)
        if not self._segments or self._segments[-1].room() < len(records):
            if len(records) >= self._capacity // 16:
                self._segments.append(Segment(first, records, ends))
                self._firsts.append(first)
            else:
                self._open(len(records))
        if self._segments[-1].first + len(self._segments[-1].ends) == first:
            self._segments[-1].extend(records, ends)
        self._times.extend(times)
        self._marks.extend(marks)
        self.bytes += len(records)
        self._next += len(ends)
        return first

    def _open(self, size: int) -> None:
        # The first segment is small: a broker may have thousands of queues with a handful of messages each.
        capacity = self._capacity if self._segments else min(self._capacity, 1 << 14)
        self._segments.append(Segment(self._next, bytearray(max(capacity, size))))
        self._firsts.append(self._next)

    def record(self, number: int) -> memoryview:
        """One record; asking for one that is not there is a bug of the caller."""
        segment = self._segment(number)
        index = number - segment.first
        return segment.view[segment.start(index) : segment.ends[index]]

    def time(self, number: int) -> int:
        return self._times[number - self._kept]

    def mark(self, number: int) -> int:
        """0 of a record that is gone."""
        return self._marks[number - self._kept] if number >= self._kept else 0

    def marks(self) -> array[int]:
        """Those of all records that are kept."""
        return self._marks[self.first - self._kept :]

    def read(self, start: int, count: int, limit: int) -> tuple[list[memoryview], int]:
        """Up to `count` records and `limit` bytes (one at least) as few contiguous views, and the number after."""
        views: list[memoryview] = []
        at, stop = start, min(start + count, self._next)
        while at < stop:
            segment = self._segment(at)
            index = at - segment.first
            begin = segment.start(index)
            end = min(stop - segment.first, len(segment.ends))
            end = max(bisect_right(segment.ends, begin + limit, index, end), index if views else index + 1)
            if end == index:
                break
            views.append(segment.view[begin : segment.ends[end - 1]])
            limit -= segment.ends[end - 1] - begin
            at = segment.first + end
            if end < len(segment.ends):
                break
        return views, at

    def block(self, start: int) -> Block:
        """Everything from there on, for a file."""
        ends = array("I")
        views: list[memoryview] = []
        size, at = 0, start
        while at < self._next:
            segment = self._segment(at)
            index = at - segment.first
            begin, shift = segment.start(index), size - segment.start(index)
            ends.extend(array("I", map(shift.__add__, segment.ends[index:])) if shift else segment.ends[index:])
            views.append(segment.view[begin : segment.ends[-1]])
            size += len(views[-1])
            at = segment.first + len(segment.ends)
        kept = slice(start - self._kept, None)
        return Block(self._times[kept], self._marks[kept], ends, views, size)

    def begin(self, first: int) -> None:
        """Let an empty log's numbers begin there, as those before are gone."""
        self.first = self.saved = self._next = self._kept = first

    def size(self, number: int) -> int:
        segment = self._segment(number)
        index = number - segment.first
        return segment.ends[index] - segment.start(index)

    def at_or_after(self, when: int) -> int:
        """The first record stored at this time or later; the next number if all are older."""
        return max(self.first, self._kept + bisect_left(self._times, when))

    def at_or_before(self, when: int) -> int:
        """The last record stored at this time or earlier; the first if all are newer."""
        return max(self.first, self._kept + bisect_right(self._times, when) - 1)

    def search(self, text: bytes) -> Iterator[int]:
        """The records that hold these bytes somewhere, the newest first: there is no index to keep up for it."""
        for segment in reversed(self._segments):
            for number in segment.search(text):
                if number >= self.first:
                    yield number

    def trim(self, first: int) -> None:
        """Forget what is older than this number, as an expired file would be."""
        first = min(first, self._next)
        if first <= self.first:
            return
        self.first = first
        self.saved = max(self.saved, first)
        while self._segments and self._segments[0].first + len(self._segments[0].ends) <= first:
            self.bytes -= self._segments[0].ends[-1]
            del self._segments[0], self._firsts[0]
        kept = self._segments[0].first if self._segments else first
        del self._times[: kept - self._kept], self._marks[: kept - self._kept]
        self._kept = kept

    def _segment(self, number: int) -> Segment:
        if number >= self._firsts[-1]:  # nearly always: readers follow the writer
            return self._segments[-1]
        return self._segments[bisect_right(self._firsts, number) - 1]

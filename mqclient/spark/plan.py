"""Owns the planning of RocketMQ reads: which range of which queue each Spark task gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from mqclient.errors import ConfigError
from mqclient.spark.options import EARLIEST, Position


class Queue(NamedTuple):
    """One queue of a topic; sorts by topic, broker, number."""

    topic: str
    broker: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}, broker {self.broker}, queue {self.number}"


class Range(NamedTuple):
    """Offsets `start` (included) to `end` (excluded) of one queue; what a task reads, no more and no less."""

    queue: Queue
    start: int
    end: int


Ends = Mapping[Queue, tuple[int, int]]
"""Of each queue: the oldest offset there is, and the next one to be written."""


def resolve(position: Position, ends: Ends, what: str, *, clamp: bool = False) -> dict[Queue, int]:
    """An offset for each queue: symbolic, or named by the user; queues left out begin first and end last.

    `clamp`: an offset that is not there becomes the nearest one that is; without it is an error.
    """
    if isinstance(position, str):
        return {queue: ends[queue][0 if position == EARLIEST else 1] for queue in ends}
    wanted = flat(position, what)
    unknown = sorted(set(wanted) - set(ends))
    if unknown and not clamp:
        raise ConfigError(f"option {what}: there is no {unknown[0]}.")
    side = 1 if what == "endingOffsets" else 0
    found = {}
    for queue, (first, last) in ends.items():
        offset = wanted.get(queue, ends[queue][side])
        offset = {-2: first, -1: last}.get(offset, offset)
        if not first <= offset <= last:
            if not clamp:
                raise ConfigError(
                    f"option {what}: offset {offset} of {queue} is not there: it has {first} to {last}. "
                    'With .option("failOnDataLoss", "false") the nearest one is taken.'
                )
            offset = min(max(offset, first), last)
        found[queue] = offset
    return found


def flat(nested: Mapping[str, Any], what: str) -> dict[Queue, int]:
    """{"topic": {"broker": {"queue": offset}}}, or a whole stream offset with these under "q", by queue.

    >>> flat({"orders": {"broker-a": {"0": 7}}}, "startingOffsets")
    {Queue(topic='orders', broker='broker-a', number=0): 7}
    """
    found: dict[Queue, int] = {}
    try:
        for topic, brokers in (nested["q"] if nested.get("v") == 1 else nested).items():
            for broker, queues in brokers.items():
                found |= {Queue(topic, broker, int(number)): int(offset) for number, offset in queues.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        shape = '{"topic": {"broker": {"queue": offset}}}'
        raise ConfigError(f"option {what}: {nested} is not of the form {shape}.") from None
    return found


def nested(offsets: Mapping[Queue, int]) -> dict[str, Any]:
    """The inverse of `flat`, in one order always: Spark compares offsets as text."""
    found: dict[str, Any] = {}
    for queue in sorted(offsets):
        found.setdefault(queue.topic, {}).setdefault(queue.broker, {})[str(queue.number)] = offsets[queue]
    return found


def ranges(starts: Mapping[Queue, int], ends: Mapping[Queue, int]) -> list[Range]:
    """What lies between; ends before their starts are errors."""
    found = []
    for queue in sorted(ends):
        start, end = starts.get(queue, 0), ends[queue]
        if end < start:
            raise ConfigError(f"{queue} ends at {end}, before its start {start}: the topic was made anew?")
        found.append(Range(queue, start, end))
    return found


def split(wholes: Iterable[Range], max_records: int | None, min_partitions: int | None = None) -> list[Range]:
    """Leave out what is empty; cut what holds more than a task may get into pieces of nearly equal size.

    >>> [(piece.start, piece.end) for piece in split([Range(Queue("t", "b", 0), 0, 10)], 4)]
    [(0, 3), (3, 6), (6, 10)]
    """
    full = [whole for whole in wholes if whole.end > whole.start]
    total = sum(whole.end - whole.start for whole in full)
    pieces: list[Range] = []
    for whole in full:
        size = whole.end - whole.start
        count = 1 if max_records is None else -(-size // max_records)
        if min_partitions is not None and min_partitions > len(full):
            count = max(count, round(size / total * min_partitions))
        marks = [whole.start + size * index // count for index in range(min(count, size) + 1)]
        marks[-1] = whole.end
        pieces += [Range(whole.queue, low, high) for low, high in pairwise(marks)]
    return pieces


def limited(starts: Mapping[Queue, int], ends: Mapping[Queue, int], limit: int) -> dict[Queue, int]:
    """Ends so that no more than `limit` messages lie before them, shared by backlog; a queue with any gets at least
    one, and none goes back."""
    backlog = {queue: max(0, end - starts.get(queue, 0)) for queue, end in ends.items()}
    total = sum(backlog.values())
    if total <= limit:
        return dict(ends)
    found = {}
    for queue in sorted(ends):
        share = backlog[queue] * limit // total
        found[queue] = min(starts.get(queue, 0), ends[queue]) + min(backlog[queue], max(1, share))
    return found


def heads(there: Ends) -> dict[Queue, int]:
    return {queue: last for queue, (_, last) in there.items()}


def firsts(there: Ends) -> dict[Queue, int]:
    """Where queues begin that appear while a stream runs."""
    return {queue: first for queue, (first, _) in there.items()}


def behind(one: int, other: int) -> bool:
    """Whether a position lies before another."""
    return one < other


def backlog(starts: Mapping[Queue, int], ends: Mapping[Queue, int]) -> int:
    """How many messages lie between."""
    return sum(max(0, end - starts.get(queue, 0)) for queue, end in ends.items())

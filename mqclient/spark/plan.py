"""Owns the planning of RocketMQ reads: which range of which queue each Spark task gets; and what both systems share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError
from mqclient.spark.filters import Bounds
from mqclient.spark.options import EARLIEST, Position
from mqclient.spark.read_options import ReadOptions

MANY: Final = 1 << 20
"""Steps of a batch where nothing tells how many there are or may be."""


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


def between(heads: Any, options: ReadOptions, resolve: Any) -> tuple[Any, Any, Any]:
    """Of a batch read of either system: what is there, and where everything begins and ends."""
    there = heads.look()
    if not there:
        raise ConfigError(f"option topicPattern={options.pattern!r}: no topic of {options.access.address} matches.")
    clamp = not options.fail_on_data_loss
    starts, stops = (
        resolve(heads.settle(position, there, what), there, what, clamp=clamp)
        for position, what in ((options.start or EARLIEST, "startingOffsets"), (options.end, "endingOffsets"))
    )
    return there, starts, stops


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


def clipped(
    wholes: Iterable[Range], bounds: Bounds, low: Mapping[Queue, int], high: Mapping[Queue, int]
) -> list[Range]:
    """Without what a query's conditions leave out. `low` and `high`: where the times lie that they name."""
    found = []
    for whole in wholes:
        queue, most = whole.queue, bounds.most("offset")
        named = (("topic", queue.topic), ("broker", queue.broker), ("queue", queue.number))
        if bounds.impossible() or not all(bounds.allows(column, value) for column, value in named):
            continue
        start = max(whole.start, low.get(queue, 0), bounds.least("offset") or 0)
        # Old brokers give the nearest offset to a time, which may be the one before: one more does no harm.
        stop = min(whole.end, high.get(queue, whole.end) + 1, whole.end if most is None else most + 1)
        if start < stop:
            found.append(Range(queue, start, stop))
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
        count = min(count, size)  # no piece is empty
        marks = [whole.start + size * index // count for index in range(count + 1)]
        pieces += [Range(whole.queue, low, high) for low, high in pairwise(marks)]
    return pieces


class Ahead(NamedTuple):
    """What lies between two positions: `steps` from `begin` on (None: more than can be told), rows and bytes of one."""

    begin: Any
    steps: int | None
    rows: float
    size: float


class Limit(NamedTuple):
    """What one batch of a stream may hold; None: any number."""

    rows: int | None = None
    size: int | None = None

    def share(self, ahead: Iterable[Ahead]) -> float:
        """Which part of everything fits."""
        whole = list(ahead)
        rows = sum(self.steps(one) * one.rows for one in whole)
        size = sum(self.steps(one) * one.size for one in whole)
        shares = [most / there for most, there in ((self.rows, rows), (self.size, size)) if most is not None and there]
        return min(shares, default=1.0)

    def steps(self, ahead: Ahead) -> int:
        """So many steps there are; where that cannot be told, as many as would fit."""
        if ahead.steps is not None:
            return ahead.steps
        fits = [self.rows / ahead.rows] if self.rows is not None and ahead.rows else []
        fits += [self.size / ahead.size] if self.size is not None and ahead.size else []
        return max(1, int(min(fits, default=MANY)))


def within(limit: Limit, ends: Mapping[Any, Any], ahead: Mapping[Any, Ahead], advance: Any) -> dict[Any, Any]:
    """Ends so that no more than the limit lies before them, shared by backlog: whoever has any gets at least a step."""
    share, found = limit.share(ahead.values()), dict(ends)
    for key, one in ahead.items():
        steps = max(1, int(limit.steps(one) * min(share, 1.0)))
        if one.steps is None or steps < one.steps:
            found[key] = advance(one.begin, steps)
    return found


def advance(begin: int, steps: int) -> int:
    """So many messages further."""
    return begin + steps


def heads(there: Ends) -> dict[Queue, int]:
    return {queue: last for queue, (_, last) in there.items()}


def firsts(there: Ends) -> dict[Queue, int]:
    """Where queues begin that appear while a stream runs."""
    return {queue: first for queue, (first, _) in there.items()}


def behind(one: int, other: int) -> bool:
    """Whether a position lies before another."""
    return one < other

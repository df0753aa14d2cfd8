"""Owns reading RocketMQ for Spark: where queues end, what tasks get, and exact ranges as record batches."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from difflib import get_close_matches
from typing import Any, Final

from mqclient import rocketmq
from mqclient.errors import ConfigError, DeadlineError, MQError
from mqclient.spark import schema
from mqclient.spark.access import reaching
from mqclient.spark.access import rocketmq_client as client
from mqclient.spark.arrow import Maker, Piece, gathered
from mqclient.spark.filters import Bounds
from mqclient.spark.options import NAME_SERVER, Position
from mqclient.spark.plan import (
    Ahead,
    Ends,
    Queue,
    Range,
    advance,
    behind,
    between,
    clipped,
    firsts,
    flat,
    heads,
    nested,
    ranges,
    resolve,
    split,
)
from mqclient.spark.read_options import ROCKETMQ_SOURCE, TIME, ReadOptions, time_of

__all__ = ["advance", "behind", "client", "firsts", "flat", "heads", "nested", "plan", "read", "resolve"]
"""Together with the rest of this module: what `stream.Tracker` and `formats` ask of a system."""

log = logging.getLogger("mqclient.spark")

FORMAT: Final = "mq-rocketmq"
KEY: Final = "q"
COLUMNS: Final = schema.ROCKETMQ
OPTIONS: Final = ROCKETMQ_SOURCE
GROUP: Final = "mqclient-spark"
"""Whose pulls these are, for quotas and logs, where the user names no group."""
TOPIC_NOT_EXIST: Final = 17
"""The code of brokers' and name servers' answer."""
BATCH: Final = 4096
SAMPLE: Final = 32
"""Messages that are looked at to learn how large they are."""
SYSTEM: Final = re.compile(r"%RETRY%.*|%DLQ%.*|rmq_sys_.*|RMQ_SYS_.*|.*_REPLY_TOPIC|SCHEDULE_TOPIC_XXXX|TBW102|"
                           r"SELF_TEST_TOPIC|OFFSET_MOVED_EVENT|TRANS_CHECK_MAX_TIME_TOPIC|BenchmarkTest|DefaultCluster|"
                           r"DefaultHeartBeatSyncerTopic")  # fmt: skip
"""What no pattern finds: topics of brokers themselves."""


class Heads:
    """Looks where the queues of the topics begin and end, over one client that stays."""

    def __init__(self, options: ReadOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._clock = clock
        self._open = ExitStack()
        self._client: Any = None
        self._admin: Any = None
        self._matching: list[str] = []
        self._matched_at = float("-inf")
        self._known: set[str] = set()

    def look(self) -> Ends:
        """Of each queue: the oldest offset, and the next one to be written."""
        if self._admin is None:
            self._client = self._open.enter_context(client(self._options.access))
            self._admin = self._open.enter_context(self._client.admin())
        found: dict[Queue, tuple[int, int]] = {}
        with reaching(NAME_SERVER, self._options.access):
            for topic in self._topics():
                for queue, has in self._offsets(topic).items():
                    if wanted(self._options.assign, Queue(*queue)):
                        found[Queue(*queue)] = (has["min"] or 0, has["max"] or 0)
        self._check_assigned(found)
        return found

    def settle(self, position: Position, there: Ends, what: str) -> Position:
        """A position by time becomes one by offsets."""
        if not isinstance(position, dict) or TIME not in position:
            return position
        found: dict[Queue, int] = {}
        for topic in sorted({queue.topic for queue in there}):
            moment = time_of(position, topic)
            if moment is not None:
                at = self._admin.offsets_at(topic, moment, timeout=self._options.timeout)
                found |= {Queue(*queue): offset for queue, offset in at.items() if Queue(*queue) in there}
        # The offset at a time was asked for after the ends: it may lie behind them.
        return nested({queue: min(max(offset, there[queue][0]), there[queue][1]) for queue, offset in found.items()})

    def measure(
        self, starts: Mapping[Queue, int], ends: Mapping[Queue, int], there: Ends, sized: bool
    ) -> dict[Queue, Ahead]:
        """How much lies between, in bytes too if it is `sized`: judged by the first messages of each queue."""
        found = {}
        for queue, end in ends.items():
            start = starts.get(queue, 0)
            if start < end:
                size = self._size(queue, max(start, there.get(queue, (0, 0))[0]), end) if sized else 0.0
                found[queue] = Ahead(start, end - start, 1.0, size)
        return found

    def begin(self, there: Ends) -> None:
        """A stream begins: what brokers would refuse later is told now, and the group is there that is to be told."""
        self.check_filter(there)
        group = self._options.group
        try:
            if group is not None and group not in self._admin.groups(self._options.timeout):
                self._admin.create_group(group, self._options.timeout)
        except MQError as error:
            # Who may read a topic need not be an operator; the query itself does without the group.
            log.warning("%s: cannot see to it that group %s is there: %s", FORMAT, group, error)

    def check_filter(self, there: Ends) -> None:
        """An expression that brokers do not take is an error on the driver; opening to read nothing asks them."""
        if self._options.sql and there:
            queue = rocketmq.MessageQueue(*min(there))
            given: dict[str, Any] = {"assign": {queue: (0, 0)}, "expression": rocketmq.Sql(self._options.expression)}
            with self._client.pull_consumer(self._options.group or GROUP, timeout=self._options.timeout, **given):
                pass

    def commit(self, places: Mapping[Queue, int]) -> None:
        """The named group has consumed so far: operators see how far the query lags."""
        if self._options.group is not None and self._admin is not None:
            offsets = {rocketmq.MessageQueue(*queue): offset for queue, offset in places.items()}
            self._admin.commit_offsets(self._options.group, offsets, timeout=self._options.timeout)

    def close(self) -> None:
        self._client = self._admin = None
        self._open.close()

    def _topics(self) -> list[str]:
        if self._options.pattern is None:
            return list(self._options.topics)
        if self._clock() - self._matched_at >= self._options.refresh:
            pattern = re.compile(self._options.pattern)
            topics = self._admin.topics(self._options.timeout)
            self._matching = [topic for topic in topics if pattern.fullmatch(topic) and not SYSTEM.fullmatch(topic)]
            self._matched_at = self._clock()
        return self._matching

    def _offsets(self, topic: str) -> Mapping[Any, Any]:
        """A topic that is not there is an error; one that went away is, too, unless the user accepts losses."""
        try:
            found: Mapping[Any, Any] = self._admin.offsets(topic, timeout=self._options.timeout)
        except MQError as error:
            if error.code != TOPIC_NOT_EXIST:
                raise
            if topic in self._known and (self._options.pattern or not self._options.fail_on_data_loss):
                log.warning("%s: topic %s is not there any more", FORMAT, topic)
                return {}
            raise ConfigError(self._missing(topic)) from None
        self._known.add(topic)
        return found

    def _missing(self, topic: str) -> str:
        near = get_close_matches(topic, self._admin.topics(self._options.timeout), 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return f"there is no topic {topic!r} at {self._options.access.address}.{hint} A source makes none."

    def _check_assigned(self, found: Mapping[Queue, Any]) -> None:
        there = {(queue.topic, queue.number) for queue in found}
        for topic, numbers in self._options.assign.items():
            for number in {one for part in _parts(numbers) for one in part}:
                if topic in self._known and (topic, number) not in there:
                    raise ConfigError(f"option assign: topic {topic!r} has no such queue {number}.")

    def _size(self, queue: Queue, start: int, end: int) -> float:
        """Bytes of a message here, on an average of the first ones."""
        given: dict[str, Any] = {"pull_batch": SAMPLE, "timeout": self._options.timeout}
        assign = {rocketmq.MessageQueue(*queue): (start, min(start + SAMPLE, end))}
        with self._client.pull_consumer(self._options.group or GROUP, assign=assign, **given) as consumer:
            batch = consumer.receive_batch(SAMPLE, self._options.timeout)
        return float(batch.size / len(batch)) if batch else 0.0


def _parts(numbers: Any) -> list[list[int]]:
    return list(numbers.values()) if isinstance(numbers, dict) else [numbers]


def wanted(assign: Mapping[str, Any], queue: Queue) -> bool:
    """Whether a queue is among those assigned, if any are."""
    numbers = assign.get(queue.topic)
    if numbers is None:
        return not assign
    return queue.number in (numbers.get(queue.broker, ()) if isinstance(numbers, dict) else numbers)


def plan(options: ReadOptions, bounds: Bounds | None = None) -> list[Range]:
    """The tasks of a batch read; `bounds`: what the query itself leaves out."""
    with closing(Heads(options)) as heads:
        there, starts, stops = between(heads, options, resolve)
        heads.check_filter(there)
        wholes = ranges(starts, stops)
        if bounds is not None:
            low, high = (
                flat(at, "filter") if isinstance(at := heads.settle({TIME: moment}, there, ""), dict) else {}
                for moment in bounds.times()
            )
            wholes = clipped(wholes, bounds, low, high)
    return split(wholes, options.max_records, options.min_partitions)


def stream_ranges(
    options: ReadOptions, heads: Heads, starts: Mapping[Queue, int], stops: Mapping[Queue, int], there: Ends
) -> list[Range]:
    """The tasks of a batch of a stream; what brokers deleted meanwhile is an error, or passed over."""
    found = []
    for queue in sorted(stops):
        start, stop = starts.get(queue, 0), stops[queue]
        first, last = there.get(queue, (0, -1))
        if start != stop and not first <= min(start, stop) <= max(start, stop) <= last:
            lost = f"{queue}: offsets {start} to {stop} are not all there, it has {first} to {last}"
            if options.fail_on_data_loss:
                raise ConfigError(f'{lost}. .option("failOnDataLoss", "false") goes on with what is there.')
            log.warning("%s: %s", FORMAT, lost)
            # A queue that was made anew ends before its start: it is read from its beginning.
            start = first if stop < start else max(start, first)
            stop = min(stop, last)
        found.append(Range(queue, start, stop))
    return split(found, options.max_records, options.min_partitions)


def read(options: ReadOptions, part: Range, arrow_schema: Any) -> Iterator[Any]:
    """All record batches of a range."""
    maker = Maker(arrow_schema, schema.by_name(COLUMNS))
    return gathered(_pieces(options, part), maker, options.batch_rows, options.batch_bytes)


def _pieces(options: ReadOptions, part: Range) -> Iterator[Piece]:
    queue = part.queue
    same = {"topic": queue.topic, "broker": queue.broker, "queue": queue.number}
    given: dict[str, Any] = {
        "assign": {rocketmq.MessageQueue(*queue): (part.start, part.end)},
        "expression": rocketmq.Sql(options.expression) if options.sql else options.expression,
        "pull_batch": min(BATCH, part.end - part.start),  # what lies behind the end would come for nothing
        "timeout": options.timeout,
    }
    with (
        client(options.access) as borrowed,
        borrowed.pull_consumer(options.group or GROUP, **given) as consumer,
    ):
        position = part.start
        while not consumer.ended:
            batch = consumer.receive_batch(BATCH, options.timeout)
            if batch is not None:
                position = batch.last_offset + 1
                yield Piece(batch, len(batch), batch.size, same, 0, len(batch))
            elif not consumer.ended:
                raise DeadlineError(
                    f"{queue}: nothing came for {options.timeout:g} s after offset {position}, "
                    f"{part.end - position} messages before the end (option timeoutSeconds)"
                )

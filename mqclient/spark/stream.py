"""Owns a stream's offsets: where it begins, how far a batch goes, and what lies between; without Spark, so testable.

An offset is `{"v": 1, "q" or "p": positions}`. The first one is symbolic, `{"v": 1, "start": "latest"}`, for Spark asks
for it twice and keeps it nowhere. What it meant stands in the end offset of the first batch, under "init", and so in
Spark's log: a batch that is done again reads the same. Queues that appear later enter the same way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from mqclient.errors import ConfigError, MQError
from mqclient.spark.committer import Committer
from mqclient.spark.options import LATEST
from mqclient.spark.plan import Ahead, Limit, within
from mqclient.spark.read_options import ReadOptions

log = logging.getLogger("mqclient.spark")

VERSION: Final = 1
TRIES: Final = 3
MOMENT: Final = 1.0
"""Seconds for which ends that were seen will do where later ones would change nothing."""
AWAKE: Final = 0.01
"""Seconds between two looks when there was something just now; each look that finds nothing doubles them."""
Offset = dict[str, Any]


class Tracker:
    """The driver's side of one stream. `system`: the module of RocketMQ or Pulsar."""

    def __init__(
        self,
        system: Any,
        options: ReadOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._system = system
        self._options = options
        self._clock = clock
        self._sleep = sleep
        self._heads = system.Heads(options)
        self._committer = Committer(self._heads.commit)
        self._begun = False
        self._seen: Mapping[Any, Any] = {}
        self._seen_at = float("-inf")
        self._pause = 0.0
        """How long after a look the next one may come, where it is asked for sooner."""
        self._full_at = clock()
        """When a batch was last large enough, or the stream began: `minOffsetsPerTrigger` waits from here."""
        self._target: Mapping[Any, Any] | None = None
        self._asked: tuple[Any, Mapping[Any, Ahead]] | None = None

    def initial(self) -> Offset:
        """Symbolic: it means the same whenever it is asked for."""
        return {"v": VERSION, "start": self._options.start or LATEST}

    def latest(self, start: Offset, limit: Limit | None) -> Offset:
        """How far a batch from `start` on goes; the very `start` if there is nothing for one, or not enough.

        Spark believes that (`processAllAvailable`, `availableNow`): "nothing" is what brokers say after it was asked.
        """
        system, there = self._system, self._plenty(start, limit)
        if there is None:
            self._rest()
            there = self._look()
        starts, init = self._starts(start, there)
        now = system.heads(there)
        heads = now if self._target is None else self._target
        # A queue that is gone keeps its place. One that went back was made anew: only `ranges` may accept that.
        ends = starts | {key: head for key, head in heads.items() if not self._is_past(starts, key, head, now)}
        if "start" not in start and (ends == starts or self._too_few(starts, ends, limit)):
            self._pause = min(max(AWAKE, 2 * self._pause), self._options.poll)
            return start
        if limit is not None:
            ends = within(limit, ends, self._ahead(starts, ends, limit.size is not None), system.advance)
        self._full_at = self._clock()
        self._pause = 0.0
        found: Offset = {"v": VERSION, system.KEY: system.nested(ends)}
        return found | ({"init": system.nested(init)} if init else {})

    def _plenty(self, start: Offset, limit: Limit | None) -> Mapping[Any, Any] | None:
        """What was seen a moment ago, if it fills a batch already: while it catches up, a query asks brokers little."""
        if limit is None or "start" in start or not self._seen or self._clock() - self._seen_at >= MOMENT:
            return None
        starts = self._system.flat(self._checked(start), "start")
        ends = {key: head for key, head in self._system.heads(self._seen).items() if key in starts}
        return self._seen if limit.share(self._ahead(starts, ends, limit.size is not None).values()) < 1 else None

    def ranges(self, start: Offset, end: Offset) -> list[Any]:
        """What tasks read. It follows from the two offsets alone, but for what is not there any more."""
        if "start" in start and start == end:
            return []
        system = self._system
        known = {} if "start" in start else system.flat(self._checked(start), "start")
        starts = known | (system.flat(end["init"], "init") if "init" in end else {})
        stops = system.flat(self._checked(end), "end")
        return list(system.stream_ranges(self._options, self._heads, starts, stops, self._look(MOMENT)))

    def freeze(self) -> None:
        """Trigger.AvailableNow: nothing beyond what is there now."""
        self._target = self._system.heads(self._look())

    def report(self) -> Offset:
        """Where the queues end, as it was seen last: for those who look at lag."""
        return {"v": VERSION, self._system.KEY: self._system.nested(self._system.heads(self._look(MOMENT)))}

    def commit(self, end: Offset) -> None:
        """Everything up to here was processed. Never raises: Spark would end the query."""
        self._pause = 0.0  # a batch begins, of this source or of another one of the query: that must not wait for us
        if self._system.KEY in end:
            self._committer.tell(self._system.flat(end, "end"))

    def close(self) -> None:
        self._committer.close()
        self._heads.close()

    def _starts(self, start: Offset, there: Mapping[Any, Any]) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Where everything begins, and the part of it that `start` does not tell."""
        system = self._system
        if "start" in start:
            clamp = not self._options.fail_on_data_loss
            position = self._heads.settle(start["start"], there, "startingOffsets")
            starts = system.resolve(position, there, "startingOffsets", clamp=clamp)
            return starts, starts
        starts = system.flat(self._checked(start), "start")
        new = {key: first for key, first in system.firsts(there).items() if key not in starts}
        if new and self._target is not None:
            new = {key: first for key, first in new.items() if key in self._target}
        return starts | new, new

    def _is_past(self, starts: Mapping[Any, Any], key: Any, head: Any, now: Mapping[Any, Any]) -> bool:
        """Whether what was frozen lies behind us. Where the queue itself does, it went back: an error, or accepted."""
        if key not in starts or not self._system.behind(head, starts[key]):
            return False
        if key in now and not self._system.behind(now[key], starts[key]):
            return True
        if self._options.fail_on_data_loss:
            raise ConfigError(
                f"{key} ends at {now.get(key, head)}, before what was read already ({starts[key]}): it was made anew? "
                'With .option("failOnDataLoss", "false") it is read from its beginning.'
            )
        return False

    def _too_few(self, starts: Mapping[Any, Any], ends: Mapping[Any, Any], limit: Limit | None) -> bool:
        least = self._options.min_per_trigger
        if least is None or self._target is not None:
            return False
        if self._clock() - self._full_at >= self._options.trigger_delay:
            return False
        ahead = self._ahead(starts, ends, limit is not None and limit.size is not None).values()
        return all(one.steps is not None for one in ahead) and sum((one.steps or 0) * one.rows for one in ahead) < least

    def _ahead(self, starts: Mapping[Any, Any], ends: Mapping[Any, Any], sized: bool) -> Mapping[Any, Ahead]:
        """What lies between. Brokers are asked for it, so what was asked last is kept."""
        asked = (dict(starts), dict(ends), sized)
        if self._asked is None or self._asked[0] != asked:
            self._asked = (asked, self._heads.measure(starts, ends, self._seen, sized))
        return self._asked[1]

    def _rest(self) -> None:
        """Spark asks a hundred times a second while idle. No earlier look will do, so the answer waits for the next."""
        left = self._seen_at + self._pause - self._clock()
        if left > 0:
            self._sleep(left)

    def _look(self, age: float = 0.0) -> Mapping[Any, Any]:
        """What there is now, or was seen so many seconds ago. Brokers may fail for a while."""
        if self._clock() - self._seen_at < age:
            return self._seen
        for left in reversed(range(TRIES)):
            try:
                self._seen = self._heads.look()
                if not self._begun:
                    self._heads.begin(self._seen)
                    self._begun = True
                break
            except MQError as error:
                if not error.retriable or not (left or self._seen):
                    raise
                log.warning("%s: cannot see where the queues end: %s", self._system.FORMAT, error)
            if left:
                self._sleep(1.0)  # after the last try the ends that were known will do
        self._seen_at = self._clock()
        return self._seen

    def _checked(self, offset: Offset) -> Offset:
        if offset.get("v") != VERSION or self._system.KEY not in offset:
            raise ConfigError(f"the offset {offset} was not written by this version of {self._system.FORMAT}")
        return offset

"""Owns what was popped and is not acknowledged yet: per group and queue, until its time of invisibility is over."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from mqclient.broker.remoting.offsets import Offsets
from mqclient.broker.remoting.server import Refused
from mqclient.broker.remoting.state import Broker, Incoming, Topic
from mqclient.rocketmq.codes import Response
from mqclient.rocketmq.model import RETRY_PREFIX

ORDERED_QUEUE: Final = 999
"""The revive queue that handles of ordered pops name."""

Key = tuple[str, str, int]
"""Group, topic (a retry topic too) and queue."""


def retry_topic(group: str, topic: str) -> str:
    return f"{RETRY_PREFIX}{group}_{topic}"


class Handle(NamedTuple):
    """The receipt of one popped message: eight words in a row."""

    start: int
    pop_time: int
    invisible: int
    revive_queue: int
    retry: str
    broker: str
    queue_id: int
    offset: int

    @classmethod
    def read(cls, text: str) -> Handle:
        words = text.split(" ")
        try:
            start, pop_time, invisible, revive_queue = map(int, words[:4])
            return cls(start, pop_time, invisible, revive_queue, words[4], words[5], int(words[6]), int(words[7]))
        except (ValueError, IndexError):
            raise Refused(Response.SYSTEM_ERROR, f"{text!r} is no handle: eight words are needed") from None

    def __str__(self) -> str:
        return " ".join(map(str, self))


@dataclass(slots=True)
class Popped:
    """One queue as one group pops it, in any order of acknowledgement."""

    next: int
    """Where the next pop goes on."""
    out: dict[int, int] = field(default_factory=dict)
    """Offset to the time of the pop that holds it, the lowest offset first."""

    @property
    def committed(self) -> int:
        """Everything before this was acknowledged, or is in the retry topic."""
        return next(iter(self.out), self.next)

    def take(self, offsets: Iterable[int], pop_time: int) -> None:
        self.out.update(dict.fromkeys(offsets, pop_time))

    def held(self, offset: int, pop_time: int) -> bool:
        """Whether it is still out by that very pop: later ones have handles of their own."""
        return self.out.get(offset) == pop_time


@dataclass(slots=True)
class Ordered:
    """The one batch of a queue that an ordered group has in its hands."""

    offsets: list[int]
    pop_time: int
    attempt: str
    visible: dict[int, int]
    """Offset to when it may be given again, in ms; acknowledged ones are gone."""
    counts: dict[int, int] = field(default_factory=dict)
    """How often each was given before."""

    def blocks(self, attempt: str, now: int) -> bool:
        """A batch has to be acknowledged, or its time be over, before the next; who asks again gets it again."""
        return not (attempt and attempt == self.attempt) and any(now < when for when in self.visible.values())

    def following(self, offsets: list[int], pop_time: int, invisible: int, attempt: str) -> Ordered:
        """The batch that is given next, with what it has in common with this one."""
        if attempt and attempt == self.attempt:
            counts = self.counts
        else:
            counts = {offset: self.counts.get(offset, 0) + 1 for offset in offsets if offset in self.offsets}
        return Ordered(offsets, pop_time, attempt, dict.fromkeys(offsets, pop_time + invisible), counts)

    def next(self) -> int:
        """The first offset that is not acknowledged."""
        return next((offset for offset in self.offsets if offset in self.visible), self.offsets[-1] + 1)


class PoppedQueues:
    """Every queue that somebody pops; puts into the retry topic what nobody acknowledged."""

    def __init__(self, broker: Broker, offsets: Offsets) -> None:
        self._broker = broker
        self._offsets = offsets
        self._remoting = broker.house.impl.remoting
        self._queues: dict[Key, Popped] = {}
        self._ordered: dict[Key, Ordered] = {}
        self.revived: Callable[[str, str], None] = lambda group, topic: None
        """Told which group can pop something again, and from which topic."""

    def of(self, group: str, topic: Topic, queue_id: int, from_end: bool) -> Popped:
        """A queue at the place where popping goes on, after resets and what others committed."""
        key = (group, topic.name, queue_id)
        log = topic.queue(queue_id).log
        reset = self._offsets.resets.pop(key, None)
        popped = self._queues.get(key)
        if popped is None or reset is not None:
            popped = self._queues[key] = Popped(self._start(key, topic, from_end) if reset is None else reset)
        popped.next = min(max(popped.next, self._offsets.stored.get(key, 0), log.first), log.next)
        return popped

    def place(self, group: str, topic: Topic, queue_id: int, order: bool = False) -> int:
        """Where the next pop would begin, changing nothing."""
        key = (group, topic.name, queue_id)
        log = topic.queue(queue_id).log
        popped = self._queues.get(key)
        start = self._start(key, topic, False) if popped is None or order else popped.next
        return min(max(self._offsets.resets.get(key, start), log.first), log.next)

    def take(self, key: Key, popped: Popped, offsets: list[int], pop_time: int, invisible: int) -> None:
        """These go out, and come again if nobody acknowledges them in time."""
        popped.take(offsets, pop_time)
        self.commit(key, popped)
        self.hold(key, offsets, pop_time, invisible)

    def hold(self, key: Key, offsets: list[int], pop_time: int, invisible: int) -> None:
        self._broker.house.clock.after(invisible / 1000, lambda: self._revive(key, offsets, pop_time))

    def commit(self, key: Key, popped: Popped) -> None:
        if key not in self._offsets.resets:
            self._offsets.stored[key] = popped.committed

    def ack(self, key: Key, offset: int, pop_time: int) -> None:
        """What is not out by this pop any more is acknowledged all the same, as upstream has it: with no effect."""
        popped = self._queues.get(key)
        if popped is not None and popped.held(offset, pop_time):
            del popped.out[offset]
            self.commit(key, popped)

    def change(self, key: Key, offset: int, pop_time: int, now: int, invisible: int) -> None:
        popped = self._queues.get(key)
        if popped is not None and popped.held(offset, pop_time):
            popped.out[offset] = now
            self.hold(key, [offset], now, invisible)

    # ---- ordered

    def unacked(self, key: Key, popped: Popped) -> int:
        """Where an ordered pop begins: it reads a batch again until it is acknowledged."""
        return min(max(self._offsets.stored.get(key, popped.next), 0), popped.next)

    def batch(self, key: Key) -> Ordered | None:
        return self._ordered.get(key)

    def take_batch(self, key: Key, offsets: list[int], pop_time: int, invisible: int, attempt: str) -> Ordered:
        before = self._ordered.get(key) or Ordered([], 0, "", {})
        self._offsets.stored.setdefault(key, offsets[0])
        batch = self._ordered[key] = before.following(offsets, pop_time, invisible, attempt)
        self._look_again(key, invisible)
        return batch

    def ack_batch(self, key: Key, offset: int, pop_time: int) -> None:
        if offset < self._offsets.stored.get(key, 0):
            return
        batch = self._ordered.get(key)
        if batch is None:
            self._offsets.stored[key] = offset + 1
        elif batch.pop_time == pop_time:
            if offset not in batch.offsets:
                remark = f"offset is illegal, key:{key[1]}@{key[2]}, commit:{offset}, next:-1"
                raise Refused(Response.MESSAGE_ILLEGAL, remark)
            batch.visible.pop(offset, None)
            self._offsets.stored[key] = batch.next()
            self.revived(key[0], key[1])

    def change_batch(self, key: Key, offset: int, pop_time: int, when: int) -> None:
        batch = self._ordered.get(key)
        if batch is not None and batch.pop_time == pop_time and offset in batch.visible:
            batch.visible[offset] = when
            self._look_again(key, when - self._broker.house.clock.wall_ms())

    def _look_again(self, key: Key, after: int) -> None:
        self._broker.house.clock.after(after / 1000, lambda: self.revived(key[0], key[1]))

    # ---- what comes again

    def _revive(self, key: Key, offsets: list[int], pop_time: int) -> None:
        popped = self._queues.get(key)
        topic = self._broker.topics.get(key[1])
        left = [] if popped is None else [offset for offset in offsets if popped.held(offset, pop_time)]
        if popped is None or not left:
            return
        for offset in left:
            del popped.out[offset]
            if topic is not None and offset >= topic.queue(key[2]).log.first:
                record = topic.queue(key[2]).log.record(offset)
                self._again(key[0], key[1], self._remoting.decode_messages(record)[0], pop_time)
        self.commit(key, popped)
        self.revived(key[0], key[1])

    def _again(self, group: str, topic: str, message: Any, pop_time: int) -> None:
        name = topic if topic.startswith(RETRY_PREFIX) else retry_topic(group, topic)
        properties = dict(message.properties)
        properties.setdefault("1ST_POP_TIME", str(pop_time))
        properties["ORIGIN_GROUP"] = group
        again = Incoming.again(message, name, 0, self._remoting.encode_properties(properties))
        again.attempts += 1
        self._broker.make_topic(name, 1)
        self._broker.store(again)

    def _start(self, key: Key, topic: Topic, from_end: bool) -> int:
        """Where a group begins that never was here. A young queue is read from its beginning, whatever was asked."""
        stored = self._offsets.stored.get(key)
        if stored is not None:
            return stored
        log = topic.queue(key[2]).log
        if not from_end or log.first == 0 or topic.name.startswith(RETRY_PREFIX):
            return log.first
        return max(log.first, log.next - 1)

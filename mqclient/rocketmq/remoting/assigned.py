"""Owns queues that are assigned by hand: read from given offsets, without joining the group or telling it anything."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from mqclient.core.steps import Steps
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.client import ClientEngine
from mqclient.rocketmq.remoting.group import Member
from mqclient.rocketmq.remoting.joining import check_filter_steps
from mqclient.rocketmq.remoting.member_options import MemberOptions
from mqclient.rocketmq.remoting.process_queue import Limits, ProcessQueue
from mqclient.rocketmq.remoting.subscription import Subscription

Ends = int | tuple[int, int]
"""Where to begin; or where to begin, and the offset before which to end."""
UNTOLD: Final = -1
"""A version of subscription that needs no heartbeat: every pull brings its own."""
LIMITS: Final = Limits(count=-1, bytes=32 << 20, span=-1)
"""Who reads a range wants all of it: only memory bounds what is pulled ahead."""


class RangesRead(ClosedError):
    """Everything that was assigned was read."""


class Assigned(Member):
    """A member in name only: its pulls carry their subscription, so brokers need not know it.

    An offset that the broker does not have is an error for whoever reads, never a jump to where it has something.
    """

    def __init__(
        self,
        client: ClientEngine,
        group: str,
        assign: Mapping[MessageQueue, Ends],
        options: MemberOptions,
        taker: Any,
        expression: str = "*",
    ) -> None:
        self._ranges = {MessageQueue(*queue): checked(queue, ends) for queue, ends in assign.items()}
        if not self._ranges:
            raise ConfigError("assign={}: name a queue at least")
        topics = dict.fromkeys((queue.topic for queue in self._ranges), expression)
        super().__init__(client, group, topics, replace(options, retries=False), taker)
        self._failure: MQError | None = None

    def _offsets(self) -> Any:
        return Kept()

    def start_steps(self) -> Steps[None]:
        """Sequence: routes, then every queue that is there; one that is not is an error."""
        for topic in self.subscriptions.topics():
            wanted = {queue for queue in self._ranges if queue.topic == topic}
            route = self.client.routes.get(topic)
            if route is None or not wanted <= set(route.readable):
                route = yield self.client.routes.fetch(topic)
            missing = wanted - set(route.readable)
            if missing:
                queue = min(missing)
                raise ConfigError(f"topic {topic} has no queue {queue.queue_id} of broker {queue.broker_name!r}")
            yield from check_filter_steps(self, topic)
        self.client.unjoined.append(self)
        for queue, (start, end) in self._ranges.items():
            if start != end:
                self.grant(queue, start, UNTOLD)

    def close_steps(self) -> Steps[None]:
        """No more pulls; nobody has to be told."""
        yield from ()
        self.closed = True
        for process_queue in list(self.queues.values()):
            process_queue.drop()
        self.queues.clear()
        if self in self.client.unjoined:
            self.client.unjoined.remove(self)

    def check_open(self) -> None:
        super().check_open()
        if self._failure is not None:
            raise self._failure

    def inline(self, topic: str) -> Subscription | None:
        return self.subscriptions.get(topic)

    def correct(self, process_queue: ProcessQueue, offset: int) -> None:
        """The broker does not have what was asked for: it was deleted, or never was."""
        queue = process_queue.queue
        remark = f"{queue.topic} queue {queue.queue_id} of {queue.broker_name} has no offset "
        remark += f"{process_queue.next_offset}; the broker proposes {offset}"
        self._failure = BrokerError(Response.PULL_OFFSET_MOVED, remark, request=Request.PULL_MESSAGE.name)
        process_queue.drop()
        self.taker.on_failed()

    def gives_up(self, process_queue: ProcessQueue, error: MQError) -> bool:
        """What no later try can cure is told to whoever reads."""
        if error.retriable:
            return False
        self._failure = error
        process_queue.drop()
        self.taker.on_failed()
        return True

    def ended(self) -> bool:
        """Whether nothing can come any more: all ranges have ends, and the pulls have reached them."""
        return all(
            start == end or (end >= 0 and queue in self.queues and end <= self.queues[queue].next_offset)
            for queue, (start, end) in self._ranges.items()
        )

    def on_nothing(self, process_queue: ProcessQueue) -> None:
        """A filter may leave nothing of a range's last offsets."""
        super().on_nothing(process_queue)
        if 0 <= self._ranges[process_queue.queue][1] <= process_queue.next_offset:
            process_queue.pause()
            self.taker.on_ended()

    def on_batch(self, process_queue: ProcessQueue, batch: Any) -> None:
        """No more than was asked for; at the end the pulling rests."""
        end = self._ranges[process_queue.queue][1]
        if 0 <= end <= process_queue.next_offset:
            process_queue.pause()
            surplus = batch[bisect_left(batch.offsets, end) :]
            process_queue.done(surplus.offsets)
            batch = batch[: len(batch) - len(surplus)]
        if len(batch):
            super().on_batch(process_queue, batch)
        elif self.ended():
            self.taker.on_ended()


class Kept:
    """How far the queues are, for this consumer alone."""

    def __init__(self) -> None:
        self.memory: dict[MessageQueue, int] = {}

    def mark(self, queue: MessageQueue, offset: int) -> None:
        self.memory[queue] = max(offset, self.memory.get(queue, 0))

    def put(self, queue: MessageQueue, offset: int) -> None:
        self.memory[queue] = offset

    def told_by_pull(self, queue: MessageQueue) -> int:
        return 0

    def persist(self, queue: MessageQueue) -> None:
        """Nobody else is to know."""

    def forget(self, queue: MessageQueue) -> None:
        self.memory.pop(queue, None)

    def read_steps(self, queue: MessageQueue) -> Steps[int | None]:
        yield from ()
        return self.memory.get(queue)

    def flush_steps(self) -> Steps[None]:
        yield from ()

    def abandon(self) -> None:
        """Nothing is held."""


def checked(queue: MessageQueue, ends: Ends) -> tuple[int, int]:
    """(start, end), end -1: none."""
    start, end = ends if isinstance(ends, tuple) else (ends, -1)
    if start < 0 or (isinstance(ends, tuple) and end < start):
        raise ConfigError(f"assign: {queue} from {start} to {end} is no range of offsets")
    return start, end

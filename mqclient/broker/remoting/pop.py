"""Owns popping: messages are given to whoever asks, kept from others for a while, and held for until some come.

| code | request | answered |
|---|---|---|
| 200050 | POP_MESSAGE | messages with what their handles are made of; 210 if none came in time, 209 if too many wait |
| 200052 | PEEK_MESSAGE | the same messages, which stay where they are |
| 200054 | NOTIFICATION | whether there is something to pop; held as a pop |
| 200055 | POLLING_INFO | how many pops are held |
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mqclient.broker.control import Alarm
from mqclient.broker.remoting.filters import Filter
from mqclient.broker.remoting.pop_requests import Pop, Reader
from mqclient.broker.remoting.popped import ORDERED_QUEUE, Handle, Ordered, PoppedQueues, retry_topic
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import Broker, Incoming, Queue, Topic
from mqclient.rocketmq.codes import Request, Response

REVIVE_QUEUES: Final = 8
NOTHING: Final = {"invisibleTime": "0", "popTime": "0", "restNum": "0", "reviveQid": "0"}
NOT_SET: Final = "not set any response code"


def table(pops: Pops) -> Mapping[int, Handler]:
    return {
        Request.POP_MESSAGE: pops.pop,
        Request.PEEK_MESSAGE: pops.peek,
        Request.NOTIFICATION: pops.notify,
        Request.POLLING_INFO: pops.polling,
    }


@dataclass(slots=True)
class Gathered:
    """What a pop found so far."""

    pop_time: int
    revive_queue: int
    records: list[Any] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)
    offsets: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    rest: int = 0


class Held:
    """A request that waits: for a message in one of its queues, for one that comes again, or for its time."""

    __slots__ = ("alarm", "pop", "wake")

    def __init__(self, pop: Pop) -> None:
        self.pop = pop
        self.alarm: Alarm | None = None
        self.wake: Any = None


class Pops:
    """Serves pops."""

    def __init__(self, broker: Broker, popped: PoppedQueues) -> None:
        self._broker = broker
        self._popped = popped
        self._reader = Reader(broker)
        self._remoting = broker.house.impl.remoting
        self._held: dict[tuple[str, str], list[Held]] = {}
        self._number = itertools.count()
        popped.revived = self._revived

    def pop(self, ask: Ask) -> Reply | None:
        try:
            pop = self._reader.pop(ask)
        except Refused as refused:
            refused.reply = refused.reply._replace(fields=NOTHING)
            raise
        reply = self._serve(pop)
        poll = ask.number("pollTime")
        if reply.code == Response.SUCCESS or poll <= 0:
            return reply
        if len(self._held.get((pop.group, pop.topic.name), ())) >= self._broker.number("popPollingSize"):
            return reply._replace(code=Response.POLLING_FULL)
        self._hold(pop, poll / 1000, lambda: self._serve(pop))
        return None

    def peek(self, ask: Ask) -> Reply:
        pop = Pop(ask, *self._reader.place(ask), self._reader.count(ask))
        rest = 0
        records: list[Any] = []
        for topic, queue_id in self._queues(pop):
            queue, start = topic.queue(queue_id), self._popped.place(pop.group, topic, queue_id)
            rest += queue.log.next - start
            offsets, _ = self._scan(queue, start, pop.count - len(records), None)
            records += [queue.log.record(offset) for offset in offsets]
        fields = {**NOTHING, "restNum": str(rest)}
        if not records:
            return Reply(Response.PULL_NOT_FOUND, "NO_MESSAGE_IN_QUEUE", fields)
        return Reply(Response.SUCCESS, "FOUND", fields, records)

    def notify(self, ask: Ask) -> Reply | None:
        pop = Pop(ask, *self._reader.place(ask), 1, order=ask.flag("order"), attempt=ask.text("attemptId", ""))

        def serve() -> Reply:
            fields = {"hasMsg": str(self._has_some(pop)).lower(), "pollingFull": "false"}
            return Reply(remark=NOT_SET, fields=fields)

        reply = serve()
        poll = ask.number("pollTime")
        if reply.fields["hasMsg"] == "true" or poll <= 0:
            return reply
        self._hold(pop, poll / 1000, serve)
        return None

    def polling(self, ask: Ask) -> Reply:
        held = self._held.get((ask.text("consumerGroup"), ask.text("topic")), ())
        return Reply(remark=NOT_SET, fields={"pollingNum": str(len(held))})

    # ---- serving

    def _queues(self, pop: Pop) -> Iterator[tuple[Topic, int]]:
        """The queues in the order in which they are read: some pops begin with what comes again."""
        random = self._broker.house.random
        retry = None if pop.order else self._broker.topics.get(retry_topic(pop.group, pop.topic.name))
        first = random.randrange(100) < self._broker.number("popFromRetryProbability")
        again = [] if retry is None else [(retry, queue_id) for queue_id in range(retry.read_queues)]
        turn = random.randrange(max(1, len(pop.queue_ids)))
        normal = [(pop.topic, queue_id) for queue_id in pop.queue_ids[turn:] + pop.queue_ids[:turn]]
        return iter(again + normal if first else normal + again)

    def _serve(self, pop: Pop) -> Reply:
        now = self._broker.house.clock.wall_ms()
        got = Gathered(now, ORDERED_QUEUE if pop.order else next(self._number) % REVIVE_QUEUES)
        for topic, queue_id in self._queues(pop):
            (self._ordered if pop.order else self._plain)(pop, topic, queue_id, got)
        fields = {
            "invisibleTime": str(pop.invisible),
            "msgOffsetInfo": ";".join(got.offsets),
            "popTime": str(got.pop_time),
            "restNum": str(got.rest),
            "reviveQid": str(got.revive_queue),
            "startOffsetInfo": ";".join(got.starts),
        }
        if pop.order:
            fields["orderCountInfo"] = ";".join(got.counts)
        if not got.records:
            return Reply(Response.POLLING_TIMEOUT, "NO_MESSAGE_IN_QUEUE", fields)
        return Reply(Response.SUCCESS, "FOUND", fields, got.records)

    def _plain(self, pop: Pop, topic: Topic, queue_id: int, got: Gathered) -> None:
        popped = self._popped.of(pop.group, topic, queue_id, pop.from_end)
        queue, again = topic.queue(queue_id), topic is not pop.topic
        start, wanted = popped.next, None if again else pop.wanted
        offsets, popped.next = self._scan(queue, start, pop.count - len(got.records), wanted)
        key = (pop.group, topic.name, queue_id)
        got.rest += queue.log.next - popped.next
        if not offsets:
            self._popped.commit(key, popped)
            return
        self._popped.take(key, popped, offsets, got.pop_time, pop.invisible)
        self._note(got, "1" if again else "0", queue_id, offsets)
        for offset in offsets:
            record = queue.log.record(offset)
            if not again:
                got.records.append(record)
                continue
            name = self._broker.name
            handle = Handle(offsets[0], got.pop_time, pop.invisible, got.revive_queue, "1", name, queue_id, offset)
            got.records.append(self._disguised(pop.topic.name, record, handle))

    def _ordered(self, pop: Pop, topic: Topic, queue_id: int, got: Gathered) -> None:
        key = (pop.group, topic.name, queue_id)
        before = self._popped.batch(key)
        if before is not None and before.blocks(pop.attempt, got.pop_time):
            return
        queue, popped = topic.queue(queue_id), self._popped.of(pop.group, topic, queue_id, pop.from_end)
        start = self._popped.unacked(key, popped)
        offsets, following = self._scan(queue, start, pop.count - len(got.records), pop.wanted)
        got.rest += queue.log.next - following
        if not offsets:
            return
        batch = self._popped.take_batch(key, offsets, got.pop_time, pop.invisible, pop.attempt)
        self._note(got, "0", queue_id, offsets)
        got.counts += _counts(queue_id, batch)
        got.records += [queue.log.record(offset) for offset in offsets]

    def _note(self, got: Gathered, retry: str, queue_id: int, offsets: list[int]) -> None:
        got.starts.append(f"{retry} {queue_id} {offsets[0]}")
        got.offsets.append(f"{retry} {queue_id} {','.join(map(str, offsets))}")

    def _scan(self, queue: Queue, start: int, most: int, wanted: Filter | None) -> tuple[list[int], int]:
        """The offsets that go out, and where the next pop goes on."""
        limit = self._broker.number("maxTransferBytesOnMessageInMemory")
        offsets: list[int] = []
        while start < queue.log.next and len(offsets) < most:
            if wanted is None or wanted.wants(queue, start):
                limit -= queue.log.size(start)
                if limit < 0 and offsets:
                    break
                offsets.append(start)
            start += 1
        return offsets, start

    def _disguised(self, topic: str, record: Any, handle: Handle) -> bytes:
        """A message of the retry topic as one of its own topic, with the handle that its consumer could not make."""
        message = self._remoting.decode_messages(record)[0]
        text = self._remoting.encode_properties({**message.properties, "POP_CK": str(handle)})
        incoming = Incoming.again(message, topic, message.queue_id, text)
        return self._broker.encode(incoming, message.offset, message.physical_offset, message.stored_at)

    def _has_some(self, pop: Pop) -> bool:
        now = self._broker.house.clock.wall_ms()
        for topic, queue_id in self._queues(pop):
            key = (pop.group, topic.name, queue_id)
            batch = self._popped.batch(key)
            if pop.order and batch is not None and batch.blocks(pop.attempt, now):
                continue
            if self._popped.place(pop.group, topic, queue_id, pop.order) < topic.queue(queue_id).log.next:
                return True
        return False

    # ---- holding

    def _hold(self, pop: Pop, seconds: float, serve: Any) -> None:
        held = Held(pop)
        queues = [pop.topic.queue(queue_id) for queue_id in pop.queue_ids]
        waiting = self._held.setdefault((pop.group, pop.topic.name), [])

        def wake() -> None:
            if held not in waiting:
                return  # woken by two queues in one turn
            if not pop.ask.peer.open:
                end()
                return
            reply = serve()
            if reply.code == Response.SUCCESS and reply.fields.get("hasMsg") != "false":
                end()
                pop.ask.answer(reply)
                return
            for queue in queues:
                if wake not in queue.waiting:
                    queue.waiting.append(wake)

        def time_over() -> None:
            if held in waiting:
                end()
                pop.ask.answer(serve())

        def end() -> None:
            waiting.remove(held)
            if held.alarm is not None:
                held.alarm.cancel()
            for queue in queues:
                if wake in queue.waiting:
                    queue.waiting.remove(wake)

        held.wake = wake
        held.alarm = self._broker.house.clock.after(seconds, time_over)
        waiting.append(held)
        for queue in queues:
            queue.waiting.append(wake)

    def _revived(self, group: str, topic: str) -> None:
        """Something of this topic, or of the retry topic that belongs to it, can be popped again."""
        for (of_group, of_topic), waiting in list(self._held.items()):
            if of_group == group and topic in (of_topic, retry_topic(group, of_topic)):
                for held in list(waiting):
                    held.wake()


def _counts(queue_id: int, batch: Ordered) -> list[str]:
    """How often the messages of an ordered batch were given before, each and at least."""
    each = [f"0 qo{queue_id}%{offset} {times}" for offset, times in batch.counts.items()]
    least = min(batch.counts.values()) if len(batch.counts) == len(batch.offsets) else 0
    return [*each, f"0 {queue_id} {least}"]

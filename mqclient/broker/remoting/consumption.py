"""Owns what administrators ask about the insides of consumption: times, offsets of several groups, index entries.

| code | request | answered |
|---|---|---|
| 303 | QUERY_CONSUME_TIME_SPAN | of each queue: when its first and last message came, and where a group is in time |
| 308 | QUERY_CORRECTION_OFFSET | the lowest offset of all groups in each queue |
| 321 | QUERY_CONSUME_QUEUE | a piece of a queue's index: place, size and tag code of each message |
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from mqclient.broker.remoting.offsets import Offsets
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import Broker, Queue
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import write_body

NOWHERE: Final = 2**63 - 1
MOST: Final = 1024
"""Index entries that are told at once."""


def table(consumption: Consumption) -> Mapping[int, Handler]:
    return {
        Request.QUERY_CONSUME_TIME_SPAN: consumption.time_span,
        Request.QUERY_CORRECTION_OFFSET: consumption.correction,
        Request.QUERY_CONSUME_QUEUE: consumption.index,
    }


class Consumption:
    """Looks and changes nothing."""

    def __init__(self, broker: Broker, offsets: Offsets) -> None:
        self._broker = broker
        self._offsets = offsets

    def time_span(self, ask: Ask) -> Reply:
        name, group = ask.text("topic"), ask.text("group")
        topic = self._broker.topics.get(name)
        if topic is None:
            raise Refused(Response.TOPIC_NOT_EXIST, f"topic[{name}] not exist")
        spans = []
        for queue_id in range(topic.write_queues):
            where = MessageQueue(name, self._broker.name, queue_id)
            offset = self._offsets.stored.get((group, name, queue_id), -1)
            spans.append({"messageQueue": where, **self._span(topic.queue(queue_id), offset)})
        return Reply(body=write_body({"consumeTimeSpanSet": spans}))

    def _span(self, queue: Queue, offset: int) -> dict[str, int | str]:
        log = queue.log
        first = _time(queue, log.first)
        behind = offset < log.next
        times = {
            "consumeTimeStamp": _time(queue, offset - 1) if offset > 0 else first,
            "maxTimeStamp": _time(queue, log.next - 1),
            "minTimeStamp": first,
        }
        delay = self._broker.house.clock.wall_ms() - _time(queue, offset) if behind else 0
        return {"delayTime": delay, **times, **{f"{name}Str": _shown(when) for name, when in times.items()}}

    def correction(self, ask: Ask) -> Reply:
        """Of the groups that are not left out; where the compared group is before that, nothing is to be corrected."""
        topic, compared = ask.text("topic"), ask.text("compareGroup")
        left_out = {name for name in ask.text("filterGroups", "").split(",") if name}
        lowest: dict[int, int] = {}
        own: dict[int, int] = {}
        for (group, name, queue_id), offset in self._offsets.stored.items():
            if name == topic and group == compared:
                own[queue_id] = offset
            if name == topic and group not in left_out and offset >= self._first(topic, queue_id):
                lowest[queue_id] = min(lowest.get(queue_id, NOWHERE), offset)
        for queue_id, offset in own.items():
            if lowest.get(queue_id, NOWHERE) > offset:
                lowest[queue_id] = NOWHERE
        return Reply(body=write_body({"correctionOffsets": lowest}))

    def _first(self, topic: str, queue_id: int) -> int:
        known = self._broker.topics.get(topic)
        queue = None if known is None else known.queues.get(queue_id)
        return 0 if queue is None else queue.log.first

    def index(self, ask: Ask) -> Reply:
        name, queue_id = ask.text("topic"), ask.number("queueId")
        topic = self._broker.topics.get(name)
        queue = None if topic is None else topic.queues.get(queue_id)
        if queue is None:
            raise Refused(Response.SYSTEM_ERROR, f"{queue_id}@{name} is not exist!")
        log, start = queue.log, ask.number("index")
        stop = min(log.next, start + min(ask.number("count"), MOST))
        fits = bool(ask.text("consumerGroup", ""))  # as upstream: without a group, nothing fits its subscription
        entries = [_entry(queue, offset, fits) for offset in range(max(start, log.first), stop)]
        body = {"maxQueueIndex": log.next, "minQueueIndex": log.first, "queueData": entries}
        return Reply(remark="not set any response code", body=write_body(body))


def _entry(queue: Queue, offset: int, fits: bool) -> dict[str, Any]:
    record = queue.log.record(offset)
    place = int.from_bytes(record[28:36], "big")
    return {"eval": fits, "physicOffset": place, "physicSize": len(record), "tagsCode": queue.tag(offset)}


def _shown(when: int) -> str:
    """As Java's tools print a time: of here, with milliseconds.

    >>> _shown(1_700_000_000_012)[-4:]
    ':012'
    """
    return f"{time.strftime('%Y-%m-%d#%H:%M:%S', time.localtime(when // 1000))}:{when % 1000:03d}"


def _time(queue: Queue, offset: int) -> int:
    """When a message was stored, -1 if there is none at this offset."""
    log = queue.log
    return log.time(offset) if log.first <= offset < log.next else -1

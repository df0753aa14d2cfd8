"""Owns looking messages up: by their place in the commit log, by their unique key, by their keys.

| code | request | answered |
|---|---|---|
| 12 | QUERY_MESSAGE | the newest messages of a topic with this key or unique key, 22 if there is none |
| 33 | VIEW_MESSAGE_BY_ID | the message at a place of the commit log |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import Broker, Queue, Topic
from mqclient.rocketmq.codes import Request, Response

UNIQUE = "_UNIQUE_KEY_QUERY"


def table(broker: Broker) -> Mapping[int, Handler]:
    queries = Queries(broker)
    return {Request.QUERY_MESSAGE: queries.by_key, Request.VIEW_MESSAGE_BY_ID: queries.by_place}


class Queries:
    """Searches what is stored; sends pay nothing for it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._decode = broker.house.impl.remoting.decode_messages

    def by_place(self, ask: Ask) -> Reply:
        record = self._broker.record(ask.number("offset"))
        if record is None:
            remark = f"can not find message by the offset, {ask.number('offset')}"
            raise Refused(Response.SYSTEM_ERROR, remark)
        return Reply(body=bytes(record))

    def by_key(self, ask: Ask) -> Reply:
        topic = self._broker.topics.get(ask.text("topic"))
        limit = self._broker.number("defaultQueryMaxNum") if ask.flag(UNIQUE) else ask.number("maxNum")
        limit = min(limit, self._broker.number("maxMsgsNumBatch"))
        span = range(ask.number("beginTimestamp"), ask.number("endTimestamp") + 1)
        found = [] if topic is None else self._newest(topic, ask.text("key"), span, limit)
        if not found:
            raise Refused(Response.QUERY_NOT_FOUND, "can not find message, maybe time range not correct")
        last = found[-1][1]
        fields = {
            "indexLastUpdatePhyoffset": str(last.physical_offset),
            "indexLastUpdateTimestamp": str(last.stored_at),
        }
        return Reply(fields=fields, body=[record for record, _ in found])

    def _newest(self, topic: Topic, key: str, span: range, limit: int) -> list[tuple[memoryview, Any]]:
        """Records and messages in the order in which they were stored."""
        found: list[tuple[memoryview, Any]] = []
        for queue in topic.queues.values():
            matches = self._matches(queue, key, span)
            found += [match for match, _ in zip(matches, range(limit), strict=False)]
        found.sort(key=lambda match: match[1].physical_offset)
        return found[-limit:] if limit > 0 else []

    def _matches(self, queue: Queue, key: str, span: range) -> Iterator[tuple[memoryview, Any]]:
        """Where the key stands somewhere, and truly is a key: the same words may stand in a body."""
        for offset in queue.log.search(key.encode()) if key else ():
            if queue.log.time(offset) in span:
                record = queue.log.record(offset)
                message = self._decode(record)[0]
                if key == message.property("UNIQ_KEY") or key in message.keys:
                    yield record, message

"""Owns how far groups have come, and the questions about a queue's ends.

| code | request | answered |
|---|---|---|
| 14 | QUERY_CONSUMER_OFFSET | stored offset; 0 for a young queue, 22 if there is none |
| 15 | UPDATE_CONSUMER_OFFSET | stored as it is, also backwards; ignored while a reset waits to be seen |
| 29 | SEARCH_OFFSET_BY_TIMESTAMP | first offset at or after a time (`UPPER`: last at or before) |
| 30 | GET_MAX_OFFSET | the next offset to be written |
| 31 | GET_MIN_OFFSET | the oldest offset |
| 32 | GET_EARLIEST_MSG_STORETIME | when the oldest message was stored, -1 if there is none |
"""

from __future__ import annotations

from collections.abc import Mapping

from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import Broker, Queue
from mqclient.broker.watched import Watched
from mqclient.rocketmq.codes import Request, Response


def table(offsets: Offsets) -> Mapping[int, Handler]:
    return {
        Request.QUERY_CONSUMER_OFFSET: offsets.query,
        Request.UPDATE_CONSUMER_OFFSET: offsets.update,
        Request.SEARCH_OFFSET_BY_TIMESTAMP: offsets.search,
        Request.GET_MAX_OFFSET: offsets.max,
        Request.GET_MIN_OFFSET: offsets.min,
        Request.GET_EARLIEST_MSG_STORETIME: offsets.earliest,
    }


class Offsets:
    """Stored offsets by group, topic and queue, and resets that the next puller of a queue will see."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.stored: Watched[tuple[str, str, int], int] = Watched()
        self.resets: Watched[tuple[str, str, int], int] = Watched()

    def query(self, ask: Ask) -> Reply:
        key = self._key(ask)
        offset = self.resets.get(key, self.stored.get(key))
        if offset is not None:
            return Reply(fields={"offset": str(offset)})
        if ask.text("setZeroIfNotFound", "").lower() == "false":
            raise Refused(Response.QUERY_NOT_FOUND, "Not found, do not set to zero, maybe this group boot first")
        queue = self._queue(ask)
        if queue is not None and queue.log.first == 0 and queue.log.next > 0:
            return Reply(fields={"offset": "0"})
        raise Refused(Response.QUERY_NOT_FOUND, "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first")

    def update(self, ask: Ask) -> Reply:
        key = self._key(ask)
        if key[0] not in self._broker.groups:
            raise Refused(Response.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {key[0]} not exist!")
        if key[1] not in self._broker.topics:
            raise Refused(Response.TOPIC_NOT_EXIST, f"Topic {key[1]} not exist!")
        if key in self.resets:
            return Reply(remark="Offset has been previously reset")
        self.stored[key] = ask.number("commitOffset")
        return Reply()

    def search(self, ask: Ask) -> Reply:
        queue = self._queue(ask)
        if queue is None or not queue.log.next:
            return Reply(fields={"offset": "0"})
        when = ask.number("timestamp")
        upper = ask.text("boundaryType", "LOWER").upper() == "UPPER"
        return Reply(fields={"offset": str(queue.log.at_or_before(when) if upper else queue.log.at_or_after(when))})

    def max(self, ask: Ask) -> Reply:
        queue = self._queue(ask)
        return Reply(fields={"offset": str(queue.log.next if queue else 0)})

    def min(self, ask: Ask) -> Reply:
        queue = self._queue(ask)
        return Reply(remark="", fields={"offset": str(queue.log.first if queue else 0)})

    def earliest(self, ask: Ask) -> Reply:
        queue = self._queue(ask)
        when = queue.log.time(queue.log.first) if queue is not None and len(queue.log) else -1
        return Reply(fields={"timestamp": str(when)})

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """What a pull brought along."""
        if (group, topic, queue_id) not in self.resets:
            self.stored[group, topic, queue_id] = offset

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Leave a note for whoever pulls next, and store it."""
        self.resets[group, topic, queue_id] = self.stored[group, topic, queue_id] = offset

    def _key(self, ask: Ask) -> tuple[str, str, int]:
        return ask.text("consumerGroup"), ask.text("topic"), ask.number("queueId")

    def _queue(self, ask: Ask) -> Queue | None:
        topic = self._broker.topics.get(ask.text("topic"))
        return topic.queues.get(ask.number("queueId")) if topic else None

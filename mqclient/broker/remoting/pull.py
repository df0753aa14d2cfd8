"""Owns pulling: upstream's checks in upstream's order, filters, and pulls held until something arrives.

| code | request | answered |
|---|---|---|
| 11 | PULL_MESSAGE | stored messages as they are, or 19, 20, 21 with where to go on |
| 361 | LITE_PULL_MESSAGE | the same; 16 while `litePullMessageEnable` is false |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mqclient.broker.control import Alarm
from mqclient.broker.remoting import filters
from mqclient.broker.remoting.filters import Filter
from mqclient.broker.remoting.membership import Members
from mqclient.broker.remoting.offsets import Offsets
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import READ, Broker, Queue
from mqclient.rocketmq.codes import Request, Response

COMMIT: Final = 1
SUSPEND: Final = 2
SUBSCRIPTION: Final = 4
SCAN_ENTRY: Final = 20
SCAN_BYTES: Final = 16000
FORBIDDEN_BROKER: Final = "1"
FORBIDDEN_GROUP: Final = "2"
FORBIDDEN_TOPIC: Final = "3"
FORBIDDEN_BROADCAST: Final = "4"
FORBIDDEN_SUBSCRIPTION: Final = "5"


def table(pulls: Pulls) -> Mapping[int, Handler]:
    return {Request.PULL_MESSAGE: pulls.pull, Request.LITE_PULL_MESSAGE: pulls.pull}


@dataclass(slots=True)
class Pull:
    """One request, read."""

    ask: Ask
    group: str
    topic: str
    queue_id: int
    offset: int
    count: int
    sys_flag: int

    @classmethod
    def of(cls, ask: Ask) -> Pull:
        return cls(
            ask,
            ask.text("consumerGroup"),
            ask.text("topic"),
            ask.number("queueId"),
            ask.number("queueOffset"),
            ask.number("maxMsgNums"),
            ask.number("sysFlag"),
        )


class Pulls:
    """Serves pulls, or holds them until the queue gets something or their suspension runs out."""

    def __init__(self, broker: Broker, members: Members, offsets: Offsets) -> None:
        self._broker = broker
        self._members = members
        self._offsets = offsets

    def pull(self, ask: Ask) -> Reply | None:
        pull = Pull.of(ask)
        reply, queue, wanted = self._serve(pull)
        if pull.sys_flag & COMMIT:
            self._offsets.commit(pull.group, pull.topic, pull.queue_id, ask.number("commitOffset"))
        held = reply.code == Response.PULL_NOT_FOUND and pull.sys_flag & SUSPEND
        if held and queue is not None:
            self._hold(pull, queue, wanted, self._patience(ask) / 1000)
            return None
        return reply

    def _patience(self, ask: Ask) -> int:
        """Milliseconds for which a pull may be held."""
        if self._broker.setting("longPollingEnable"):
            return ask.number("suspendTimeoutMillis")
        return self._broker.number("shortPollingTimeMills")

    def _hold(self, pull: Pull, queue: Queue, wanted: Filter | None, seconds: float) -> None:
        """Keep it until a message comes that its filter wants. Woken, it is served without holding it again."""
        alarm: Alarm

        def wake() -> None:
            if not pull.ask.peer.open:
                alarm.cancel()
            elif wanted and not any(wanted.wants(queue, offset) for offset in range(seen[0], queue.log.next)):
                seen[0] = queue.log.next
                queue.waiting.append(wake)
            else:
                finish()

        def finish() -> None:
            if done:  # woken and out of time in one turn
                return
            done.append(True)
            alarm.cancel()
            if wake in queue.waiting:
                queue.waiting.remove(wake)
            try:
                pull.ask.answer(self._serve(pull)[0])
            except Refused as refused:
                pull.ask.answer(refused.reply)

        done: list[bool] = []
        seen = [pull.offset]
        queue.waiting.append(wake)
        alarm = self._broker.house.clock.after(seconds, finish)

    def _serve(self, pull: Pull) -> tuple[Reply, Queue | None, Filter | None]:
        """The answer, the queue it is about, and its filter (none: everything)."""
        self._check_permissions(pull)
        wanted = self._wanted(pull)
        key = (pull.group, pull.topic, pull.queue_id)
        queue = self._broker.topic(pull.topic).queue(pull.queue_id)
        reset = self._offsets.resets.pop(key, None)
        if reset is not None:
            return self._reply(queue, Response.PULL_OFFSET_MOVED, "OFFSET_RESET", reset), None, wanted
        return self._read(queue, pull.offset, pull.count, wanted), queue, wanted

    def _check_permissions(self, pull: Pull) -> None:
        if not self._broker.number("brokerPermission") & READ:
            remark = f"the broker[{self._broker.host[0]}] pulling message is forbidden"
            raise Refused(Response.NO_PERMISSION, remark, forbiddenType=FORBIDDEN_BROKER)
        if pull.ask.frame.code == Request.LITE_PULL_MESSAGE and not self._broker.setting("litePullMessageEnable"):
            remark = f"the broker[{self._broker.host[0]}] for lite pull consumer is forbidden"
            raise Refused(Response.NO_PERMISSION, remark, forbiddenType=FORBIDDEN_BROKER)
        if not self._broker.group(pull.group).consume_enable:
            remark = f"subscription group no permission, {pull.group}"
            raise Refused(Response.NO_PERMISSION, remark, forbiddenType=FORBIDDEN_GROUP)
        topic = self._broker.topic(pull.topic)
        if not topic.perm & READ:
            remark = f"the topic[{pull.topic}] pulling message is forbidden"
            raise Refused(Response.NO_PERMISSION, remark, forbiddenType=FORBIDDEN_TOPIC)
        if not 0 <= pull.queue_id < topic.read_queues:
            remark = f"queueId[{pull.queue_id}] is illegal, topic:[{pull.topic}] topicConfig.readQueueNums:"
            remark += f"[{topic.read_queues}] consumer:[/{pull.ask.peer.address}]"
            raise Refused(Response.INVALID_PARAMETER, remark)

    def _wanted(self, pull: Pull) -> Filter | None:
        if pull.sys_flag & SUBSCRIPTION:
            kind = pull.ask.text("expressionType", filters.TAG)
            return filters.of_request(self._broker, kind, pull.ask.text("subscription", ""))
        group = self._members.consumers.get(pull.group)
        broadcasting = group is not None and group.model == "BROADCASTING"
        if broadcasting and not self._broker.group(pull.group).broadcast_enable:
            remark = f"the consumer group[{pull.group}] can not consume by broadcast way"
            raise Refused(Response.NO_PERMISSION, remark, forbiddenType=FORBIDDEN_BROADCAST)
        if pull.topic in self._broker.group(pull.group).forbidden:
            remark = f"the consumer group[{pull.group}] is forbidden for topic[{pull.topic}]"
            raise Refused(Response.NO_PERMISSION, remark, forbiddenType=FORBIDDEN_SUBSCRIPTION)
        subscription = self._members.check_version(pull.group, pull.topic, pull.ask.number("subVersion"))
        return filters.of_heartbeat(self._broker, subscription)

    def _read(self, queue: Queue, offset: int, count: int, wanted: Filter | None) -> Reply:
        first, end = queue.log.first, queue.log.next
        if end == 0:
            code = Response.PULL_OFFSET_MOVED if offset else Response.PULL_NOT_FOUND
            return self._reply(queue, code, "NO_MESSAGE_IN_QUEUE", 0)
        if offset < first:
            return self._reply(queue, Response.PULL_OFFSET_MOVED, "OFFSET_TOO_SMALL", first)
        if offset == end:
            return self._reply(queue, Response.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE", offset)
        if offset > end:
            return self._reply(queue, Response.PULL_OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY", end)
        count = max(1, min(count, self._broker.number("maxTransferCountOnMessageInMemory")))
        limit = self._broker.number("maxTransferBytesOnMessageInMemory")
        if wanted is None:
            views, following = queue.log.read(offset, count, limit)
        else:
            views, following = self._filtered(queue, offset, count, limit, wanted)
        if not views:
            return self._reply(queue, Response.PULL_RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE", following)
        return self._reply(queue, Response.SUCCESS, "FOUND", following, views)

    def _filtered(
        self, queue: Queue, offset: int, count: int, limit: int, wanted: Filter
    ) -> tuple[list[memoryview], int]:
        """Single records that are wanted; a scan looks at a limited number of entries, as upstream's."""
        views: list[memoryview] = []
        stop = min(queue.log.next, offset + max(SCAN_BYTES, count * SCAN_ENTRY) // SCAN_ENTRY)
        while offset < stop and len(views) < count and (limit > 0 or not views):
            if wanted.wants(queue, offset):
                record = queue.log.record(offset)
                if views and len(record) > limit:
                    break
                limit -= len(record)
                views.append(record)
            offset += 1
        return views, offset

    def _reply(self, queue: Queue, code: int, status: str, following: int, views: Any = b"") -> Reply:
        fields = {
            "groupSysFlag": "0",
            "maxOffset": str(queue.log.next),
            "minOffset": str(queue.log.first),
            "nextBeginOffset": str(following),
            "suggestWhichBrokerId": "0",
            "topicSysFlag": "0",
        }
        return Reply(code, status, fields, views)

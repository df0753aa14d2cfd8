"""Owns how requests to pop are read: upstream's checks in upstream's order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mqclient.broker.remoting import filters
from mqclient.broker.remoting.filters import Filter
from mqclient.broker.remoting.server import Ask, Refused
from mqclient.broker.remoting.state import READ, Broker, Topic
from mqclient.rocketmq.codes import Response

MOST: Final = 32
TOO_LATE_MS: Final = 500


@dataclass(slots=True)
class Pop:
    """One request, read and checked."""

    ask: Ask
    group: str
    topic: Topic
    queue_ids: list[int]
    count: int
    wanted: Filter | None = None
    invisible: int = 0
    from_end: bool = False
    order: bool = False
    attempt: str = ""


class Reader:
    """Makes a `Pop` of a request, or refuses it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def pop(self, ask: Ask) -> Pop:
        """Upstream's checks in upstream's order."""
        if not self._broker.number("brokerPermission") & READ:
            raise Refused(Response.NO_PERMISSION, f"the broker[{self._broker.host[0]}] pop message is forbidden")
        late = self._broker.house.clock.peers_ms() - ask.number("bornTime") - ask.number("pollTime")
        if late > TOO_LATE_MS:
            remark = f"the broker[{self._broker.host[0]}] pop message is timeout too much"
            raise Refused(Response.POLLING_TIMEOUT, remark)
        count = self.count(ask)
        pop = Pop(ask, *self.place(ask), count)
        pop.invisible = ask.number("invisibleTime")
        pop.from_end = ask.number("initMode") != 0
        pop.order = ask.flag("order")
        pop.attempt = ask.text("attemptId", "")
        pop.wanted = self._filter(ask)
        return pop

    def _filter(self, ask: Ask) -> Filter | None:
        kind, expression = ask.text("expType", filters.TAG), ask.text("exp", "")
        try:
            filters.check(self._broker, kind, expression)
            return filters.of_request(self._broker, kind, expression)
        except Refused as refused:
            if refused.reply.code != Response.SUBSCRIPTION_PARSE_FAILED:
                raise
            remark = "parse the consumer's subscription failed"
            raise Refused(Response.SUBSCRIPTION_PARSE_FAILED, remark) from None

    def count(self, ask: Ask) -> int:
        most = ask.number("maxMsgNums")
        if most > MOST:
            remark = f"the broker[{self._broker.host[0]}] pop message's num is greater than {MOST}"
            raise Refused(Response.INVALID_PARAMETER, remark)
        return most

    def place(self, ask: Ask) -> tuple[str, Topic, list[int]]:
        """Group, topic and queues; queue -1 is every queue."""
        topic = self._broker.topic(ask.text("topic"))
        if not topic.perm & READ:
            raise Refused(Response.NO_PERMISSION, f"the topic[{topic.name}] peeking message is forbidden")
        queue_id = ask.number("queueId")
        if queue_id >= topic.read_queues:
            remark = f"queueId[{queue_id}] is illegal, topic:[{topic.name}] topicConfig.readQueueNums:"
            remark += f"[{topic.read_queues}] consumer:[/{ask.peer.address}]"
            raise Refused(Response.INVALID_PARAMETER, remark)
        group = ask.text("consumerGroup")
        if not self._broker.group(group).consume_enable:
            raise Refused(Response.NO_PERMISSION, f"subscription group no permission, {group}")
        return group, topic, [queue_id] if queue_id >= 0 else list(range(topic.read_queues))

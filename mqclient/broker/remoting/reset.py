"""Owns the reset of a group's offsets, in upstream's two forms and with the operator's two changes.

| code | request | answered |
|---|---|---|
| 222 | INVOKE_BROKER_TO_RESET_OFFSET | the table of new offsets |
| 220 | RESET_CONSUMER_CLIENT_OFFSET | pushed to the members (old form only) |

`useServerSideResetOffset=true` leaves a note for the next puller of each queue. The old form computes the table,
refuses a group of which one queue has no stored offset, and pushes the table to every member. `mqcloud_patch`, story 3:
a broadcasting group needs no stored offsets, and the offset at the time is taken as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from mqclient.broker.remoting.membership import Members
from mqclient.broker.remoting.offsets import Offsets
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import Broker, Topic
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.bodies import write_body


def table(resets: Resets) -> Mapping[int, Handler]:
    return {Request.INVOKE_BROKER_TO_RESET_OFFSET: resets.reset}


class Resets:
    """Moves groups to another place."""

    def __init__(self, broker: Broker, members: Members, offsets: Offsets) -> None:
        self._broker = broker
        self._members = members
        self._offsets = offsets
        self._patched = bool(broker.house.settings.get("mqcloud_patch"))

    def reset(self, ask: Ask) -> Reply:
        topic = self._broker.topics.get(ask.text("topic"))
        if topic is None:
            raise Refused(Response.TOPIC_NOT_EXIST, f"Topic {ask.text('topic')} does not exist")
        if self._broker.setting("useServerSideResetOffset"):
            return self._server_side(ask, topic, ask.text("group"))
        return self._push(ask, topic, ask.text("group"))

    def _server_side(self, ask: Ask, topic: Topic, group: str) -> Reply:
        if group not in self._broker.groups:
            raise Refused(Response.SUBSCRIPTION_GROUP_NOT_EXIST, f"Group {group} does not exist")
        only, explicit = ask.number("queueId", -1), ask.number("offset", -1)
        moved: dict[MessageQueue, int] = {}
        for queue_id in [only] if only >= 0 else range(topic.read_queues):
            log = topic.queue(queue_id).log
            if only >= 0 and explicit >= 0:
                if not log.first <= explicit <= log.next + 1:
                    remark = f"Target offset {explicit} not in consume queue range [{log.first}-{log.next}]"
                    raise Refused(Response.SYSTEM_ERROR, remark)
                offset = explicit
            else:
                offset = self._at(topic, queue_id, ask.number("timestamp"))
            moved[MessageQueue(topic.name, self._broker.name, queue_id)] = offset
        for queue, offset in moved.items():
            self._offsets.reset(group, topic.name, queue.queue_id, offset)
        return Reply(body=write_body({"offsetTable": moved}))

    def _push(self, ask: Ask, topic: Topic, group: str) -> Reply:
        members = self._members.consumers.get(group)
        broadcasting = members is not None and members.model == "BROADCASTING"
        free = self._patched and broadcasting
        moved: dict[MessageQueue, int] = {}
        for queue_id in range(topic.write_queues):
            stored = self._offsets.stored.get((group, topic.name, queue_id), -1)
            if stored < 0 and not free:
                raise Refused(Response.SYSTEM_ERROR, f"THe consumer group <{group}> not exist")
            offset = self._at(topic, queue_id, ask.number("timestamp"))
            take = free or ask.flag("isForce") or offset < stored
            moved[MessageQueue(topic.name, self._broker.name, queue_id)] = offset if take else stored
        if members is None or not members.members:
            remark = f"Consumer not online, so can not reset offset, Group: {group} Topic: {topic.name} "
            remark += f"Timestamp: {ask.number('timestamp')}"
            raise Refused(Response.CONSUMER_NOT_ONLINE, remark)
        body = write_body({"offsetTable": moved})
        fields = {
            "group": group,
            "isForce": "false",
            "queueId": "-1",
            "timestamp": str(ask.number("timestamp")),
            "topic": topic.name,
        }
        for peer in members.members:
            peer.push(Request.RESET_CONSUMER_CLIENT_OFFSET, fields, body)
        return Reply(remark="not set any response code", body=body)

    def _at(self, topic: Topic, queue_id: int, when: int) -> int:
        log = topic.queue(queue_id).log
        return log.next if when < 0 else log.at_or_after(when)

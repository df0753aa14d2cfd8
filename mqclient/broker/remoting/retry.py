"""Owns what is delivered later or again: send-back, retry topics, dead letters, delay levels.

| code | request | answered |
|---|---|---|
| 36 | CONSUMER_SEND_MSG_BACK | the message goes to the group's retry topic, or to its dead letters |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mqclient.broker.remoting.locks import Locks
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import SCHEDULE_TOPIC, Broker, Incoming
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import DLQ_PREFIX, RETRY_PREFIX

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
FIRST_RETRY_LEVEL = 3


def table(retries: Retries) -> Mapping[int, Handler]:
    return {Request.CONSUMER_SEND_MSG_BACK: retries.send_back}


class Retries:
    """Messages on their way to a retry topic, and those that wait for their time."""

    def __init__(self, broker: Broker, locks: Locks) -> None:
        self._broker = broker
        self._locks = locks
        self._remoting = broker.house.impl.remoting
        broker.on_store = self.delay

    def send_back(self, ask: Ask) -> Reply:
        name = ask.text("group")
        group = self._broker.group(name)
        message = self._broker.find(ask.number("offset"))
        if message is None:
            raise Refused(Response.SYSTEM_ERROR, f"look message by offset failed, {ask.number('offset')}")
        if group.retry_queues <= 0:
            return Reply()
        limit = ask.number("maxReconsumeTimes", group.retry_max)
        level = ask.number("delayLevel")
        properties = dict(message.properties)
        properties.setdefault("RETRY_TOPIC", message.topic)
        properties.setdefault("ORIGIN_MESSAGE_ID", message.offset_id)
        properties["WAIT"] = "false"
        properties.pop("DELAY", None)
        if message.attempts >= limit or level < 0:
            topic = self._broker.make_topic(DLQ_PREFIX + name, 1)
        else:
            topic = self._broker.make_topic(RETRY_PREFIX + name, group.retry_queues)
            properties["DELAY"] = str(level or FIRST_RETRY_LEVEL + message.attempts)
        self._broker.store(self._again(message, topic.name, properties))
        return Reply()

    def direct(self, incoming: Incoming, group_name: str, limit: int) -> Incoming:
        """A send to a retry topic: dead at the limit, or at once while the group holds queue locks."""
        group = self._broker.groups.get(group_name)
        if group is None:
            remark = f"subscription group not exist, {group_name}"
            raise Refused(Response.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        if incoming.attempts > (group.retry_max if limit < 0 else limit) or self._locks.held(group_name):
            incoming.topic = self._broker.make_topic(DLQ_PREFIX + group_name, 1).name
            incoming.queue_id = 0
            properties = self._remoting.decode_properties(incoming.properties)
            properties.pop("DELAY", None)
            incoming.properties = self._remoting.encode_properties(properties)
        return incoming

    def delay(self, incoming: Incoming) -> Incoming:
        """What carries a delay level is stored in the schedule topic and delivered when its time comes."""
        if b"DELAY\x01" not in incoming.properties or incoming.topic == SCHEDULE_TOPIC:
            return incoming
        properties = self._remoting.decode_properties(incoming.properties)
        seconds = self._levels()
        level = min(_number(properties.get("DELAY", "0")), len(seconds))
        if level <= 0 or properties.get("REAL_TOPIC"):
            return incoming
        properties["REAL_TOPIC"], properties["REAL_QID"] = incoming.topic, str(incoming.queue_id)
        text = self._remoting.encode_properties(properties)
        due = Incoming(
            incoming.topic,
            incoming.queue_id,
            incoming.body,
            text,
            flag=incoming.flag,
            sys_flag=incoming.sys_flag,
            born_at=incoming.born_at,
            born_host=incoming.born_host,
            attempts=incoming.attempts,
        )
        self._broker.house.clock.after(seconds[level - 1], lambda: self._deliver(due))
        incoming.topic, incoming.queue_id, incoming.properties = SCHEDULE_TOPIC, level - 1, text
        return incoming

    def _deliver(self, due: Incoming) -> None:
        # REAL_TOPIC in its properties tells `delay` that this one has waited; consumers see it, as with upstream.
        self._broker.store(due)

    def _levels(self) -> list[int]:
        words = self._broker.config["messageDelayLevel"].split()
        return [int(word[:-1]) * UNITS[word[-1]] for word in words]

    def _again(self, message: Any, topic: str, properties: dict[str, str]) -> Incoming:
        host, _, port = message.born_host.rpartition(":")
        for name in ("REAL_TOPIC", "REAL_QID"):
            properties.pop(name, None)
        return Incoming(
            topic,
            0,
            message.body,
            self._remoting.encode_properties(properties),
            flag=message.flag,
            sys_flag=message.sys_flag,
            born_at=message.born_at,
            born_host=(host.strip("[]"), int(port)),
            attempts=message.attempts + 1,
        )


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0

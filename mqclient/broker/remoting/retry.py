"""Owns what is delivered later or again: send-back, retry topics, dead letters, delay levels.

| code | request | answered |
|---|---|---|
| 36 | CONSUMER_SEND_MSG_BACK | the message goes to the group's retry topic, or to its dead letters |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mqclient.broker.remoting.locks import Locks
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC, Broker, Incoming, Stored
from mqclient.broker.watched import Watched
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import DLQ_PREFIX, RETRY_PREFIX

TIMES = ("TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS", "TIMER_OUT_MS")
WAITS = re.compile(rb"(?:^|\x02)(?:DELAY|TIMER_DELAY_SEC|TIMER_DELAY_MS|TIMER_DELIVER_MS)\x01")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
FIRST_RETRY_LEVEL = 3
WAITING_ROOMS = (SCHEDULE_TOPIC, TIMER_TOPIC, HALF_TOPIC)


def table(retries: Retries) -> Mapping[int, Handler]:
    return {Request.CONSUMER_SEND_MSG_BACK: retries.send_back}


class Retries:
    """Messages on their way to a retry topic, and those that wait for their time."""

    def __init__(self, broker: Broker, locks: Locks) -> None:
        self._broker = broker
        self._locks = locks
        self._remoting = broker.house.impl.remoting
        self.waiting: Watched[tuple[str, int, int], int] = Watched()
        """Messages that wait for their time: topic, queue and offset to when it comes, in ms."""
        broker.on_store = self.delay

    def start(self) -> None:
        """Take over the messages that waited in a former run."""
        for key, due in list(self.waiting.items()):
            topic, queue_id, offset = key
            record = self._broker.topic(topic).queue(queue_id).log.record(offset)
            message = self._remoting.decode_messages(record)[0]
            home, queue = message.property("REAL_TOPIC"), int(message.property("REAL_QID"))
            self._await(key, Incoming.again(message, home, queue, message.properties_text), due)

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
        """What is to be delivered later is stored in a system topic until its time comes: by level, or timed."""
        if not WAITS.search(incoming.properties) or incoming.topic in WAITING_ROOMS:
            return incoming
        properties = self._remoting.decode_properties(incoming.properties)
        if properties.get("REAL_TOPIC"):
            return incoming  # it has waited; consumers see this property, as with upstream
        place = self._place(properties)
        if place is None:
            return incoming
        topic, queue_id, seconds = place
        properties["REAL_TOPIC"], properties["REAL_QID"] = incoming.topic, str(incoming.queue_id)
        text = self._remoting.encode_properties(properties)
        due = self._broker.house.clock.wall_ms() + round(seconds * 1000)
        later = replace(incoming, properties=text)

        def placed(stored: Stored) -> None:
            self.waiting[topic, queue_id, stored.offset] = due
            self._await((topic, queue_id, stored.offset), later, due)

        return replace(incoming, topic=topic, queue_id=queue_id, properties=text, placed=placed)

    def recall(self, topic: str, unique: str) -> None:
        """Forget a timed message that waits."""
        log = self._broker.topic(TIMER_TOPIC).queue(0).log
        for offset in log.search(b"UNIQ_KEY\x01" + unique.encode()):
            if (TIMER_TOPIC, 0, offset) in self.waiting:
                message = self._remoting.decode_messages(log.record(offset))[0]
                if (message.property("REAL_TOPIC"), message.property("UNIQ_KEY")) == (topic, unique):
                    del self.waiting[TIMER_TOPIC, 0, offset]

    def due_at(self, properties: dict[str, str]) -> int | None:
        """When a timed message is to be delivered, in ms; None if it is none, or a level comes before the time."""
        if _number(properties.get("DELAY", "0")) > 0:
            return None
        now = self._broker.house.clock.wall_ms()
        for name, unit in (("TIMER_DELAY_SEC", 1000), ("TIMER_DELAY_MS", 1)):
            if name in properties:
                return now + unit * _number(properties[name])
        return _number(properties["TIMER_DELIVER_MS"]) if "TIMER_DELIVER_MS" in properties else None

    def _place(self, properties: dict[str, str]) -> tuple[str, int, float] | None:
        """Where it waits, and for how long."""
        seconds = self._levels()
        level = min(_number(properties.get("DELAY", "0")), len(seconds))
        if level > 0:
            return SCHEDULE_TOPIC, level - 1, seconds[level - 1]
        due = self.due_at(properties)
        if due is None:
            return None
        left = (due - self._broker.house.clock.wall_ms()) / 1000
        if left > self._broker.number("timerMaxDelaySec"):
            raise Refused(
                Response.MESSAGE_ILLEGAL, "timer message illegal, the delay time should not be bigger than the max"
            )
        if left <= 0:
            return None
        properties["TIMER_OUT_MS"] = str(due)
        return TIMER_TOPIC, 0, left

    def _await(self, key: tuple[str, int, int], message: Incoming, due: int) -> None:
        """Let it be delivered when its time comes."""

        def deliver() -> None:
            if self.waiting.pop(key, None) is not None:  # it was not recalled
                self._broker.store(message)

        clock = self._broker.house.clock
        clock.after(max(0.0, (due - clock.wall_ms()) / 1000), deliver)

    def _levels(self) -> list[int]:
        words = self._broker.config["messageDelayLevel"].split()
        return [int(word[:-1]) * UNITS[word[-1]] for word in words]

    def _again(self, message: Any, topic: str, properties: dict[str, str]) -> Incoming:
        for name in ("REAL_TOPIC", "REAL_QID", *TIMES):
            properties.pop(name, None)
        again = Incoming.again(message, topic, 0, self._remoting.encode_properties(properties))
        again.attempts += 1
        return again


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0

"""Owns the recall of timed messages: by the handle that their send was answered with.

| code | request | answered |
|---|---|---|
| 370 | RECALL_MESSAGE | also if the message is not known, or recalled already |

A handle is `v1 topic broker time unique-key` in the letters of base64 that names may hold. `recallMessageEnable` allows
it; upstream's default is no.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Final, NamedTuple

from mqclient.broker.remoting.retry import Retries
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply
from mqclient.broker.remoting.state import Broker
from mqclient.core import base64url
from mqclient.rocketmq.codes import Request, Response

REGION: Final = {"MSG_REGION": "DefaultRegion"}


class RecallHandle(NamedTuple):
    """What a timed message can be recalled by."""

    topic: str
    broker: str
    when: int
    unique: str

    def __str__(self) -> str:
        return urlsafe_b64encode(f"v1 {self.topic} {self.broker} {self.when} {self.unique}".encode()).decode()

    @classmethod
    def read(cls, text: str) -> RecallHandle:
        try:
            version, topic, broker, when, unique = base64url.decode(text).decode().split(" ")
            if version == "v1":
                return cls(topic, broker, int(when), unique)
        except ValueError:
            pass  # told as every other handle that cannot be read
        raise Refused(Response.ILLEGAL_OPERATION, "recall handle is invalid")


def table(broker: Broker, retries: Retries) -> Mapping[int, Handler]:
    return {Request.RECALL_MESSAGE: Recalls(broker, retries).recall}


class Recalls:
    """Takes timed messages back before their time."""

    def __init__(self, broker: Broker, retries: Retries) -> None:
        self._broker = broker
        self._retries = retries

    def recall(self, ask: Ask) -> Reply:
        try:
            handle = self._checked(ask)
        except Refused as refused:
            refused.reply = refused.reply._replace(fields=REGION)
            raise
        self._retries.recall(handle.topic, handle.unique)
        return Reply(remark="not set any response code", fields={**REGION, "msgId": handle.unique})

    def _checked(self, ask: Ask) -> RecallHandle:
        if not self._broker.setting("recallMessageEnable"):
            raise Refused(Response.NO_PERMISSION, "recall failed, operation is forbidden")
        topic = ask.text("topic")
        if topic not in self._broker.topics:
            raise Refused(Response.TOPIC_NOT_EXIST, f"recall failed, the topic[{topic}] not exist")
        handle = RecallHandle.read(ask.text("recallHandle"))
        if handle.topic != topic:
            raise Refused(Response.ILLEGAL_OPERATION, "recall failed, topic not match")
        if handle.broker != self._broker.name:
            raise Refused(Response.ILLEGAL_OPERATION, "recall failed, broker service not available")
        left = handle.when - self._broker.house.clock.wall_ms()
        if not 0 < left <= self._broker.number("timerMaxDelaySec") * 1000:
            raise Refused(Response.ILLEGAL_OPERATION, "recall failed, timestamp invalid")
        return handle

"""A group that pops: what the tests of popping begin with."""

from __future__ import annotations

import time
from typing import Any

from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.raw import Raw


class Popper:
    """Pops one topic for one group over one connection."""

    def __init__(self, raw: Raw, topic: str, queues: int = 1, group: str = "") -> None:
        self.raw = raw
        self.topic = topic
        self.group = group or f"{topic}-group"
        if queues:
            raw.create_topic(topic, queues)

    def send(self, *bodies: bytes, queue: int = 0, **properties: str) -> None:
        for body in bodies:
            assert self.raw.send(self.topic, body, queue, **properties).code == 0

    def fields(self, **more: Any) -> dict[str, Any]:
        fields = {
            "consumerGroup": self.group,
            "topic": self.topic,
            "queueId": -1,
            "maxMsgNums": 32,
            "invisibleTime": 60_000,
            "pollTime": 0,
            "bornTime": int(time.time() * 1000),
            "initMode": 0,
            "expType": "TAG",
            "exp": "*",
            "order": "false",
        }
        return fields | more

    def pop(self, **more: Any) -> Any:
        return self.raw.ask(Request.POP_MESSAGE, **self.fields(**more))

    def bodies(self, **more: Any) -> list[bytes]:
        return [message.body for message in self.messages(self.pop(**more))]

    def messages(self, answer: Any) -> list[Any]:
        return list(self.raw.codec.decode_messages(answer.body)) if answer.code == 0 else []

    def place(self, answer: Any, offset: int, queue: int = 0, **more: Any) -> dict[str, Any]:
        """What names one message of an answer."""
        start = answer.field("startOffsetInfo").split(";")[0].split(" ")[2]
        words = [start, answer.field("popTime"), answer.field("invisibleTime"), answer.field("reviveQid")]
        handle = " ".join([*words, "0", "broker-a", str(queue), str(offset)])
        fields = {"consumerGroup": self.group, "topic": self.topic, "queueId": queue, "offset": offset}
        return fields | {"extraInfo": handle} | more

    def ack(self, answer: Any, offset: int, queue: int = 0, **more: Any) -> Any:
        return self.raw.ask(Request.ACK_MESSAGE, **self.place(answer, offset, queue, **more))

    def change(self, answer: Any, offset: int, invisible: int, **more: Any) -> Any:
        fields = self.place(answer, offset, invisibleTime=invisible, **more)
        return self.raw.ask(Request.CHANGE_MESSAGE_INVISIBLETIME, **fields)

    def committed(self, queue: int = 0) -> int:
        answer = self.raw.ask(Request.QUERY_CONSUMER_OFFSET, consumerGroup=self.group, topic=self.topic, queueId=queue)
        return int(answer.field("offset", "-1"))

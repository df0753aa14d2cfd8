"""Owns the scripted conversations with a RocketMQ broker: raw requests, and their replies in a form that compares.

A script runs once on the embedded broker and once on a real one. What is each broker's own (addresses, ids, times) is
masked by its kind, so that it must still be there and look alike; everything else is kept as it came.
"""

from __future__ import annotations

import re
import time
import uuid
from contextlib import ExitStack
from typing import Any

from mqclient.errors import ProtocolError
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import read_body, write_body
from tests.unit.broker.remoting.raw import Raw, pull_fields

Step = dict[str, Any]

MASKS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[0-9A-F]{32}\b"), "<id32>"),
    (re.compile(r"\d{1,3}(\.\d{1,3}){3}:\d+"), "<address>"),
    (re.compile(r"\b1[0-9]{12}\b"), "<ms>"),
)
OWN = {
    "storeTimestamp",
    "bornTimestamp",
    "dataVersion",
    "lastTimestamp",
    "lastUpdateTimestamp",
    "recallHandle",
    "consumeTimeStampStr",
    "delayTime",
    "maxTimeStampStr",
    "minTimeStampStr",
    "physicOffset",
    "topicPutTps",
}
"""Fields whose value is each broker's own; that they are there is compared."""

SETS = {"lockOKMQSet", "connectionSet", "groupList"}
"""Lists that are sets in Java: their order means nothing."""


class Script:
    """One conversation; `steps` is what was answered, by the name of the step."""

    def __init__(self, codec: Any, broker: str, name_server: str, version: int = 1) -> None:
        self.codec = codec
        self._broker = broker
        self._names = name_server
        self._stack = ExitStack()
        self._tag = uuid.uuid4().hex[:8]
        self.steps: dict[str, Step] = {}

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def connect(self) -> Raw:
        return self._stack.enter_context(Raw(self.codec, self._broker))

    def names(self) -> Raw:
        return self._stack.enter_context(Raw(self.codec, self._names))

    def called(self, name: str) -> str:
        """A topic or group of this run alone; replies show it without its tag."""
        return f"{name}-{self._tag}"

    def topic(self, raw: Raw, name: str, queues: int = 4) -> str:
        topic = self.called(name)
        raw.create_topic(topic, queues)
        return topic

    def ask(self, step: str, raw: Raw, code: int, body: bytes = b"", **fields: Any) -> Any:
        """A step: ask and note the answer."""
        return self.note(step, raw.answer(raw.tell(code, body, **fields), 20.0))

    def indexed(self, raw: Raw, topic: str, *counts: int) -> None:
        """Wait until so many messages of each queue can be seen: a real broker indexes a moment after its receipt."""
        deadline = time.monotonic() + 20
        for queue, count in enumerate(counts):
            place: dict[str, Any] = {"topic": topic, "queueId": queue}
            while int(raw.ask(Request.GET_MAX_OFFSET, **place).field("offset")) < count:
                assert time.monotonic() < deadline, f"queue {queue} of {topic} never had {count} messages"
                time.sleep(0.01)

    def pull(self, step: str, raw: Raw, group: str, topic: str, offset: int, queue: int = 0, **fields: Any) -> Any:
        asked = pull_fields(group, topic, offset, queue, **fields)
        return self.ask(step, raw, Request.PULL_MESSAGE, **asked)

    def note(self, step: str, frame: Any) -> Any:
        assert step not in self.steps, f"two steps are called {step}"
        self.steps[step] = {
            "code": frame.code,
            "response": frame.is_response,
            "oneway": frame.is_oneway,
            "remark": self._masked(frame.remark),
            "fields": {name: self._value(name, value) for name, value in frame.fields.items()},
            "body": self._body(frame),
        }
        return frame

    def silence(self, step: str, raw: Raw, code: int) -> None:
        """A step: nothing of this kind is pushed."""
        try:
            self.note(step, raw.pushed(code, 0.5))
        except TimeoutError:
            self.steps[step] = {"silence": True}

    def _body(self, frame: Any) -> Any:
        if not frame.body:
            return None
        try:
            batch = self.codec.decode_messages(frame.body)
        except ProtocolError:
            return self._shape(read_body(frame.body))
        return [self._message(message) for message in batch]

    def _message(self, message: Any) -> Step:
        properties = {name: self._value(name, value) for name, value in sorted(message.properties.items())}
        names = ("body", "topic", "queue_id", "offset", "flag", "sys_flag", "attempts", "body_crc")
        kept = {name: getattr(message, name) for name in names}
        return {"properties": properties} | {name: self._plain(value) for name, value in kept.items()}

    def _shape(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._masked(str(key)): self._value(str(key), item) for key, item in sorted(value.items(), key=str)}
        if isinstance(value, list):
            return [self._shape(item) for item in value]
        return self._plain(value)

    def _value(self, name: str, value: Any) -> Any:
        if name in OWN:
            return f"<{type(value).__name__}>"
        shape = self._shape(value)
        return sorted(shape, key=str) if name in SETS else shape

    def _plain(self, value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode("latin-1")
        if isinstance(value, int) and 10**12 < value < 10**13:
            return "<ms>"
        return self._masked(value) if isinstance(value, str) else value

    def _masked(self, text: str | None) -> str | None:
        if text is None:
            return None
        text = text.replace(f"-{self._tag}", "")
        for pattern, shown in MASKS:
            text = pattern.sub(shown, text)
        return text


def differences(real: Any, embedded: Any, at: str = "") -> dict[str, tuple[Any, Any]]:
    """Every field in which two notes differ: path -> (real, embedded)."""
    if isinstance(real, dict) and isinstance(embedded, dict):
        found: dict[str, tuple[Any, Any]] = {}
        for key in sorted(real.keys() | embedded.keys()):
            found |= differences(real.get(key, "(absent)"), embedded.get(key, "(absent)"), f"{at}/{key}" if at else key)
        return found
    if isinstance(real, list) and isinstance(embedded, list) and len(real) == len(embedded):
        found = {}
        for index, (one, other) in enumerate(zip(real, embedded, strict=True)):
            found |= differences(one, other, f"{at}/{index}")
        return found
    return {} if real == embedded else {at: (real, embedded)}


def heartbeat(client_id: str, group: str, topics: dict[str, int], model: str = "CLUSTERING") -> bytes:
    """A beat's body: one consumer, its topics and versions."""
    every = {"classFilterMode": False, "codeSet": [], "expressionType": "TAG", "subString": "*", "tagsSet": []}
    return write_body(
        {
            "clientID": client_id,
            "producerDataSet": [],
            "consumerDataSet": [
                {
                    "groupName": group,
                    "consumeType": "CONSUME_PASSIVELY",
                    "messageModel": model,
                    "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
                    "unitMode": False,
                    "subscriptionDataSet": [every | {"topic": t, "subVersion": v} for t, v in topics.items()],
                }
            ],
        }
    )


def message_fields(topic: str, queue: int = 0, properties: str = "", **more: Any) -> dict[str, Any]:
    """A send's fields in version 1 names."""
    return {
        "producerGroup": "producers",
        "topic": topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": 4,
        "queueId": queue,
        "sysFlag": 0,
        "bornTimestamp": 1700000000000,
        "flag": 0,
        "properties": properties,
        "reconsumeTimes": 0,
        "unitMode": "false",
    } | more


SHORT = dict(zip("abcdefghijkl", message_fields("x"), strict=False))


def short_fields(topic: str, queue: int = 0, properties: str = "", **more: Any) -> dict[str, Any]:
    """The same in version 2 names."""
    long = message_fields(topic, queue, properties, **more)
    return {letter: long[name] for letter, name in SHORT.items()} | ({"m": long["batch"]} if "batch" in long else {})

"""A client of bare frames: what tests of the embedded broker speak, without any of our engines."""

from __future__ import annotations

import socket
from typing import Any

from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import read_body, write_body


class Raw:
    """One blocking connection."""

    def __init__(self, codec: Any, address: str) -> None:
        host, _, port = address.partition(":")
        self.codec = codec
        self._socket = socket.create_connection((host, int(port)), 5)
        self._reader = codec.FrameReader()
        self._opaque = 0
        self._frames: list[Any] = []

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def tell(self, code: int, body: bytes = b"", *, oneway: bool = False, serialize: int = 0, **fields: Any) -> int:
        """Send a request; its opaque."""
        self._opaque += 1
        texts = {name: str(value) for name, value in fields.items()}
        frame = self.codec.encode_frame(
            int(code), self._opaque, flag=2 * oneway, fields=texts, body=body, serialize=serialize
        )
        self._socket.sendall(frame)
        return self._opaque

    def ask(self, code: int, body: bytes = b"", **fields: Any) -> Any:
        """Send a request and wait for its answer."""
        return self.answer(self.tell(code, body, **fields))

    def answer(self, opaque: int, timeout: float = 5.0) -> Any:
        return self._until(lambda frame: frame.is_response and frame.opaque == opaque, timeout)

    def pushed(self, code: int, timeout: float = 5.0) -> Any:
        """The next request of this kind that the broker makes."""
        return self._until(lambda frame: not frame.is_response and frame.code == code, timeout)

    def respond(self, frame: Any, code: int = 0, body: bytes = b"", **fields: str) -> None:
        self._socket.sendall(self.codec.encode_frame(code, frame.opaque, flag=1, fields=fields, body=body))

    def _until(self, wanted: Any, timeout: float) -> Any:
        self._socket.settimeout(timeout)
        while True:
            for frame in self._frames:
                if wanted(frame):
                    self._frames.remove(frame)
                    return frame
            data = self._socket.recv(65536)
            if not data:
                raise EOFError("the broker closed the connection")
            self._frames += self._reader.feed(data)

    # ---- what most tests begin with

    def create_topic(self, topic: str, queues: int = 4) -> None:
        answer = self.ask(
            Request.UPDATE_AND_CREATE_TOPIC,
            topic=topic,
            defaultTopic="TBW102",
            readQueueNums=queues,
            writeQueueNums=queues,
            perm=6,
            topicFilterType="SINGLE_TAG",
            topicSysFlag=0,
            order="false",
        )
        assert answer.code == 0, answer.remark

    def send(self, topic: str, body: bytes, queue: int = 0, **properties: str) -> Any:
        text = self.codec.encode_properties(properties).decode() if properties else ""
        names = {"a": "producers", "b": topic, "c": "TBW102", "d": 4, "e": queue, "f": 0, "g": 1, "h": 0, "i": text}
        return self.ask(Request.SEND_MESSAGE_V2, body, **names)

    def pull(self, group: str, topic: str, offset: int, queue: int = 0, **fields: Any) -> Any:
        return self.ask(Request.PULL_MESSAGE, **pull_fields(group, topic, offset, queue, **fields))

    def heartbeat(self, client_id: str, group: str, versions: dict[str, int], model: str = "CLUSTERING") -> Any:
        beat = {
            "clientID": client_id,
            "producerDataSet": [],
            "consumerDataSet": [
                {
                    "groupName": group,
                    "consumeType": "CONSUME_PASSIVELY",
                    "messageModel": model,
                    "consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET",
                    "unitMode": False,
                    "subscriptionDataSet": [
                        {"topic": topic, "subString": "*", "subVersion": version, "tagsSet": [], "codeSet": []}
                        for topic, version in versions.items()
                    ],
                }
            ],
        }
        answer = self.ask(Request.HEART_BEAT, write_body(beat))
        assert answer.code == 0, answer.remark
        return answer


def pull_fields(group: str, topic: str, offset: int, queue: int = 0, **fields: Any) -> dict[str, Any]:
    """A pull's fields, with a subscription of everything unless told otherwise."""
    return {
        "consumerGroup": group,
        "topic": topic,
        "queueId": queue,
        "queueOffset": offset,
        "maxMsgNums": 32,
        "sysFlag": 4,
        "commitOffset": 0,
        "suspendTimeoutMillis": 1000,
        "subscription": "*",
        "subVersion": 0,
        "expressionType": "TAG",
    } | fields


def body_of(frame: Any) -> Any:
    return read_body(frame.body)

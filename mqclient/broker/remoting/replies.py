"""Owns request-reply: an answer goes to the client that waits for it, over the connection it has as a producer.

| code | request | answered |
|---|---|---|
| 324, 325 | SEND_REPLY_MESSAGE, _V2 | once the requester took it, or with 1 and why it did not |
| 326 | PUSH_REPLY_MESSAGE_TO_CLIENT | asked of the requester |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mqclient.broker.remoting.membership import Members
from mqclient.broker.remoting.send import LONG, REGION, SHORT, Names, Sends
from mqclient.broker.remoting.server import Ask, Handler, Reply
from mqclient.broker.remoting.state import Broker, Incoming
from mqclient.rocketmq.codes import Request, Response

PUSH_SECONDS: Final = 10.0


def table(replies: Replies) -> Mapping[int, Handler]:
    return {
        Request.SEND_REPLY_MESSAGE: lambda ask: replies.reply(ask, LONG),
        Request.SEND_REPLY_MESSAGE_V2: lambda ask: replies.reply(ask, SHORT),
    }


class Replies:
    """Brings answers to those who asked."""

    def __init__(self, broker: Broker, members: Members, sends: Sends) -> None:
        self._broker = broker
        self._members = members
        self._sends = sends
        self._remoting = broker.house.impl.remoting

    def reply(self, ask: Ask, names: Names) -> None:
        incoming = self._sends.incoming(ask, names)
        properties = self._remoting.decode_properties(incoming.properties) | REGION
        incoming.properties = self._remoting.encode_properties(properties)
        client_id = properties.get("REPLY_TO_CLIENT")
        if client_id is None:
            self._end(ask, incoming, "reply message properties[REPLY_TO_CLIENT] is null")
            return
        peer = self._members.producer(client_id)
        if peer is None:
            self._end(ask, incoming, f"push reply message fail, channel of <{client_id}> not found.")
            return

        def heard(frame: Any) -> None:
            taken = frame is not None and frame.code == Response.SUCCESS
            self._end(ask, incoming, None if taken else f"push reply message to {client_id}fail.")

        fields = self._fields(ask, names, incoming, properties)
        peer.ask(Request.PUSH_REPLY_MESSAGE_TO_CLIENT, fields, incoming.body, PUSH_SECONDS, heard)

    def _fields(self, ask: Ask, names: Names, incoming: Incoming, properties: dict[str, str]) -> dict[str, str]:
        now = str(self._broker.house.clock.wall_ms())
        text = self._remoting.encode_properties({"PUSH_REPLY_TIME": now, **properties}).decode()
        host, port = incoming.born_host
        return {
            "bornHost": f"{host}:{port}",
            "bornTimestamp": str(incoming.born_at),
            "defaultTopic": ask.text(names["defaultTopic"]),
            "defaultTopicQueueNums": ask.text(names["defaultTopicQueueNums"]),
            "flag": str(incoming.flag),
            "producerGroup": ask.text(names["producerGroup"]),
            "properties": text,
            "queueId": str(incoming.queue_id),
            "reconsumeTimes": str(incoming.attempts),
            "storeHost": self._broker.address,
            "storeTimestamp": now,
            "sysFlag": str(incoming.sys_flag),
            "topic": incoming.topic,
            "unitMode": str(ask.flag(names["unitMode"])).lower(),
        }

    def _end(self, ask: Ask, incoming: Incoming, trouble: str | None) -> None:
        """It is kept whether or not it arrived, unless the broker is told not to."""
        fields: Mapping[str, str] = REGION
        if self._broker.setting("storeReplyMessageEnable"):
            fields = self._sends.told(self._broker.store(incoming), None).fields
        ask.answer(Reply(Response.SYSTEM_ERROR if trouble else Response.SUCCESS, trouble, fields))

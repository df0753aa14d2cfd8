"""Owns how operators find messages, by id, key and time, and give dead letters another chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mqclient.core.compress import decompressor
from mqclient.core.steps import Steps
from mqclient.errors import ConfigError, MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.model import DLQ_PREFIX, RETRY_PREFIX, MessageQueue, check_group
from mqclient.rocketmq.remoting import requests
from mqclient.rocketmq.remoting.admin_cluster import brokers_steps
from mqclient.rocketmq.remoting.member_options import Start, start_ms
from mqclient.rocketmq.remoting.pull import COMPRESSION
from mqclient.rocketmq.remoting.seeking import offset_at_steps

if TYPE_CHECKING:
    from mqclient._native.remoting import Message

DECOMPRESS = decompressor(COMPRESSION)
PAGE: Final = 32
FOREVER_MS: Final = 9_000_000_000_000


class Resent(NamedTuple):
    """What became of a dead letter: `error` is None if it was sent again."""

    message: Any
    error: MQError | None

    @property
    def ok(self) -> bool:
        return self.error is None


class MessageAdmin:
    """Stored messages, wherever they are."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def view_steps(self, topic: str, message_id: str) -> Steps[Message]:
        """The message with this id, which the producer gave it or the broker; ConfigError if there is none."""
        found = yield from self._by_place_steps(topic, message_id)
        if found is None:
            matches = yield from self._query_steps(topic, message_id, 0, FOREVER_MS, PAGE, unique=True)
            found = next((message for message in matches if message.message_id == message_id), None)
        if found is None:
            raise ConfigError(f"topic {topic} has no message {message_id}")
        message: Message = found
        return message

    def query_steps(self, topic: str, key: str, begin: Start, end: Start, limit: int) -> Steps[list[Any]]:
        """Messages with this key, stored between the times, the oldest first."""
        matches = yield from self._query_steps(topic, key, edge_ms(begin), edge_ms(end), limit, unique=False)
        return [message for message in matches if key in message.keys][:limit]

    def between_steps(self, topic: str, begin: Start, end: Start, limit: int) -> Steps[list[Any]]:
        """Messages stored from `begin` on and before `end`, the oldest first."""
        route = yield self._client.routes.fetch(topic)
        found: list[Any] = []
        for queue in route.readable:
            first = yield from offset_at_steps(self._client, queue, begin)
            last = yield from offset_at_steps(self._client, queue, end)
            found += yield from self._range_steps(queue, first, last, limit)
        return sorted(found, key=lambda message: (message.stored_at, message.queue, message.offset))[:limit]

    def resend_steps(self, group: str, begin: Start, end: Start, limit: int, to: str) -> Steps[list[Resent]]:
        """Dead letters of that time once more, to the group alone or to the topic that they came from."""
        check_group(group)
        if to not in ("group", "topic"):
            raise ConfigError(f"to={to!r}: 'group' or 'topic'")
        outcomes: list[Resent] = []
        for letter in (yield from self.between_steps(DLQ_PREFIX + group, begin, end, limit)):
            try:
                yield from self._resend_steps(group, letter, to)
            except MQError as error:
                outcomes.append(Resent(letter, error))
            else:
                outcomes.append(Resent(letter, None))
        return outcomes

    # ---- one by one

    def _by_place_steps(self, topic: str, message_id: str) -> Steps[Any]:
        """If the id names a place at one of our brokers: what is there. Ids of producers look the same."""
        try:
            host, port, offset = self._client.impl.remoting.parse_offset_id(message_id)
        except ConfigError:
            return None
        for name, (_, addresses) in (yield from brokers_steps(self._client)).items():
            if f"{host}:{port}" in addresses.values():
                fields = {"offset": str(offset), "topic": topic}
                frame = yield self._client.ask(f"{host}:{port}", Request.VIEW_MESSAGE_BY_ID, fields)
                if frame.code == Response.SUCCESS:
                    return next(iter(self._messages(frame.body, topic, name)), None)
        return None

    def _query_steps(
        self, topic: str, key: str, begin_ms: int, end_ms: int, limit: int, *, unique: bool
    ) -> Steps[list[Any]]:
        fields = {
            "topic": topic,
            "key": key,
            "maxNum": str(limit),
            "beginTimestamp": str(begin_ms),
            "endTimestamp": str(end_ms),
            "_UNIQUE_KEY_QUERY": "true" if unique else "false",
        }
        route = yield self._client.routes.fetch(topic)
        found: list[Any] = []
        for name in sorted(route.brokers):
            address = self._client.broker_address(name)
            frame = yield self._client.ask(address, Request.QUERY_MESSAGE, fields)
            if frame.code == Response.SUCCESS:
                found += self._messages(frame.body, topic, name)
            elif frame.code != Response.QUERY_NOT_FOUND:
                raise BrokerError(frame.code, frame.remark or "", remote=address, request=Request.QUERY_MESSAGE.name)
        return sorted(found, key=lambda message: (message.stored_at, message.offset))

    def _range_steps(self, queue: MessageQueue, first: int, last: int, limit: int) -> Steps[list[Any]]:
        found: list[Any] = []
        remoting, address = self._client.impl.remoting, self._client.broker_address(queue.broker_name)
        while first < last and len(found) < limit:
            opaque = self._client.opaque()
            frame = requests.peek(remoting, opaque, "TOOLS_CONSUMER", queue, first, min(PAGE, last - first))
            reply = yield self._client.send(address, opaque, frame, Request.PULL_MESSAGE.name)
            if reply.code == Response.SUCCESS:
                batch = remoting.decode_messages(reply.body, decompress=DECOMPRESS, queue=queue)
                found += [message for message in batch if message.offset < last]
            elif reply.code not in (Response.PULL_OFFSET_MOVED, Response.PULL_RETRY_IMMEDIATELY):
                return found
            following = int(reply.field("nextBeginOffset", "0"))
            if following <= first:
                return found
            first = following
        return found

    def _messages(self, body: bytes, topic: str, broker_name: str) -> list[Any]:
        """Each with the queue in which it is stored."""
        decode = self._client.impl.remoting.decode_messages
        found: list[Any] = []
        for queue_id in sorted({message.queue_id for message in decode(body)}):
            queue = MessageQueue(topic, broker_name, queue_id)
            batch = decode(body, decompress=DECOMPRESS, queue=queue)
            found += [message for message in batch if message.queue_id == queue_id and message.topic == topic]
        return found

    def _resend_steps(self, group: str, letter: Any, to: str) -> Steps[None]:
        origin = letter.property("RETRY_TOPIC") or letter.property("DLQ_ORIGIN_TOPIC")
        if to == "topic" and not origin:
            raise ConfigError(f"the dead letter {letter.message_id} does not say where it came from")
        topic = str(origin) if to == "topic" else RETRY_PREFIX + group
        properties = {name: value for name, value in letter.properties.items() if name not in _BROKERS_OWN}
        if to == "group" and origin:
            properties["RETRY_TOPIC"] = str(origin)
        route = yield self._client.routes.fetch(topic)
        queue = self._client.routes.pick(route, None)
        remoting, opaque = self._client.impl.remoting, self._client.opaque()
        frame = remoting.encode_send(
            opaque,
            group,
            topic,
            queue.queue_id,
            remoting.encode_properties(properties),
            letter.body,
            born_at=letter.born_at,
            flag=letter.flag,
            broker=queue.broker_name,
        )
        address = self._client.broker_address(queue.broker_name)
        reply = yield self._client.send(address, opaque, frame, Request.SEND_MESSAGE_V2.name)
        if reply.code != Response.SUCCESS:
            raise BrokerError(reply.code, reply.remark or "", remote=address, request=Request.SEND_MESSAGE_V2.name)


_BROKERS_OWN: Final = frozenset(
    {
        "DELAY",
        "REAL_TOPIC",
        "REAL_QID",
        "MIN_OFFSET",
        "MAX_OFFSET",
        "RETRY_TOPIC",
        "RECONSUME_TIME",
        "MAX_RECONSUME_TIMES",
        "DLQ_ORIGIN_TOPIC",
        "DLQ_ORIGIN_MESSAGE_ID",
        "ORIGIN_MESSAGE_ID",
        "TIMER_DELAY_SEC",
        "TIMER_DELAY_MS",
        "TIMER_DELIVER_MS",
        "TIMER_OUT_MS",
        "CONSUME_START_TIME",
    }
)
"""What the broker noted on the way to the dead letters."""


def edge_ms(when: Start) -> int:
    """An end of a time range in milliseconds; "first" and "last" are the beginning and the end of time."""
    wall_ms = start_ms(when)
    if wall_ms is not None:
        return wall_ms
    return 0 if when == "first" else FOREVER_MS

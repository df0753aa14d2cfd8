"""Owns sending: one message, a batch, with topics made on first use.

| code | request | answered |
|---|---|---|
| 10 | SEND_MESSAGE | long field names |
| 310 | SEND_MESSAGE_V2 | short field names |
| 320 | SEND_BATCH_MESSAGE | short field names; the field `batch` decides, not the code |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from mqclient.broker.remoting.recall import RecallHandle
from mqclient.broker.remoting.retry import Retries
from mqclient.broker.remoting.server import Ask, Handler, Refused, Reply, number_of
from mqclient.broker.remoting.state import HELP, INHERIT, Broker, Incoming, Stored, Topic
from mqclient.broker.remoting.topics import check_name
from mqclient.broker.remoting.transactions import Transactions
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import DLQ_PREFIX, FORBIDDEN_TOPICS, RETRY_PREFIX

STORED: Final = ("topic", "queueId", "properties", "flag", "sysFlag", "bornTimestamp", "reconsumeTimes")
"""What is read of every send, in one look at its header."""


class Names(dict[str, str]):
    """What the fields of a send are called; `stored`: those of STORED, in its order."""

    __slots__ = ("stored",)

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__(names)
        self.stored = tuple(names[name] for name in STORED)


SHORT: Final = Names(
    {
        "producerGroup": "a",
        "topic": "b",
        "defaultTopic": "c",
        "defaultTopicQueueNums": "d",
        "queueId": "e",
        "sysFlag": "f",
        "bornTimestamp": "g",
        "flag": "h",
        "properties": "i",
        "reconsumeTimes": "j",
        "unitMode": "k",
        "maxReconsumeTimes": "l",
        "batch": "m",
    }
)
LONG: Final = Names({name: name for name in SHORT})
REGION = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
REGION_TEXT = b"\x02" + b"\x02".join(f"{name}\x01{value}".encode() for name, value in REGION.items())
MAX_PROPERTIES = 32767
TIMED = re.compile(rb"(?:^|\x02)(?:TRAN_MSG|TIMER_DELAY_SEC|TIMER_DELAY_MS|TIMER_DELIVER_MS)\x01")


def table(sends: Sends) -> Mapping[int, Handler]:
    return {
        Request.SEND_MESSAGE: lambda ask: sends.send(ask, LONG),
        Request.SEND_MESSAGE_V2: lambda ask: sends.send(ask, SHORT),
        Request.SEND_BATCH_MESSAGE: lambda ask: sends.send(ask, SHORT),
    }


class Sends:
    """Checks a send in upstream's order, stores it, and tells where it lies."""

    def __init__(self, broker: Broker, retries: Retries, transactions: Transactions) -> None:
        self._broker = broker
        self._retries = retries
        self._transactions = transactions
        self._remoting = broker.house.impl.remoting
        random = broker.house.random
        self._keys = self._remoting.UniqueKeys(bytes((127, 0, 0, 1)), random.getrandbits(16), random.getrandbits(32))

    def send(self, ask: Ask, names: Names) -> Reply:
        try:
            incoming = self._incoming(ask, names)
            if ask.flag(names["batch"]):
                return self._batch(incoming)
            if incoming.topic.startswith(RETRY_PREFIX):
                limit = ask.number(names["maxReconsumeTimes"], -1)
                incoming = self._retries.direct(incoming, incoming.topic[len(RETRY_PREFIX) :], limit)
            return self._single(incoming)
        except Refused as refused:
            raise _with_region(refused) from None

    def incoming(self, ask: Ask, names: Names) -> Incoming:
        """What a request wants to be stored, checked; its topic is made if need be."""
        try:
            return self._incoming(ask, names)
        except Refused as refused:
            raise _with_region(refused) from None

    def _incoming(self, ask: Ask, names: Names) -> Incoming:
        wanted = names.stored
        topic_name, queue, properties, flag, sys_flag, born_at, attempts = ask.frame.pick(wanted)
        topic = self._topic(ask, names, topic_name)
        queue_id = number_of(wanted[1], queue)
        queues = max(topic.write_queues, topic.read_queues)
        if queue_id >= queues:
            remark = f"request queueId[{queue_id}] is illegal, {topic.shown()} Producer: {ask.peer.address}"
            raise Refused(Response.INVALID_PARAMETER, remark)
        if queue_id < 0:
            queue_id = self._broker.house.random.randrange(topic.write_queues)
        incoming = Incoming(
            topic.name,
            queue_id,
            ask.body,
            (properties or "").encode(),
            flag=number_of(wanted[3], flag),
            sys_flag=number_of(wanted[4], sys_flag),
            born_at=number_of(wanted[5], born_at),
            born_host=ask.peer.host,
            attempts=number_of(wanted[6], attempts, 0),
        )
        self._check(incoming)
        return incoming

    def _topic(self, ask: Ask, names: Names, given: str | None) -> Topic:
        name = ask.text(names["topic"]) if given is None else given
        topic = self._broker.topics.get(name)
        if topic is not None and name not in FORBIDDEN_TOPICS:
            # As upstream, a topic's own permission is told in routes and not checked here.
            return topic
        check_name(name, 255 if name.startswith((RETRY_PREFIX, DLQ_PREFIX)) else 127)
        if name in FORBIDDEN_TOPICS:
            raise Refused(Response.NO_PERMISSION, f"Sending message to topic[{name}] is forbidden.")
        return self._create(ask, names, name)

    def _create(self, ask: Ask, names: Names, name: str) -> Topic:
        """A topic made by the first message to it, after the model that the producer names."""
        model = self._broker.topics.get(ask.text(names["defaultTopic"]))
        if model and model.perm & INHERIT and self._broker.setting("autoCreateTopicEnable"):
            queues = min(ask.number(names["defaultTopicQueueNums"]), model.write_queues)
            return self._broker.make_topic(name, queues, model.perm & ~INHERIT)
        if name.startswith(RETRY_PREFIX):
            return self._broker.make_topic(name, 1)
        remark = f"topic[{name}] not exist, apply first please!\n{HELP}"  # a pull's has a blank before the line's end
        raise Refused(Response.TOPIC_NOT_EXIST, remark)

    def _check(self, incoming: Incoming) -> None:
        if not incoming.body:
            raise Refused(Response.SYSTEM_ERROR, "java.lang.NullPointerException: the body is missing")
        limit = self._broker.number("maxMessageSize")
        if len(incoming.body) > limit or len(incoming.properties) > MAX_PROPERTIES:
            remark = "the message is illegal, maybe msg body or properties length not matched. msg body length limit "
            raise Refused(Response.MESSAGE_ILLEGAL, f"{remark}{limit}B, msg properties length limit 32KB.")

    def _single(self, incoming: Incoming) -> Reply:
        unique = _unique_key(incoming.properties)
        if unique is None:
            unique = self._keys.next(self._broker.house.clock.wall_ms())
            incoming.properties = _with(incoming.properties, b"UNIQ_KEY", unique.encode())
        cluster = self._broker.config["brokerClusterName"].encode()
        incoming.properties = _with(incoming.properties, b"CLUSTER", cluster + REGION_TEXT)
        properties = self._remoting.decode_properties(incoming.properties) if TIMED.search(incoming.properties) else {}
        if properties.get("TRAN_MSG") == "true" and not (incoming.attempts and "DELAY" in properties):
            return self.told(self._transactions.begin(incoming), unique)
        due = self._retries.due_at(properties)
        stored = self._broker.store(incoming)._replace(queue_id=incoming.queue_id)  # also if it waits elsewhere
        reply = self.told(stored, unique)
        if due is not None:
            handle = RecallHandle(incoming.topic, self._broker.name, due + 1, unique)
            reply = reply._replace(fields={**reply.fields, "recallHandle": str(handle)})
        return reply

    def _batch(self, incoming: Incoming) -> Reply:
        if incoming.topic.startswith(RETRY_PREFIX):
            raise Refused(Response.MESSAGE_ILLEGAL, "batch request does not support retry group")
        if self._remoting.is_timed(incoming.body):
            first, ids = self._each(incoming)
        else:
            first, place, ends = self._broker.store_batch(incoming)
            ids = self._remoting.offset_ids(*self._broker.host, place, ends)
        return self._reply(incoming.queue_id, first, ids, _unique_key(incoming.properties))

    def _each(self, incoming: Incoming) -> tuple[int, str]:
        """The messages of a batch one by one, as some of them may have to wait."""
        stored = []
        for flag, body, properties in self._remoting.split_batch(incoming.body):
            element = replace(incoming, body=body, properties=properties, flag=flag, attempts=0)
            stored.append(self._broker.store(element))
        return stored[0].offset, ",".join(map(self._id, stored))

    def told(self, stored: Stored, unique: str | None) -> Reply:
        """The answer to a send that was stored."""
        return self._reply(stored.queue_id, stored.offset, self._id(stored), unique)

    def _reply(self, queue_id: int, offset: int, ids: str, unique: str | None) -> Reply:
        fields = {
            **REGION,
            "msgId": ids,
            "queueId": str(queue_id),
            "queueOffset": str(offset),
        }
        if unique is not None:
            fields["transactionId"] = unique
        return Reply(fields=fields)

    def _id(self, stored: Stored) -> str:
        """The broker's id of a message."""
        return str(self._remoting.offset_id(*self._broker.host, stored.physical_offset))


def _with_region(refused: Refused) -> Refused:
    """Also a refusal names the region."""
    refused.reply = refused.reply._replace(fields={**REGION, **refused.reply.fields})
    return refused


def _unique_key(properties: bytes) -> str | None:
    at = properties.find(b"UNIQ_KEY\x01")
    if at < 0 or (at and properties[at - 1] != 2):
        return None
    end = properties.find(b"\x02", at)
    return properties[at + 9 : end if end >= 0 else None].decode("utf-8", "replace")


def _with(properties: bytes, name: bytes, value: bytes) -> bytes:
    """The text with one entry more; releases around 5.0 leave out the last separator."""
    joint = b"" if not properties or properties.endswith(b"\x02") else b"\x02"
    return b"".join((properties, joint, name, b"\x01", value, b"\x02"))

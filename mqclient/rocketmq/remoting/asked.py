"""Owns what brokers ask of us.

| code | request | what we do |
|---|---|---|
| 39 | CHECK_TRANSACTION_STATE | have the producer's check say what became of the message |
| 40 | NOTIFY_CONSUMER_IDS_CHANGED | rebalance the group |
| 326 | PUSH_REPLY_MESSAGE_TO_CLIENT | give the reply to who waits for it |
| 220 | RESET_CONSUMER_CLIENT_OFFSET | move the queues of the table |
| 221 | GET_CONSUMER_STATUS_FROM_CLIENT | tell the offsets in memory |
| 309 | CONSUME_MESSAGE_DIRECTLY | call the handler with one message and tell what came of it |
| 307 | GET_CONSUMER_RUNNING_INFO | tell what we hold and how far we are; with an extra field: a relayed reset |
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from mqclient.core.link import Link
from mqclient.core.slot import Slot
from mqclient.core.steps import run_steps
from mqclient.errors import MQError
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.remoting.bodies import offset_table, read_body, write_body
from mqclient.rocketmq.remoting.describe import stacks
from mqclient.rocketmq.remoting.direct import consume_directly_steps
from mqclient.rocketmq.remoting.relayed import RESET_FIELD, RelayedResets
from mqclient.rocketmq.remoting.reset import reset

LOG = logging.getLogger("mqclient.remoting")


class Asked:
    """The table of handlers; anything else is answered as not supported."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._relayed = RelayedResets(client)
        self._table: dict[int, Callable[[Link, Any], None]] = {
            Request.CHECK_TRANSACTION_STATE: self._check_transaction,
            Request.NOTIFY_CONSUMER_IDS_CHANGED: self._ids_changed,
            Request.PUSH_REPLY_MESSAGE_TO_CLIENT: client.replies.on_push,
            Request.RESET_CONSUMER_CLIENT_OFFSET: self._reset,
            Request.GET_CONSUMER_STATUS_FROM_CLIENT: self._status,
            Request.CONSUME_MESSAGE_DIRECTLY: self._consume_directly,
            Request.GET_CONSUMER_RUNNING_INFO: self._running_info,
        }

    def on_request(self, link: Link, frame: Any) -> None:
        """One request; a body that cannot be read costs an answer, never the connection."""
        handler = self._table.get(frame.code)
        if handler is None:
            remark = f" request type {frame.code} not supported"
            self._client.respond(link, frame, Response.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
            return
        try:
            handler(link, frame)
        except MQError as error:
            LOG.warning("%s asked %s and it failed: %s", link.address, Request(frame.code).name, error)
            self._client.respond(link, frame, Response.SYSTEM_ERROR, remark=str(error))

    def _member(self, link: Link, frame: Any, group: str) -> Any:
        member = self._client.consumers.get(group)
        if member is None:
            remark = f"The Consumer Group <{group}> not exist in this consumer"
            self._client.respond(link, frame, Response.SYSTEM_ERROR, remark=remark)
        return member

    def _check_transaction(self, link: Link, frame: Any) -> None:
        (message,) = self._client.impl.remoting.decode_messages(frame.body)[:1] or (None,)
        group = "" if message is None else message.property("PGROUP", "")
        producer = self._client.producers.get(group)
        if producer is None or producer.checker is None:
            LOG.info("%s asked about a transaction of %r: there is no such transactional producer", link.address, group)
        else:
            producer.checker.on_check(link, frame)

    def _ids_changed(self, link: Link, frame: Any) -> None:
        member = self._client.consumers.get(frame.field("consumerGroup", ""))
        if member is not None and not member.closed:
            member.rebalance.poke()

    def _reset(self, link: Link, frame: Any) -> None:
        group, topic = frame.field("group", ""), frame.field("topic", "")
        member = self._client.consumers.get(group)
        if member is not None:
            LOG.info("%s asked for a reset of %s in %s", link.address, topic, group)
            table = offset_table(read_body(frame.body))
            reset(member, topic, {q: offset for q, offset in table.items() if not member.absorber.absorbs(q, offset)})

    def _status(self, link: Link, frame: Any) -> None:
        member = self._member(link, frame, frame.field("group", ""))
        if member is not None:
            topic = frame.field("topic", "")
            table = {queue: offset for queue, offset in member.offsets.memory.items() if queue.topic == topic}
            self._client.respond(link, frame, Response.SUCCESS, body=write_body({"messageQueueTable": table}))

    def _running_info(self, link: Link, frame: Any) -> None:
        member = self._member(link, frame, frame.field("consumerGroup", ""))
        if member is None:
            return
        if frame.field(RESET_FIELD) is not None:
            self._relayed.obey(link, frame, member)
        else:
            info = member.running_info()
            if frame.field("jstackEnable") == "true":
                info["jstack"] = stacks(member)
            self._client.respond(link, frame, Response.SUCCESS, body=write_body(info))

    def _consume_directly(self, link: Link, frame: Any) -> None:
        member = self._member(link, frame, frame.field("consumerGroup", ""))
        if member is not None:
            run_steps(consume_directly_steps(self._client, member, frame)).then(
                lambda slot: self._told(link, frame, slot)
            )

    def _told(self, link: Link, frame: Any, slot: Slot[bytes]) -> None:
        if slot.error is None:
            self._client.respond(link, frame, Response.SUCCESS, body=slot.result())
        else:
            self._client.respond(link, frame, Response.SYSTEM_ERROR, remark=str(slot.error))

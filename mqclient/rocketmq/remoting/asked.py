"""Owns what brokers ask of us.

| code | request | what we do |
|---|---|---|
| 40 | NOTIFY_CONSUMER_IDS_CHANGED | rebalance the group |
| 220 | RESET_CONSUMER_CLIENT_OFFSET | move the queues of the table |
| 221 | GET_CONSUMER_STATUS_FROM_CLIENT | tell the offsets in memory |
| 307 | GET_CONSUMER_RUNNING_INFO | tell what we hold and how far we are; with an extra field: a relayed reset |
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from mqclient.core.link import Link
from mqclient.errors import MQError
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.admin_reset import MOVED_FIELD, RESET_FIELD
from mqclient.rocketmq.remoting.bodies import offset_table, read_body, write_body
from mqclient.rocketmq.remoting.reset import reset

LOG = logging.getLogger("mqclient.remoting")

REMEMBERED: Final = 64
"""Relayed resets whose repetition is noticed."""


class Asked:
    """The table of handlers; anything else is answered as not supported."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._resets: dict[str, set[MessageQueue]] = {}
        """Relayed resets by id, and the queues that each has moved."""
        self._table: dict[int, Callable[[Link, Any], None]] = {
            Request.NOTIFY_CONSUMER_IDS_CHANGED: self._ids_changed,
            Request.RESET_CONSUMER_CLIENT_OFFSET: self._reset,
            Request.GET_CONSUMER_STATUS_FROM_CLIENT: self._status,
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

    def _relayed_reset(self, link: Link, frame: Any, member: Any) -> None:
        """A reset that another mqclient sent through the broker: a read request that writes, so it can be forbidden."""
        reset_id, topic = frame.field(RESET_FIELD), frame.field("topic", "")
        if not self._client.options.allow_relayed_reset:
            LOG.warning("consumer:%s refused the relayed reset %s by %s", member.group, reset_id, link.address)
            self._client.respond(link, frame, Response.NO_PERMISSION, remark="relayed resets are not allowed here")
            return
        table = offset_table(read_body(frame.body))
        done = self._resets.setdefault(reset_id, set())
        if len(self._resets) > REMEMBERED:
            del self._resets[next(iter(self._resets))]
        moved = reset(member, topic, {queue: offset for queue, offset in table.items() if queue not in done})
        done.update(table)  # a repeated one, which a sender may try when an answer was lost, moves nothing
        LOG.info("consumer:%s obeyed the relayed reset %s by %s", member.group, reset_id, link.address)
        self._client.respond(link, frame, Response.SUCCESS, **{MOVED_FIELD: str(len(moved))})

    def _member(self, link: Link, frame: Any, group: str) -> Any:
        member = self._client.consumers.get(group)
        if member is None:
            remark = f"The Consumer Group <{group}> not exist in this consumer"
            self._client.respond(link, frame, Response.SYSTEM_ERROR, remark=remark)
        return member

    def _ids_changed(self, link: Link, frame: Any) -> None:
        member = self._client.consumers.get(frame.field("consumerGroup", ""))
        if member is not None and not member.closed:
            member.rebalance.poke()

    def _reset(self, link: Link, frame: Any) -> None:
        group, topic = frame.field("group", ""), frame.field("topic", "")
        member = self._client.consumers.get(group)
        if member is not None:
            LOG.info("%s asked for a reset of %s in %s", link.address, topic, group)
            reset(member, topic, offset_table(read_body(frame.body)))

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
            self._relayed_reset(link, frame, member)
        else:
            self._client.respond(link, frame, Response.SUCCESS, body=write_body(member.running_info()))

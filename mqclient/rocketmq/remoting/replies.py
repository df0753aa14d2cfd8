"""Owns the replies that a client waits for, and what brokers push for them."""

from __future__ import annotations

import logging
from typing import Any, Final

from mqclient.core.link import Link
from mqclient.core.slot import Slot
from mqclient.errors import ProtocolError
from mqclient.rocketmq.codes import Response
from mqclient.rocketmq.model import Reply
from mqclient.rocketmq.remoting.announcing import Announcer
from mqclient.rocketmq.remoting.pull import DECOMPRESS

LOG = logging.getLogger("mqclient.remoting")

COMPRESSED: Final = 1
MAX_REPLY: Final = 64 << 20


class Replies:
    """The replies that one client waits for: brokers push them to it by its id."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.waiting: dict[str, Slot[Reply]] = {}
        self.announcer = Announcer(client)

    def on_push(self, link: Link, frame: Any) -> None:
        """326: a reply. One that nobody waits for any more is right to come, and is dropped."""
        properties = self._client.impl.remoting.decode_properties(frame.field("properties", "").encode())
        correlation = properties.get("CORRELATION_ID", "")
        slot = self.waiting.pop(correlation, None)
        if slot is None:
            LOG.info("%s brought the reply %r: nobody waits for it", link.address, correlation[:80])
        else:
            slot.complete(Reply(frame.field("topic", ""), self._body(frame), properties))
        self._client.respond(link, frame, Response.SUCCESS)

    def _body(self, frame: Any) -> bytes:
        body: bytes = frame.body
        try:
            flags = int(frame.field("sysFlag", "0"))
        except ValueError as error:
            raise ProtocolError("a reply's sysFlag is no number") from error
        kind = flags >> 8 & 7 or 3
        return DECOMPRESS(kind, memoryview(body), MAX_REPLY) if flags & COMPRESSED else body

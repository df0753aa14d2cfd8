"""Owns what hooks of RocketMQ's producers may put into messages."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from mqclient.core.hooking import SendHooks
from mqclient.rocketmq.model import RESERVED_PROPERTIES, Message

LOG = logging.getLogger("mqclient.remoting")


class Hooks(SendHooks):
    """Names that the protocol reserves are not for hooks."""

    def __init__(self, hooks: Sequence[Any]) -> None:
        super().__init__(hooks, LOG)

    def properties(self, message: Message) -> dict[str, str]:
        found = super().properties(message)
        return {name: value for name, value in found.items() if name not in RESERVED_PROPERTIES}

    def decorated(self, message: Message) -> Message:
        """A copy that has them: the caller's own message stays as it is."""
        return Message(
            message.topic,
            message.body,
            tag=message.tag,
            keys=message.keys,
            properties={**message.properties, **self.properties(message)},
            delay_level=message.delay_level,
            deliver_at=message.deliver_at,
            deliver_after=message.deliver_after,
            flag=message.flag,
        )

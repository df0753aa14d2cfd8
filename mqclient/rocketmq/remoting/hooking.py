"""Owns the calling of a producer's hooks, and the one that is here already: W3C trace context in a property."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from secrets import token_hex
from typing import Any, Final

from mqclient.errors import ConfigError
from mqclient.hooks import Sent
from mqclient.rocketmq.model import RESERVED_PROPERTIES, Message

LOG = logging.getLogger("mqclient.remoting")

traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)
"""The span that is at work here, in the form of the W3C header; whoever traces sets it, `TraceContext` sends it on."""
_FORM: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-([0-9a-f]{2})\Z")


class TraceContext:
    """`hooks=[TraceContext()]`: each message gets a `traceparent`, a child of the one in the context variable."""

    def before_send(self, message: Any, properties: dict[str, str]) -> None:
        match = _FORM.match(traceparent.get() or "")
        trace, flags = (match[1], match[2]) if match else (token_hex(16), "01")
        properties["traceparent"] = f"00-{trace}-{token_hex(8)}-{flags}"


class Hooks:
    """The hooks of one producer. One that fails is logged, and fails nothing else."""

    def __init__(self, hooks: Sequence[Any]) -> None:
        self._before: list[Callable[[Any, dict[str, str]], None]] = []
        self._after: list[Callable[[Sent], None]] = []
        for hook in hooks:
            before, after = getattr(hook, "before_send", None), getattr(hook, "after_send", None)
            if before is None and after is None:
                raise ConfigError(f"hooks: {hook!r} has neither before_send(message, properties) nor after_send(sent)")
            self._before += [] if before is None else [before]
            self._after += [] if after is None else [after]

    @property
    def adds(self) -> bool:
        """Whether messages get properties by hooks."""
        return bool(self._before)

    @property
    def listens(self) -> bool:
        return bool(self._after)

    def properties(self, message: Message) -> dict[str, str]:
        """What the hooks want to travel with this message; outside of any entry."""
        found: dict[str, str] = {}
        for before in self._before:
            try:
                before(message, found)
            except Exception:
                LOG.exception("a before_send hook failed")
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

    def tell(self, sent: Sent) -> None:
        """Where user code may run."""
        for after in self._after:
            try:
                after(sent)
            except Exception:
                LOG.exception("an after_send hook failed")

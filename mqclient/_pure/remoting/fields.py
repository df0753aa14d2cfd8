"""What a user gives for a message to send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime


class Outgoing:
    """The fields of a message to send."""

    __slots__ = ("body", "delay_level", "deliver_after", "deliver_at", "flag", "keys", "properties", "tag", "topic")

    def __init__(
        self,
        topic: str,
        body: bytes | bytearray | memoryview,
        *,
        tag: str | None = None,
        keys: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        delay_level: int = 0,
        deliver_at: datetime | int | None = None,
        deliver_after: float | None = None,
        flag: int = 0,
    ) -> None:
        _check_body(body)
        self.topic = topic
        self.body = body
        self.tag = tag
        self.keys = [keys] if isinstance(keys, str) else list(keys)
        self.properties = dict(properties) if properties else {}
        self.delay_level = delay_level
        self.deliver_at = int(deliver_at.timestamp() * 1000) if isinstance(deliver_at, datetime) else deliver_at
        self.deliver_after = deliver_after
        self.flag = flag


def _check_body(body: object) -> None:
    if not isinstance(body, (bytes, bytearray, memoryview)):
        cure = "encode it first: text.encode()" if isinstance(body, str) else "turn it into bytes first"
        raise TypeError(f"a body is bytes, not {type(body).__name__}: {cure}")

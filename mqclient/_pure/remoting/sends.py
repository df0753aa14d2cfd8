"""Sends to bytes, where many go the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from .frames import encode_frame, encode_send

if TYPE_CHECKING:
    from typing_extensions import Buffer


@final
class SendHead:
    """What all sends of one group to one queue begin and end with."""

    __slots__ = ("_batch", "_broker", "_code", "_default_queues", "_group", "_queue_id", "_topic")

    def __init__(
        self,
        group: str,
        topic: str,
        queue_id: int,
        *,
        code: int = 310,
        batch: bool = False,
        broker: str = "",
        default_queues: int = 4,
    ) -> None:
        encode_frame(code, 0, fields={"a": group, "b": topic, "n": broker})  # what cannot be encoded is told here
        self._group = group
        self._topic = topic
        self._queue_id = queue_id
        self._code = code
        self._batch = batch
        self._broker = broker
        self._default_queues = default_queues

    def frame(
        self,
        opaque: int,
        properties: Buffer,
        body: Buffer,
        born_at: int,
        sys_flag: int = 0,
        flag: int = 0,
        oneway: bool = False,
    ) -> bytes:
        """As `encode_send` makes it."""
        return encode_send(
            opaque,
            self._group,
            self._topic,
            self._queue_id,
            properties,
            body,
            born_at=born_at,
            code=self._code,
            sys_flag=sys_flag,
            flag=flag,
            batch=self._batch,
            broker=self._broker,
            default_queues=self._default_queues,
            oneway=oneway,
        )

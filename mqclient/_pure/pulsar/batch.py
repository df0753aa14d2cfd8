"""Owns the payload of a batch: single-message metadata and bodies, one behind the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Final, final

from mqclient._pure.pulsar.wire import Buffer, data, from_text, number, u32

JOIN_ROOM: Final = 64
"""More than the numbers of a message take that joins."""
_MOST: Final = (1 << 63) - 1
_TEXT: Final = (str, type(None))
_BLOB: Final = (bytes, type(None))
_JOINING: Final = Lock()
"""Of all builders: what native code does in one step takes several here."""


def single(
    body: Buffer | None,
    key: Buffer | None,
    properties: Iterable[tuple[Buffer, Buffer]],
    event_time: int,
    ordering_key: Buffer | None,
    sequence_id: int,
    key_b64: bool,
    null_key: bool,
) -> bytes:
    """One message of a batch: size of its metadata, metadata, body."""
    parts = [data(1, data(1, name) + data(2, value)) for name, value in properties]
    if key is not None:
        parts.append(data(2, key))
    parts.append(number(3, 0 if body is None else len(body)))
    if event_time:
        parts.append(number(5, event_time))
    if key_b64:
        parts.append(number(6, 1))
    if ordering_key is not None:
        parts.append(data(7, ordering_key))
    if sequence_id != -1:
        parts.append(number(8, sequence_id))
    if body is None:
        parts.append(number(9, 1))
    if null_key:
        parts.append(number(10, 1))
    metadata = b"".join(parts)
    return b"".join((u32.pack(len(metadata)), metadata, b"" if body is None else body))


@final
class BatchBuilder:
    """The payload of one batch, message by message; used anew after `seal`."""

    __slots__ = ("_following", "_max_bytes", "_max_messages", "_open", "_parts", "_token", "size")

    def __init__(self, max_messages: int = 1000, max_bytes: int = 131072) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._open = False
        self._following = self._token = 0
        self.size = 0

    @property
    def count(self) -> int:
        return len(self._parts)

    def add(
        self,
        body: Buffer | None,
        key: str | None = None,
        properties: Mapping[str, str] | None = None,
        event_time: int = 0,
        ordering_key: bytes | None = None,
        sequence_id: int = -1,
        key_b64: bool = False,
        null_key: bool = False,
    ) -> int:
        """Append one message; the size after it."""
        pairs = [(from_text(name), from_text(value)) for name, value in properties.items()] if properties else ()
        wire_key = None if key is None else from_text(key)
        part = single(body, wire_key, pairs, event_time, ordering_key, sequence_id, key_b64, null_key)
        self._parts.append(part)
        self.size += len(part)
        return self.size

    def open(self, sequence_id: int, /) -> int:
        """From now on `join` takes messages, the first of which gets this id; the token for it."""
        self._following = sequence_id
        self._open = True
        self._token += 1
        return self._token

    def shut(self) -> int:
        """`join` takes none any more; the sequence id after the last one."""
        with _JOINING:
            self._open = False
            return self._following

    def join(self, message: Any, token: int, /) -> int:
        """Append a plain message, with room for more behind it; its index, or -1: it is not open, full or not plain."""
        if type(message) is not tuple or len(message) != 7:
            return -1
        body, key, properties, event_time, ordering_key, own_id, key_b64 = message
        if type(body) is not bytes or properties is not None or own_id != -1:
            return -1
        if type(key) not in _TEXT or type(ordering_key) not in _BLOB:
            return -1
        around = JOIN_ROOM + len((key or "").encode()) + len(ordering_key or b"")
        with _JOINING:
            if not self._open or token != self._token or len(self._parts) + 1 >= self._max_messages:
                return -1
            if self.size + len(body) + around >= self._max_bytes:
                return -1
            self.add(body, key, None, event_time, ordering_key, self._following, key_b64)
            self._following += 1
            return len(self._parts) - 1

    def add_many(self, items: Sequence[Any], start: int = 0, sequence_id: int = -1) -> int:
        """Append from `start` until a limit; the index of the first that was not taken."""
        for place in range(start, len(items)):
            item = items[place]
            own = sequence_id if sequence_id == -1 else sequence_id + place - start
            arguments = list(item) if isinstance(item, tuple) else [item]
            if len(arguments) < 6:
                arguments += [None, None, 0, None][len(arguments) - 1 :]
                arguments.append(own)
            elif arguments[5] == -1:
                arguments[5] = own
            before = self.size
            if self._parts and (len(self._parts) >= self._max_messages or before >= self._max_bytes):
                return place
            self.add(*arguments)
            if len(self._parts) > 1 and self.size > self._max_bytes:
                self.size = before
                self._parts.pop()
                return place
        return max(start, len(items))

    def seal(self) -> tuple[bytes, int]:
        """`(payload, count)`; the builder is empty again."""
        sealed = b"".join(self._parts), len(self._parts)
        self._parts = []
        self.size = 0
        return sealed


@final
class Door:
    """Where a face puts what it was given, while a batch gathers that may be joined."""

    __slots__ = ("_future", "_opened")

    def __init__(self, future: Callable[[Any, int], Any], /) -> None:
        self._future = future
        self._opened: tuple[BatchBuilder, Any, int] | None = None

    def open(self, builder: BatchBuilder, batch: Any, token: int, /) -> None:
        self._opened = builder, batch, token

    def shut(self) -> None:
        self._opened = None

    def board(
        self,
        body: Any,
        key: Any,
        properties: Any,
        event_time: Any,
        ordering_key: Any,
        sequence_id: Any,
        deliver_at: Any,
        deliver_after: Any,
        replicate_to: Any,
        txn: Any,
        /,
    ) -> Any:
        """The future of a message that has joined, or None."""
        opened = self._opened
        if opened is None or type(event_time) is not int or not -_MOST <= event_time <= _MOST:
            return None
        if any(one is not None for one in (properties, sequence_id, deliver_at, deliver_after, replicate_to, txn)):
            return None
        builder, batch, token = opened
        try:
            index = builder.join((body, key, None, event_time, ordering_key, -1, False), token)
        except UnicodeEncodeError:
            return None  # who looks at it knows what to say
        return None if index < 0 else self._future(batch, index)

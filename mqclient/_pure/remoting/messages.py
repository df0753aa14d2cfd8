"""Stored messages: what a pull, a view or a transaction check carries, decoded into a `MessageBatch`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from socket import AF_INET, AF_INET6, inet_ntop
from struct import Struct, pack
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final, overload

from mqclient.errors import ProtocolError

from .columns import columns_of
from .cursor import Cursor
from .properties import decode_properties

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from .columns import Column

MAX_BODIES: Final = 64 * 1024 * 1024
MAGIC_V1: Final = -626843481
MAGIC_V2: Final = -626843477  # topic length takes two bytes
COMPRESSED: Final = 0x1  # bits of sysFlag
BORN_IPV6: Final = 0x10
STORE_IPV6: Final = 0x20
INNER_BATCH: Final = 0x40 | 0x80
COMPRESSION_SHIFT: Final = 8
ZLIB: Final = 3
RETRY_TOPIC: Final = "RETRY_TOPIC"

Decompress = Callable[[int, memoryview, int], bytes]


class Stored(NamedTuple):
    """The fields of a stored message in the order of the wire."""

    size: int
    magic: int
    crc: int
    queue_id: int
    flag: int
    offset: int
    physical_offset: int
    sys_flag: int
    born_at: int
    born_ip: bytes
    born_port: int
    stored_at: int
    store_ip: bytes
    store_port: int
    attempts: int
    prepared_transaction_offset: int
    body_size: int
    body: bytes
    topic: bytes
    properties: bytes


ELEMENT: Final = Struct(">5i")
TO_SYS_FLAG: Final = Struct(">36xi")
TO_BODY: Final = {  # by the two IPv6 bits of sysFlag
    0: Struct(">iiiiiqqiq4siq4siiqi"),
    BORN_IPV6: Struct(">iiiiiqqiq16siq4siiqi"),
    STORE_IPV6: Struct(">iiiiiqqiq4siq16siiqi"),
    BORN_IPV6 | STORE_IPV6: Struct(">iiiiiqqiq16siq16siiqi"),
}


class Options(NamedTuple):
    """What `decode_messages` was told that every message of the batch shares."""

    queue: Any
    offset_delta: int
    retry_topic: bool


@final
class Message:
    """A stored message, read-only."""

    __slots__ = ("_compressed", "_options", "_properties", "_stored")

    def __init__(self, stored: Stored, options: Options, compressed: bool) -> None:
        self._stored = stored
        self._options = options
        self._compressed = compressed
        self._properties: dict[str, str] | None = None

    @property
    def body(self) -> bytes:
        return self._stored.body

    @property
    def view(self) -> memoryview:
        return memoryview(self._stored.body)

    @property
    def topic(self) -> str:
        stored = self._stored.topic.decode("utf-8", "replace")
        return self.properties.get(RETRY_TOPIC, stored) if self._options.retry_topic else stored

    @property
    def queue(self) -> Any:
        return self._options.queue

    @property
    def queue_id(self) -> int:
        return self._stored.queue_id

    @property
    def offset(self) -> int:
        return self._stored.offset + self._options.offset_delta

    @property
    def physical_offset(self) -> int:
        return self._stored.physical_offset

    @property
    def flag(self) -> int:
        return self._stored.flag

    @property
    def sys_flag(self) -> int:
        return self._stored.sys_flag if self._compressed else self._stored.sys_flag & ~COMPRESSED

    @property
    def born_at(self) -> int:
        return self._stored.born_at

    @property
    def stored_at(self) -> int:
        return self._stored.stored_at

    @property
    def born_host(self) -> str:
        return _host(self._stored.born_ip, self._stored.born_port)

    @property
    def store_host(self) -> str:
        return _host(self._stored.store_ip, self._stored.store_port)

    @property
    def attempts(self) -> int:
        return self._stored.attempts

    @property
    def prepared_transaction_offset(self) -> int:
        return self._stored.prepared_transaction_offset

    @property
    def body_crc(self) -> int:
        return self._stored.crc

    @property
    def size(self) -> int:
        return len(self._stored.body)

    @property
    def stored_size(self) -> int:
        return self._stored.size

    @property
    def compressed(self) -> bool:
        return self._compressed

    @property
    def compression(self) -> int:
        return compression(self._stored.sys_flag)

    @property
    def tag(self) -> str | None:
        return self.properties.get("TAGS")

    @property
    def key(self) -> str | None:
        return self.properties.get("KEYS")

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(key for key in self.properties.get("KEYS", "").split(" ") if key)

    @property
    def properties(self) -> dict[str, str]:
        if self._properties is None:
            self._properties = decode_properties(self._stored.properties)
        return self._properties

    @property
    def properties_text(self) -> bytes:
        return self._stored.properties

    @property
    def message_id(self) -> str:
        return self.properties.get("UNIQ_KEY") or self.offset_id

    @property
    def offset_id(self) -> str:
        stored = self._stored
        return (stored.store_ip + pack(">iq", stored.store_port, stored.physical_offset)).hex().upper()

    @property
    def transaction_id(self) -> str | None:
        return self.properties.get("__transactionId__") or self.properties.get("UNIQ_KEY")

    def property(self, name: str, default: str | None = None) -> str | None:
        """One property."""
        return self.properties.get(name, default)

    def __repr__(self) -> str:
        stored = self._stored
        where = f"queue_id={stored.queue_id} offset={self.offset}"
        return f"<Message topic={self.topic!r} {where} body={len(stored.body)} bytes>"


def _host(ip: bytes, port: int) -> str:
    return f"{inet_ntop(AF_INET, ip)}:{port}" if len(ip) == 4 else f"[{inet_ntop(AF_INET6, ip)}]:{port}"


def compression(sys_flag: int) -> int:
    """The kind a body is or was compressed with; a compressed one without a kind is an old client's zlib."""
    kind = sys_flag >> COMPRESSION_SHIFT & 7
    return kind or (ZLIB if sys_flag & COMPRESSED else 0)


@final
class MessageBatch(Sequence[Message]):
    """The messages of one reply."""

    __slots__ = ("_messages", "_queue", "_scanned")

    def __init__(self, messages: list[Message], scanned: int, queue: Any) -> None:
        self._messages = messages
        self._scanned = scanned
        self._queue = queue

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> MessageBatch: ...
    def __getitem__(self, index: int | slice) -> Message | MessageBatch:
        if isinstance(index, slice):
            return MessageBatch(self._messages[index], self._scanned, self._queue)
        return self._messages[index]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages)

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @property
    def scanned(self) -> int:
        return self._scanned

    @property
    def queue(self) -> Any:
        return self._queue

    @property
    def first_offset(self) -> int:
        return min(self.offsets, default=-1)

    @property
    def last_offset(self) -> int:
        return max(self.offsets, default=-1)

    @property
    def offsets(self) -> list[int]:
        return [message.offset for message in self._messages]

    @property
    def sizes(self) -> list[int]:
        return [message.size for message in self._messages]

    def columns(self, names: Collection[str] | None = None, more: Iterable[MessageBatch] = ()) -> dict[str, Column]:
        """The columns asked for as Arrow buffers; then the rows of `more` batches."""
        messages = list(self._messages)
        for batch in more:
            if type(batch) is not MessageBatch:
                raise TypeError(f"more columns come of MessageBatches, not of {type(batch).__name__}")
            messages += batch
        return columns_of(messages, names)

    def to_arrow(self, names: Collection[str] | None = None) -> Any:
        """The columns asked for as a pyarrow.RecordBatch."""
        from mqclient._pure.remoting.arrow import record_batch

        return record_batch(self.columns(names), len(self))

    def __repr__(self) -> str:
        return f"<MessageBatch of {len(self)} messages, {self.size} bytes of bodies>"


# ----------------------------------------------------------------------------------------------------------- decode


def decode_messages(
    body: Buffer,
    tags: Collection[str] | None = None,
    *,
    check_crc: bool = False,
    decompress: Decompress | None = None,
    limit: int = MAX_BODIES,
    queue: Any = None,
    offset_delta: int = 0,
    retry_topic: bool = False,
) -> MessageBatch:
    """The messages of a pull reply's body; with `tags` only those whose tag is one of them."""
    data = bytes(body)
    options = Options(queue, offset_delta, retry_topic)
    messages: list[Message] = []
    at = 0
    while at < len(data):
        start = at
        try:
            stored = _stored(data, at)
            at += stored.size
            if check_crc and zlib.crc32(stored.body) & 0x7FFFFFFF != stored.crc:
                raise ProtocolError(f"body of offset {stored.offset} has another CRC")
            stored, compressed = _plain(stored, decompress, limit)
            limit -= len(stored.body) if stored.sys_flag & COMPRESSED and not compressed else 0
            messages.extend([_message(one, options, compressed) for one in _unwrapped(stored, compressed)])
        except ProtocolError as error:
            raise ProtocolError(f"message {len(messages)} at byte {start}: {error}") from error
    wanted = [message for message in messages if message.tag in tags] if tags else messages
    return MessageBatch(wanted, len(messages), queue)


def _message(stored: Stored, options: Options, compressed: bool) -> Message:
    if not -(2**63) <= stored.offset + options.offset_delta < 2**63:
        raise ProtocolError(f"offset {stored.offset} is beyond 64 bits, moved by {options.offset_delta}")
    return Message(stored, options, compressed)


def _stored(data: bytes, at: int) -> Stored:
    cursor = Cursor(data, at, len(data))
    sys_flag = cursor.read(TO_SYS_FLAG)[0]
    cursor.at = at
    fixed = cursor.read(TO_BODY[sys_flag & (BORN_IPV6 | STORE_IPV6)])
    size, magic, body_size = fixed[0], fixed[1], fixed[-1]
    cursor.narrow(at, size)
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise ProtocolError(f"magic {magic & 0xFFFFFFFF:#x} is none of a message")
    body = cursor.take(body_size)
    topic = cursor.take(cursor.i16() if magic == MAGIC_V2 else cursor.u8())
    properties = cursor.take(cursor.i16())
    return Stored._make((*fixed, body, topic, properties))


def _plain(stored: Stored, decompress: Decompress | None, limit: int) -> tuple[Stored, bool]:
    """The message with its body decompressed, and whether it is compressed still."""
    if not stored.sys_flag & COMPRESSED:
        return stored, False
    if decompress is None:
        return stored, True
    body = decompress(compression(stored.sys_flag), memoryview(stored.body), limit)
    if len(body) > limit:
        raise ProtocolError(f"body of {len(body)} bytes, decompressed, is above the limit of {limit}")
    return stored._replace(body=body), False


def _unwrapped(stored: Stored, compressed: bool) -> Iterator[Stored]:
    """The elements of an inner batch as messages at consecutive offsets; any other message as it is."""
    if stored.sys_flag & INNER_BATCH != INNER_BATCH or compressed:
        yield stored
        return
    for index, (crc, flag, body, properties) in enumerate(elements(stored.body)):
        yield stored._replace(
            crc=crc, flag=flag, offset=stored.offset + index, attempts=0, body=body, properties=properties
        )


def elements(data: bytes) -> Iterator[tuple[int, int, bytes, bytes]]:
    """The elements of a batch body: (crc, flag, body, property text)."""
    at = 0
    while at < len(data):
        cursor = Cursor(data, at, len(data))
        size, _, crc, flag, body_size = cursor.read(ELEMENT)
        cursor.narrow(at, size)
        body = cursor.take(body_size)
        yield crc, flag, body, cursor.take(cursor.i16())
        at += size


def split_batch(body: Buffer) -> list[tuple[int, bytes, bytes]]:
    """A batch body as (flag, body, property text) each."""
    return [(flag, one, properties) for _, flag, one, properties in elements(bytes(body))]

"""Owns what one send request carries, and what came of it: messages as bytes, their ids, their receipts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from mqclient.core import compress
from mqclient.errors import ConfigError
from mqclient.rocketmq.codes import Request, Response
from mqclient.rocketmq.model import (
    RESERVED_PROPERTIES,
    RETRY_PREFIX,
    Message,
    MessageQueue,
    Receipt,
    check_message,
)
from mqclient.rocketmq.remoting.hooking import Hooks
from mqclient.rocketmq.remoting.producer_options import COMPRESSIONS, ProducerOptions

STORED: Final = frozenset(
    {
        Response.SUCCESS,
        Response.FLUSH_DISK_TIMEOUT,
        Response.FLUSH_SLAVE_TIMEOUT,
        Response.SLAVE_NOT_AVAILABLE,
    }
)
SUCCESS: Final = int(Response.SUCCESS)
SAFE: Final = "SEND_OK"
"""What receipts call it."""
AROUND: Final = 22
"""Bytes of a batch's element beside body and properties."""
MAX_PROPERTIES: Final = 32767
MAX_BATCH_BYTES: Final = 256 * 1024
MOST_TOPICS: Final = 1024
"""So many names are known to be good without another look."""
_BATCH: Final = Request.SEND_BATCH_MESSAGE
HALF: Final = 4
"""System flag of a message whose transaction is not decided yet."""


class Prepared(NamedTuple):
    """One request's content as it goes over the wire, made before the engine is entered."""

    topic: str
    body: bytes | bytearray | memoryview
    properties: bytes
    ids: Sequence[str]
    """The unique keys of its messages, in order."""
    flag: int = 0
    sys_flag: int = 0
    key: str | None = None
    alone: bool = False
    """May not travel in a batch: delayed, compressed, a transaction's, or for a retry topic."""
    code: Request = Request.SEND_MESSAGE_V2
    correlation: str = ""
    """Of a request: what its reply will be known by."""

    @property
    def message_id(self) -> str:
        return self.ids[0]

    @property
    def size(self) -> int:
        """Bytes that it takes in a batch."""
        return AROUND + len(self.body) + len(self.properties)


class Preparer:
    """Checks messages and makes their bytes; outside of any entry, by any thread."""

    def __init__(self, remoting: Any, options: ProducerOptions) -> None:
        self.options = options
        self.hooks = Hooks(options.hooks)
        self._remoting = remoting
        self._text = remoting.message_text
        self.topics: set[str] = set()
        """Names that were checked."""
        below = options.max_body if options.compression is None else options.compress_above - 1
        self.most_plain = min(below, options.max_body)
        """Larger bodies are compressed, or refused."""
        self.most_together = min(MAX_BATCH_BYTES, options.max_body)
        self.batch_properties: bytes = remoting.encode_properties({"WAIT": "true"})

    def plain(self, message: Message, keys: Any, wall_ms: int, key: str | None) -> Prepared | None:
        """A single message that is neither delayed, compressed nor decorated: most are; None for any other."""
        if type(message) is not Message or self.hooks.adds:
            return None
        topic = message.topic
        if topic not in self.topics and not self.knows(message):
            return None
        made = self._text(message, keys, wall_ms, RESERVED_PROPERTIES, self.most_plain, Message)
        if made is None:
            return None
        return _NEW_PREPARED(
            (topic, message.body, made[0], (made[1],), message.flag, 0, key, False, Request.SEND_MESSAGE_V2, "")
        )

    def knows(self, message: Message) -> bool:
        """Whether its topic needs no other care, now that it was checked; what is wrong with it is an error."""
        topic = message.topic
        if topic not in self.topics:
            check_message(message, self.options.max_body)
            return self._remember(topic)
        return True

    def _remember(self, topic: str) -> bool:
        """A name that was checked; whether it is known from now on."""
        if topic.startswith(RETRY_PREFIX) or len(self.topics) >= MOST_TOPICS:
            return topic in self.topics
        self.topics.add(topic)
        return True

    def one(self, message: Message, message_id: str, key: str | None = None, **more: str) -> Prepared:
        """A single message; `more`: properties of the protocol's own."""
        check_message(message, self.options.max_body)
        self._remember(message.topic)
        properties = {"UNIQ_KEY": message_id, "WAIT": "true", **more}
        if message.tag:
            properties["TAGS"] = message.tag
        if message.keys:
            properties["KEYS"] = " ".join(message.keys)
        name, value = message.timing or ("", "")
        if name:
            properties[name] = value
        properties.update(message.properties)
        if self.hooks.adds:
            properties.update(self.hooks.properties(message))
        text = self._remoting.encode_properties(properties)
        body, sys_flag = self._compressed(message.body)
        alone = bool(name or sys_flag) or message.topic.startswith(RETRY_PREFIX)
        return Prepared(message.topic, body, text, (message_id,), message.flag, sys_flag, key, alone)

    def batch(self, topic: str, body: bytes, ids: Sequence[str], key: str | None = None) -> Prepared:
        """The content of a batch builder."""
        return _NEW_PREPARED((topic, body, self.batch_properties, ids, 0, 0, key, False, _BATCH, ""))

    def _compressed(self, body: Any) -> tuple[Any, int]:
        """The body and the system flags that tell how it is compressed: not at all if that does not make it smaller."""
        options = self.options
        if options.compression is None or len(body) < options.compress_above:
            return body, 0
        name, bits = COMPRESSIONS[options.compression]
        smaller = compress.compress(name, body, options.compression_level)
        return (smaller, bits) if len(smaller) < len(body) else (body, 0)


def check_batch_limits(options: ProducerOptions) -> None:
    if options.batch_max_bytes > options.max_body:
        raise ConfigError(
            f"batch_max_bytes={options.batch_max_bytes}: brokers take max_body={options.max_body} for a whole batch"
        )


class Stored(Sequence[Receipt]):
    """Where the broker put the messages of one request; their receipts are made when asked for."""

    __slots__ = ("_frame", "_ids", "_queue", "_receipts", "_remoting", "status")

    def __init__(self, remoting: Any, ids: Sequence[str], frame: Any, queue: MessageQueue) -> None:
        self._remoting = remoting
        self._ids = ids
        self._frame = frame
        self._queue = queue
        self._receipts: list[Receipt] | None = None
        code = frame.code
        self.status = SAFE if code == SUCCESS else Response(code).name

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, index: Any) -> Any:
        return self.receipts()[index]

    def receipts(self) -> list[Receipt]:
        """All of them: no line of Python for each message."""
        receipts = self._receipts
        if receipts is None:
            receipts = self._remoting.receipts(Receipt, self._frame, self._queue, self._ids, self.status)
            self._receipts = receipts
        return receipts

    @property
    def first(self) -> Receipt:
        """The first of them, without the others."""
        if len(self._ids) == 1 or self._receipts is not None:
            return self.receipts()[0]
        found: Receipt
        (found,) = self._remoting.receipts(Receipt, self._frame, self._queue, self._ids[:1], self.status)
        told = found.offset_id if found.offset_id.count(",") == len(self._ids) - 1 else ""
        return found._replace(offset_id=told.partition(",")[0], transaction_id=None, recall_handle=None)

    @property
    def region(self) -> str | None:
        """The broker's, if it wants traces."""
        frame = self._frame
        return None if frame.field("TRACE_ON") == "false" else frame.field("MSG_REGION")


_NEW_PREPARED: Callable[[Any], Prepared] = partial(tuple.__new__, Prepared)

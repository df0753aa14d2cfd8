"""RocketMQ remoting: frames, both header forms, stored messages, batches, ids. One stub for both twins.

Bytes from a peer: `FrameReader` never raises for them, it stops with `.error`; `decode_*` raise `ProtocolError` that
says where. Arguments that cannot be encoded raise `ConfigError`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, TypeVar, final, overload

from typing_extensions import Buffer, disjoint_base

from mqclient.errors import ProtocolError

JSON: Final[int]
"""Header form 0: what clients send and servers answer by default."""
ROCKETMQ: Final[int]
"""Header form 1: binary; request codes above 32767 (the POP family) do not fit."""
MAX_FRAME: Final[int]
"""16 MiB, length word included: the peers' own limit."""
MAX_BODIES: Final[int]
"""64 MiB: what the decompressed bodies of one `decode_messages` may take together."""
WOULD_BLOCK: Final[int]
"""What the descriptor calls give when nothing could be moved now (-EAGAIN); also `wait_into` at its timeout."""
COLUMNS: Final[tuple[str, ...]]
"""Every column name that `MessageBatch.columns` knows."""

Column = tuple[Buffer | None, ...]
T = TypeVar("T", bound=tuple[Any, ...])

# ---------------------------------------------------------------------------------------------------------- frames

@final
class Frame:
    """One command, read-only. The body is copied out of the reader once and is then what messages refer to."""

    @property
    def code(self) -> int: ...
    @property
    def flag(self) -> int: ...
    @property
    def opaque(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def language(self) -> str: ...
    @property
    def remark(self) -> str | None: ...
    @property
    def serialize(self) -> int: ...
    @property
    def body(self) -> bytes: ...
    @property
    def fields(self) -> dict[str, str]:
        """The ext fields, decoded when first asked for. Numbers, booleans and nested values come as their JSON text,
        null is absent."""
    @property
    def is_response(self) -> bool: ...
    @property
    def is_oneway(self) -> bool: ...
    @overload
    def field(self, name: str) -> str | None: ...
    @overload
    def field(self, name: str, default: str) -> str: ...
    @overload
    def field(self, name: str, default: None) -> str | None:
        """One ext field, without decoding the others."""
    def pick(self, names: tuple[str, ...]) -> tuple[str | None, ...]:
        """Several ext fields, at most eight, in one look: their values in order, None for what is not there."""

@final
class FrameReader:
    """Cuts a byte stream into frames. After bad bytes it is stopped: `.error` is set and everything is ignored."""

    def __init__(self, max_frame: int = ...) -> None: ...
    @property
    def error(self) -> ProtocolError | None: ...
    @property
    def pending(self) -> int:
        """Bytes of a frame that is not yet complete."""
    def feed(self, data: Buffer) -> list[Frame]:
        """Take what was read; give every frame that is now complete. Frames before bad bytes are still given."""
    def receive_into(self, fd: int) -> tuple[list[Frame], int]:
        """One non-blocking recv straight into the buffer, the GIL kept. The number is the bytes received, 0 at end of
        stream, or -errno (`WOULD_BLOCK` when there was nothing)."""
    def vacancy(self) -> memoryview:
        """Where bytes may be received; good until `filled`, which must be called next."""

    def filled(self, count: int) -> list[Frame]:
        """So many bytes came into the vacancy; every frame that is now complete."""

    def wait(self, fd: int, ms: int, bell: int = -1) -> int:
        """Wait without the GIL, up to `ms` (-1: for ever): 0 once there is something to receive, or the end of the
        stream; `WOULD_BLOCK` when the time is over or only the bell, a second descriptor, became readable; -EINTR after
        a signal. Native, where the GIL was taken after the last wait, it is asked for after 0.2 ms already."""
    def wait_into(self, fd: int, ms: int) -> tuple[list[Frame], int]:
        """`wait`, then as `receive_into`."""

    last_borrow: float
    """The driver's and the lanes': when a caller read for himself last, of the monotonic clock; inf while he does."""
    @staticmethod
    def look_after(poller: int, readers: list[FrameReader], park: float, seconds: float, /) -> None:
        """Wait, native without the GIL, up to `seconds` (also inf) until the poller, a descriptor, is readable or one
        of the readers' connections was not borrowed for `park` seconds since this began: its callers come no more."""

def send_now(fd: int, buffers: Sequence[Buffer], /) -> int:
    """One non-blocking gathering send, the GIL kept: bytes sent (perhaps fewer than given), or -errno."""

def encode_frame(
    code: int,
    opaque: int,
    *,
    flag: int = 0,
    fields: Mapping[str, str] | None = None,
    body: Buffer | Sequence[Buffer] = b"",
    remark: str | None = None,
    language: str = "PYTHON",
    version: int = 479,
    serialize: int = 0,
    behind: int = 0,
) -> bytes:
    """Any command: cold requests and all responses (flag 1). Fields are written in the order given; a body given as a
    list is joined without another copy. `behind`: so many bytes of the body the caller sends after what this gives."""

def encode_send(
    opaque: int,
    group: str,
    topic: str,
    queue_id: int,
    properties: Buffer,
    body: Buffer,
    *,
    born_at: int,
    code: int = 310,
    sys_flag: int = 0,
    flag: int = 0,
    reconsume_times: int = 0,
    max_reconsume_times: int | None = None,
    unit_mode: bool = False,
    batch: bool = False,
    broker: str = "",
    default_topic: str = "TBW102",
    default_queues: int = 4,
    oneway: bool = False,
    extra: Mapping[str, str] | None = None,
    language: str = "PYTHON",
    version: int = 479,
    serialize: int = 0,
    behind: int = 0,
) -> bytes:
    """SEND_MESSAGE_V2 (310), a batch (320 with batch=True) or a reply (325): short names a to n, then `extra`."""

def encode_pull(
    opaque: int,
    group: str,
    topic: str,
    queue_id: int,
    offset: int,
    *,
    max_messages: int = 32,
    sys_flag: int = 0,
    commit_offset: int = 0,
    suspend_ms: int = 0,
    subscription: str | None = None,
    sub_version: int = 0,
    expression_type: str | None = None,
    max_bytes: int | None = None,
    broker: str = "",
    code: int = 11,
    extra: Mapping[str, str] | None = None,
    language: str = "PYTHON",
    version: int = 479,
    serialize: int = 0,
) -> bytes:
    """PULL_MESSAGE (11) or LITE_PULL_MESSAGE (361)."""

# -------------------------------------------------------------------------------------------------------- messages

@final
class Message:
    """A stored message, read-only. Everything is decoded when first touched, from bytes the batch's messages share."""

    @property
    def body(self) -> bytes: ...
    @property
    def view(self) -> memoryview:
        """The body without a copy; it keeps the whole pull reply alive."""
    @property
    def topic(self) -> str:
        """The topic it was stored in; with `retry_topic=True` the topic it was first sent to."""
    @property
    def queue(self) -> Any:
        """What `decode_messages` was handed as `queue`."""
    @property
    def queue_id(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def physical_offset(self) -> int: ...
    @property
    def flag(self) -> int: ...
    @property
    def sys_flag(self) -> int:
        """As stored; the compressed bit is cleared when the body was decompressed."""
    @property
    def born_at(self) -> int:
        """Milliseconds since the epoch, as is `stored_at`."""
    @property
    def stored_at(self) -> int: ...
    @property
    def born_host(self) -> str:
        """ "ip:port", or "[ip]:port" for IPv6."""
    @property
    def store_host(self) -> str: ...
    @property
    def attempts(self) -> int:
        """How often it was consumed in vain (reconsumeTimes)."""
    @property
    def prepared_transaction_offset(self) -> int: ...
    @property
    def body_crc(self) -> int: ...
    @property
    def size(self) -> int:
        """Bytes of the body."""
    @property
    def stored_size(self) -> int:
        """Bytes of the stored record; for an element of an inner batch, of its container."""
    @property
    def compressed(self) -> bool:
        """True if the body is still compressed, because no `decompress` was handed in."""
    @property
    def compression(self) -> int:
        """Kind that it is or was compressed with: 0 none, 1 LZ4, 2 ZSTD, 3 ZLIB."""
    @property
    def tag(self) -> str | None: ...
    @property
    def key(self) -> str | None:
        """The KEYS property as it is: blank separated."""
    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def properties(self) -> dict[str, str]: ...
    @property
    def properties_text(self) -> bytes:
        """The properties as stored, for a message that is sent on."""
    @property
    def message_id(self) -> str:
        """The unique key its producer gave it, else the offset id."""
    @property
    def offset_id(self) -> str: ...
    @property
    def transaction_id(self) -> str | None: ...
    def property(self, name: str, default: str | None = None) -> str | None:
        """One property, without building the dict."""

@final
class MessageBatch(Sequence[Message]):
    """The messages of one reply, made one by one when asked for; a slice is a batch again."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> Message: ...
    @overload
    def __getitem__(self, index: slice, /) -> MessageBatch: ...
    def __iter__(self) -> Iterator[Message]: ...
    @property
    def size(self) -> int:
        """Bytes of all bodies."""
    @property
    def scanned(self) -> int:
        """Messages looked at, those that the tag filter left out included."""
    @property
    def queue(self) -> Any: ...
    @property
    def first_offset(self) -> int:
        """Lowest offset here, -1 if empty."""
    @property
    def last_offset(self) -> int:
        """Highest offset here, -1 if empty."""
    @property
    def offsets(self) -> list[int]: ...
    @property
    def sizes(self) -> list[int]:
        """Bytes of each body."""
    def columns(self, names: Collection[str] | None = None, more: Iterable[MessageBatch] = ()) -> dict[str, Column]:
        """The columns asked for (all: `COLUMNS`) as Arrow buffers, without making a message. The rows of `more` batches
        come behind, in the same buffers: nothing is copied twice.

        Numbers, little-endian (offset, physical_offset, born_at, stored_at: int64; queue_id, flag, sys_flag, attempts:
        int32): (None, data). Text and bytes (body; topic, message_id; tag, keys nullable): (validity or None, int32
        offsets, data), validity one bit a row, lowest first. properties, a map of utf8 to utf8: (None, int32 offsets,
        int32 key offsets, key data, int32 value offsets, value data)."""
    def to_arrow(self, names: Collection[str] | None = None) -> Any:
        """The columns asked for (all: `COLUMNS`) as a pyarrow.RecordBatch: copied once, without making a message."""

def decode_messages(
    body: Buffer,
    tags: Collection[str] | None = None,
    *,
    check_crc: bool = False,
    decompress: Callable[[int, memoryview, int], bytes] | None = None,
    limit: int = ...,
    queue: Any = None,
    offset_delta: int = 0,
    retry_topic: bool = False,
) -> MessageBatch:
    """The messages of a pull reply's body, checked in one walk; inner batches are taken apart.

    With `tags`, only messages whose tag is one of them. `decompress(kind, view, limit)` gets 1 LZ4 (frame), 2 ZSTD or
    3 ZLIB and what is left of `limit`; without it such bodies stay as stored. ProtocolError names the position."""

def decode_properties(text: Buffer) -> dict[str, str]:
    """Property text to a dict; entries with an empty name or value are passed over, bad UTF-8 is replaced."""

def split_batch(body: Buffer) -> list[tuple[int, bytes, bytes]]:
    """A batch body as (flag, body, property text) each: what a broker does with a send whose header says batch."""

def encode_properties(properties: Mapping[str, str]) -> bytes:
    """The property text; ConfigError for a name or value that is empty or holds a separator, or beyond 32767 bytes."""

def encode_message(
    body: Buffer,
    topic: str,
    *,
    properties: Buffer = b"",
    queue_id: int = 0,
    flag: int = 0,
    offset: int = 0,
    physical_offset: int = 0,
    sys_flag: int = 0,
    born_at: int = 0,
    born_host: tuple[str, int] = ("127.0.0.1", 0),
    stored_at: int = 0,
    store_host: tuple[str, int] = ("127.0.0.1", 0),
    attempts: int = 0,
    prepared_transaction_offset: int = 0,
) -> bytes:
    """A message as a broker stores and answers it: crc, magic (v2 for a topic above 127 bytes) and the IPv6 bits of
    sys_flag are set here."""

def store_batch(
    body: Buffer,
    topic: str,
    *,
    queue_id: int = 0,
    offset: int = 0,
    physical_offset: int = 0,
    sys_flag: int = 0,
    born_at: int = 0,
    born_host: tuple[str, int] = ("127.0.0.1", 0),
    stored_at: int = 0,
    store_host: tuple[str, int] = ("127.0.0.1", 0),
) -> tuple[bytes, bytes, bytes]:
    """All messages of a batch body as a broker stores them, at consecutive offsets and places of its log, in one bytes;
    where each ends in there (uint32 each, native order); and the code of each one's tag, which is what brokers filter
    by: Java's hash, 0 without a tag (int32 each)."""

def is_timed(body: Buffer) -> bool:
    """Whether a message of a batch body has a property that holds it back (a name that begins with DELAY or TIMER_DEL);
    what is not whole is not looked at."""

@final
class BatchBuilder:
    """Gathers messages into the body of a batch send."""

    def add(self, body: Buffer, properties: Buffer = b"", flag: int = 0) -> int:
        """Append one; gives the size so far."""
    def add_many(
        self,
        bodies: Sequence[Buffer],
        properties: Sequence[Buffer],
        start: int = 0,
        max_size: int = ...,
        max_count: int = ...,
        flags: Sequence[int] | None = None,
    ) -> int:
        """Append messages from `start` on, in one crossing, while the batch stays within its limits (one always fits an
        empty batch); gives the place of the first that was not added, len(bodies) if all were. Without `flags` all are
        0."""
    @property
    def size(self) -> int: ...
    @property
    def count(self) -> int: ...
    def seal(self) -> bytes:
        """The body; the builder is empty again."""

@disjoint_base
class Outgoing:
    """The fields of a message to send, as a user gives them: what `rocketmq.Message` is made of."""

    topic: str
    body: bytes | bytearray | memoryview
    tag: str | None
    keys: list[str]
    properties: dict[str, str]
    delay_level: int
    deliver_at: int | None
    deliver_after: float | None
    flag: int
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
    ) -> None: ...

def add_messages(
    builder: BatchBuilder,
    messages: Sequence[Any],
    start: int,
    topic: str,
    unique: UniqueKeys,
    now_ms: int,
    ids: list[str],
    reserved: frozenset[str] | set[str],
    *,
    max_size: int = ...,
    max_count: int = ...,
    most: int = ...,
    kind: type[Any] | None = None,
) -> int:
    """Append the producer's messages (body, tag, keys, properties, flag) from `start` on, in one crossing, each with
    the next unique key, which `ids` gets; gives the place of the first that was not added.

    It stops when the batch is full (one always fits an empty batch), and in front of a message that may not stand in
    it: of another topic, delayed, with an empty body or one above `most`, with a reserved property. `kind`: a class
    made of `Outgoing` that overrides none of its fields; its own messages are read faster."""

def message_text(
    message: Any,
    unique: UniqueKeys,
    now_ms: int,
    reserved: frozenset[str] | set[str],
    most: int = ...,
    kind: type[Any] | None = None,
) -> tuple[bytes, str] | None:
    """Of a producer's message that goes alone: its properties as they are sent, with the next unique key, and that key.
    None for a message that needs other care, as `add_messages` stops in front of it."""

@final
class SendHead:
    """What all sends of one group to one queue begin and end with; `frame` puts between what each has of its own."""

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
    ) -> None: ...
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

def receipts(kind: type[T], answer: Frame, queue: Any, ids: Sequence[str], status: str) -> list[T]:
    """What the answer to a send says of its messages: for each id one tuple of `kind`, its fields the queue, the offset
    there, that id, the broker's id, the status, and of a message alone its transaction's id and recall handle.

    An answer without a readable offset still says that they are stored: -1. Another queue than that of the request is
    made by its `_replace`."""

@final
class Crossing:
    """One request that goes by a `Lane`; `what` belongs to whoever made it."""

    @property
    def passage(self) -> Any: ...
    @property
    def opaque(self) -> int: ...
    @property
    def what(self) -> Any: ...
    @property
    def slot(self) -> Any:
        """What stands for it; None: nothing does."""

    @property
    def answered(self) -> bool: ...
    def __init__(self, passage: Any, opaque: int, what: Any, /) -> None:
        """`passage`: a `Passage` of mqclient/io."""

    def take(self, slot: Any, /) -> bool:
        """Whether this slot stands for it from now on: no other does, and its answer is not there yet."""

@final
class Lane:
    """Requests of threads that wait alone, whole: a request goes out and its answer comes back, in one call without an
    entry. The fourth place where native code touches a descriptor.

    Who wants to know what is under way gives it a slot, inside an entry: then its answer goes the long way. Up to the
    wait `exchange` is one step: it runs no Python code and keeps the GIL, so nobody, no Ctrl-C either, finds half of
    it done. The pure twin is not `able`: in Python it would be many steps.
    """

    able: ClassVar[bool]
    patience_ms: int
    """An answer that takes longer than these 100 is waited for as by everybody else."""

    @property
    def landed(self) -> int:
        """The messages of requests with a good answer."""

    @property
    def under_way(self) -> set[Crossing]: ...
    def __init__(self, late: Callable[[Crossing], Any], /) -> None:
        """`late`, outside of any entry: give it a slot if it has none, and that slot back."""

    def exchange(self, crossing: Crossing, frame: bytes, count: int = 1, /) -> Any:
        """The `Frame` of a good answer (code 0). None: nothing was done, take the long way. Else the slot that stands
        for it: the answer takes its time, or something else came."""

@final
class Berth:
    """One queue, and the way to its broker."""

    passage: Any
    """A `Passage` of mqclient/io to the broker; None: not looked for, or there is none now."""

    @property
    def queue(self) -> Any: ...
    @property
    def address(self) -> str: ...
    @property
    def alone(self) -> SendHead: ...
    @property
    def batch(self) -> SendHead: ...
    def __init__(self, queue: Any, address: str, alone: SendHead, batch: SendHead, /) -> None: ...

@final
class Ferry:
    """A producer's messages, each call's whole: checked, made to a request, over by the lane, and its receipts made.

    What it does not take it leaves alone: then nothing went out, and who called goes the long way.
    """

    keys: UniqueKeys
    closed: bool

    @property
    def courses(self) -> dict[str, list[Berth]]:
        """By topic. Whoever knows of another route empties it."""

    def __init__(self, owner: Any, terms: Any, /) -> None:
        """`owner`: an `Express`, which takes over where it needs more than a request and an answer: its
        `lane`; `chart(topic)`, a course or None; `board(address)`, a passage or None; `settle(crossing, slot)`, what
        became of each message, once it is known. `terms`: the `Terms` of its producer."""

    def send(self, message: Any, key: str | None, queue: Any, timeout: float | None, /) -> Any:
        """Its receipt; None: nothing was done, take the long way."""

    def send_many(self, messages: Any, key: Any, timeout: float | None, /) -> Any:
        """What became of each; None: nothing was done, take the long way."""

def encode_columns(
    columns: Mapping[str, Column],
    start: int,
    stop: int,
    *,
    unique: UniqueKeys | None = None,
    now_ms: int = 0,
    wait: bool = True,
) -> bytes:
    """Rows start to stop of Arrow buffers as the body of a batch send.

    Layout and names as in `MessageBatch.columns`: body (needed, not null), tag, keys, properties, flag; a null tag or
    key is left out. With `unique`, each row gets the next unique key. Value offsets may begin above 0."""

# ------------------------------------------------------------------------------------------------------------- ids

@final
class UniqueKeys:
    """Makes the unique keys of one process; `ip` is 4 or 16 bytes, `salt` any 32-bit number."""

    def __init__(self, ip: bytes, pid: int, salt: int, counter: int = 0) -> None: ...
    def next(self, now_ms: int) -> str: ...

def parse_unique_key(text: str) -> tuple[bytes, int, int, int, int]:
    """(ip, pid, salt, ms since the month began, counter); ConfigError if it is none."""

def offset_id(host: str, port: int, physical_offset: int) -> str:
    """The broker's id of a message: store host and place in the commit log, in upper-case hex."""

def offset_ids(host: str, port: int, physical_offset: int, ends: bytes) -> str:
    """Those of messages that lie in a row, with commas between: the first lies at `physical_offset`, each other where
    the one before it ends, so many bytes behind that (uint32 each, native order, as `store_batch` gives them)."""

def parse_offset_id(text: str) -> tuple[str, int, int]:
    """(host, port, physical offset); ConfigError if it is none."""

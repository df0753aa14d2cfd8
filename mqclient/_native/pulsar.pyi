"""The Pulsar codec: frames in, events out; entries to messages; hot commands and batches to bytes.

Integers: every 64-bit field is signed here, so what the wire writes as 2^64-1 reads as -1, and -1 is written as 2^64-1.
Strings that are not UTF-8 read with U+FFFD in place of the bad bytes. An absent optional number reads as None, or as
its protocol default where that says the same. Hot commands have hand-made codecs, the rest goes through
`mqclient._schema`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import GenericAlias
from typing import Any, ClassVar, Final, Generic, Protocol, TypeAlias, final, overload

from typing_extensions import Buffer, TypeVar

from mqclient.errors import ProtocolError

# ---- command types that `FrameReader` decodes itself, with the shape of their events
SEND: Final = 6
"""`(SEND, producer_id, sequence_id, num_messages, highest_sequence_id, is_chunk, marker, txn, entry)`

`num_messages` is 1 and `highest_sequence_id` 0 where absent; `txn` is None or `(most, least)`; `entry` is an `Entry`
whose consumer and message ids are -1: `entry.stored` is what a broker keeps."""
SEND_RECEIPT: Final = 7
"""`(SEND_RECEIPT, producer_id, sequence_id, ledger, entry, highest_sequence_id)`; ids are -1 where absent."""
MESSAGE: Final = 9
"""`(MESSAGE, entry)`"""
ACK: Final = 10
"""`(ACK, consumer_id, ack_type, ids, validation_error, txn, request_id)`

`ids` is a list of `(ledger, entry, partition, batch_index, ack_set, batch_size)`, `ack_set` None or a tuple of words;
`validation_error`, `txn` (most, least) and `request_id` are None where absent."""
FLOW: Final = 11
"""`(FLOW, consumer_id, permits)`"""
PING: Final = 18
"""`(PING,)`"""
PONG: Final = 19
"""`(PONG,)`. All other types, unknown ones included, come as `(type, bytes)`: the bytes of their sub-message."""

INDIVIDUAL: Final = 0
CUMULATIVE: Final = 1

# ---- CommandAck.ValidationError: what `corrupt` holds
UNCOMPRESSED_SIZE_CORRUPTION: Final = 0
DECOMPRESSION_ERROR: Final = 1
CHECKSUM_MISMATCH: Final = 2
BATCH_DESERIALIZE_ERROR: Final = 3
DECRYPTION_ERROR: Final = 4

MAX_MESSAGE: Final = 5242880
FRAME_PADDING: Final = 10240
WOULD_BLOCK: Final[int]
"""What the descriptor calls give when nothing could be moved now (-EAGAIN); also `wait_into` at its timeout."""
COLUMNS: Final[tuple[str, ...]]
"""Every column name that `MessageBatch.columns` knows."""

PING_FRAME: Final[bytes]
PONG_FRAME: Final[bytes]

_T = TypeVar("_T", default=Any)
_Event: TypeAlias = tuple[Any, ...]
_Column: TypeAlias = tuple[Buffer | None, ...]
"""Arrow's buffers of one column, see `MessageBatch.columns`."""

class _Decompress(Protocol):
    """Handed in by the engine (`core/compress.py`); raises ProtocolError for bad bytes or more than `limit` of them.

    `kind` is the protocol's number: 1 LZ4 (a block without its size: `limit` is the exact one), 2 ZLIB, 3 ZSTD,
    4 SNAPPY, or one that we do not know.
    """

    def __call__(self, kind: int, data: memoryview, limit: int, /) -> bytes: ...

def send_now(fd: int, buffers: Sequence[Buffer], /) -> int:
    """One non-blocking gathering send, the GIL kept: bytes sent (perhaps fewer than given), or -errno."""

@final
class FrameReader:
    """Frames of one connection, either side. Bad bytes put it in an error state; feeding never raises.

    `max_frame` is the largest `totalSize` accepted (set it anew when CONNECTED names a message size).
    """

    max_frame: int
    @property
    def error(self) -> ProtocolError | None: ...
    @property
    def pending(self) -> int:
        """Bytes of a frame that is not complete."""

    def __init__(self, max_frame: int = ..., *, check_crc: bool = True) -> None: ...
    def feed(self, data: Buffer, /) -> list[_Event]:
        """The events of all frames that are complete now. After an error: nothing."""

    def receive_into(self, fd: int, /) -> tuple[list[_Event], int]:
        """One non-blocking recv straight into the buffer, the GIL kept. The number is the bytes received, 0 at end of
        stream, or -errno (`WOULD_BLOCK` when there was nothing)."""

    def vacancy(self) -> memoryview:
        """Where bytes may be received; good until `filled`, which must be called next."""

    def filled(self, count: int, /) -> list[_Event]:
        """So many bytes came into the vacancy; then as `feed`."""

    def wait(self, fd: int, ms: int, bell: int = -1, /) -> int:
        """Wait without the GIL, up to `ms` (-1: for ever): 0 once there is something to receive, or the end of the
        stream; `WOULD_BLOCK` when the time is over or only the bell, a second descriptor, became readable; -EINTR after
        a signal. Native, where the GIL was taken after the last wait, it is asked for after 0.2 ms already."""

    def wait_into(self, fd: int, ms: int, /) -> tuple[list[_Event], int]:
        """`wait`, then as `receive_into`."""

    last_borrow: float
    """The driver's and the lanes': when a caller read for himself last, of the monotonic clock; inf while he does."""
    @staticmethod
    def look_after(poller: int, readers: list[FrameReader], park: float, seconds: float, /) -> None:
        """Wait, native without the GIL, up to `seconds` (also inf) until the poller, a descriptor, is readable or one
        of the readers' connections was not borrowed for `park` seconds since this began: its callers come no more."""

@final
class Entry:
    """One stored entry as it came in SEND or MESSAGE: checked, its metadata read, its payload as sent.

    Shared by all messages of a batch. `topic` and `epoch` belong to the engine, which writes there whose it is.
    """

    topic: str | None
    values: Callable[[Any], Any] | None
    """What makes the value of a message, if the consumer has a schema: the engine's, too."""
    epoch: int
    first_chunk: MessageId | None
    """Written by the engine into the last part of a chunked message: where the first part is."""
    @staticmethod
    def from_stored(stored: Buffer, /, ledger: int = -1, entry: int = -1, partition: int = -1) -> Entry:
        """An entry from the bytes that a broker keeps (`stored`)."""

    # of the command
    @property
    def consumer_id(self) -> int: ...
    @property
    def ledger(self) -> int: ...
    @property
    def entry(self) -> int: ...
    @property
    def partition(self) -> int: ...
    @property
    def batch_index(self) -> int:
        """Of the command's message id; -1 in practice."""

    @property
    def redelivery_count(self) -> int: ...
    @property
    def ack_set(self) -> tuple[int, ...] | None:
        """Signed words; bit i of word w is batch index 64*w+i, 1 = not acked yet. None: nothing acked."""

    @property
    def consumer_epoch(self) -> int | None: ...
    @property
    def charged(self) -> int:
        """Permits that the broker deducted: messages in the entry minus those its ack set names as acknowledged."""

    @property
    def corrupt(self) -> int | None:
        """None, or CHECKSUM_MISMATCH: checksum or metadata are bad, and nothing below can be trusted."""

    # of the broker entry metadata
    @property
    def broker_timestamp(self) -> int | None: ...
    @property
    def broker_index(self) -> int | None:
        """Index of the last message of the entry."""

    # of the message metadata: to charge and route
    @property
    def num_messages(self) -> int: ...
    @property
    def batched(self) -> bool:
        """The payload is batch-framed, be it a batch of one."""

    @property
    def compression(self) -> int: ...
    @property
    def uncompressed_size(self) -> int: ...
    @property
    def encrypted(self) -> bool: ...
    @property
    def chunk_id(self) -> int | None: ...
    @property
    def num_chunks(self) -> int | None: ...
    @property
    def total_chunk_size(self) -> int | None: ...
    @property
    def uuid(self) -> str | None: ...
    @property
    def marker_type(self) -> int | None: ...
    @property
    def txn(self) -> tuple[int, int] | None:
        """(most, least) bits"""

    @property
    def deliver_at(self) -> int | None: ...
    # of the message metadata: to show
    @property
    def producer_name(self) -> str: ...
    @property
    def sequence_id(self) -> int: ...
    @property
    def highest_sequence_id(self) -> int: ...
    @property
    def published_at(self) -> int:
        """Milliseconds since the epoch."""

    @property
    def event_time(self) -> int: ...
    @property
    def partition_key(self) -> str | None: ...
    @property
    def key_b64(self) -> bool: ...
    @property
    def ordering_key(self) -> bytes | None: ...
    @property
    def schema_version(self) -> bytes | None: ...
    @property
    def replicated_from(self) -> str | None: ...
    @property
    def null_value(self) -> bool: ...
    @property
    def properties(self) -> dict[str, str]: ...
    # the bytes
    @property
    def metadata(self) -> bytes:
        """MessageMetadata as sent, for what is not named above (`mqclient._schema` decodes it)."""

    @property
    def payload(self) -> memoryview:
        """Compressed and encrypted as sent."""

    @property
    def stored(self) -> bytes:
        """Checksum, metadata and payload: what a broker keeps and `encode_message` takes."""

@final
class MessageId:
    """Where a message lies. Ordered by ledger, entry and batch index; hashable, picklable.

    Equality is that of (ledger, entry, partition, batch_index). `first_chunk` is the id of the first part of a
    chunked message; the id itself is then that of the last.
    """

    def __init__(
        self,
        ledger: int,
        entry: int,
        partition: int = -1,
        batch_index: int = -1,
        batch_size: int = 0,
        first_chunk: MessageId | None = None,
    ) -> None: ...
    @property
    def ledger(self) -> int: ...
    @property
    def entry(self) -> int: ...
    @property
    def partition(self) -> int: ...
    @property
    def batch_index(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def first_chunk(self) -> MessageId | None: ...
    @property
    def ok(self) -> bool:
        """True: in a list of results an id is told from an error by this."""

    @staticmethod
    def of_batch(ledger: int, entry: int, partition: int, start: int, stop: int, size: int, /) -> list[MessageId]:
        """Those of the messages from `start` on, up to `stop`, of a batch of so many."""

    @staticmethod
    def from_bytes(data: bytes, /) -> MessageId:
        """Read `to_bytes`, or what the official clients serialize; ProtocolError if it is not that."""

    def to_bytes(self) -> bytes:
        """MessageIdData, as the official clients serialize it."""

    def __lt__(self, other: MessageId, /) -> bool: ...
    def __le__(self, other: MessageId, /) -> bool: ...
    def __gt__(self, other: MessageId, /) -> bool: ...
    def __ge__(self, other: MessageId, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

EARLIEST: Final[MessageId]
LATEST: Final[MessageId]

@final
class Message(Generic[_T]):
    """One message; made by `decode_messages` only. Keys, properties and ids are read when asked for.

    Its kind is that of `value`: what the consumer's schema says.
    """

    __ack_id__: ClassVar[object]
    """For `permits.AckSet`: see `_native/common/ack_id.pxd`; None in the pure twin."""

    def __class_getitem__(cls, kind: Any, /) -> GenericAlias: ...
    @property
    def body(self) -> bytes: ...
    @property
    def entry(self) -> Entry:
        """What it came in; shared with the other messages of its batch."""

    @property
    def batch_index(self) -> int:
        """-1 if the entry is not batch-framed."""

    @property
    def message_id(self) -> MessageId:
        """Made anew at each access."""

    @property
    def key(self) -> str | None:
        """The partition key as on the wire."""

    @property
    def partition_key(self) -> str | None:
        """Another name of `key`."""

    @property
    def key_bytes(self) -> bytes | None:
        """The key with its base64 undone, if it was given as bytes."""

    @property
    def ordering_key(self) -> bytes | None: ...
    @property
    def properties(self) -> dict[str, str]:
        """A dict of one's own at each access; of a key that occurs twice the last value."""

    @property
    def published_at(self) -> int: ...
    @property
    def event_time(self) -> int: ...
    @property
    def sequence_id(self) -> int: ...
    @property
    def producer_name(self) -> str: ...
    @property
    def redeliveries(self) -> int: ...
    @property
    def null_value(self) -> bool: ...
    @property
    def compacted_out(self) -> bool:
        """Delivered only where `decode_messages` was asked to keep them."""

    @property
    def schema_version(self) -> bytes | None: ...
    @property
    def value(self) -> _T:
        """By the consumer's schema, made anew at each access; without one the body, or None for a null value.
        ProtocolError for a body that is no such value."""

    @property
    def index(self) -> int | None:
        """From the broker entry metadata, where the broker exposes it."""

    @property
    def topic(self) -> str | None: ...
    @property
    def compression(self) -> int:
        """0, or the compression in which `body` still is because nobody could undo it."""

    @property
    def encrypted(self) -> bool:
        """`body` is still encrypted (and a batch then one message): nobody could undo it."""

@final
class MessageBatch:
    """The messages of one entry that are to be delivered, made when asked for.

    For every entry: `entry.charged == len(batch) + batch.compacted + batch.lost`.
    """

    @property
    def entry(self) -> Entry: ...
    @property
    def corrupt(self) -> int | None:
        """None, or the ValidationError with which to acknowledge the entry; the batch is then empty."""

    @property
    def compacted(self) -> int:
        """Messages left out because compaction took them; their permits go back."""

    @property
    def lost(self) -> int:
        """Messages charged but hidden, by bad bytes or in a batch still encrypted; their permits go back."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int, /) -> Message: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Message]: ...
    def __iter__(self) -> Iterator[Message]: ...
    def columns(
        self, names: Collection[str] | None = None, more: Iterable[MessageBatch] = ()
    ) -> dict[str, _Column]:
        """The columns asked for (all: `COLUMNS`) as Arrow buffers, one row a message, without making a message. The
        rows of `more` batches come behind, in the same buffers: nothing is copied twice.

        Numbers, little-endian (batch_index: int32; sequence_id, published_at, event_time: int64, 0 where absent):
        (None, data). Text and bytes (body; key, ordering_key: nullable): (validity or None, int32 offsets, data),
        validity one bit a row, lowest first; a body is null where null_value is set. properties, a map of utf8 to
        utf8: (None, int32 offsets, int32 key offsets, key data, int32 value offsets, value data)."""

def decode_messages(
    entry: Entry,
    payload: Buffer | None = None,
    /,
    *,
    decompress: _Decompress | None = None,
    limit: int = MAX_MESSAGE,
    keep_compacted: bool = False,
) -> MessageBatch:
    """The messages of an entry. Bad bytes never raise: see `MessageBatch.corrupt`.

    `payload` stands in for the entry's own: decrypted, or assembled from chunks. Without it an encrypted entry is one
    message with its bytes as they are; so is a compressed one without `decompress`. `limit` bounds the size after
    decompression. Messages that the ack set names as acknowledged are not there.
    """

def take_run(events: list[_Event], at: int, /) -> list[Entry]:
    """The entries of the MESSAGE events from `at` on that are for one consumer and come in a row."""

def decode_run(
    entries: list[Entry], at: int, topic: str, epoch: int, ledger: int, until: int, /
) -> tuple[list[Message], int, int]:
    """What `decode_messages` gives for the entries from `at` on, all in one list, as long as they are plain.

    Plain is an entry whose every message is to be delivered and can be read as it is: not compressed, encrypted,
    corrupt, acknowledged in part, a chunk, or charged otherwise than by its count; nor one of `ledger` up to entry
    `until`. Topic and epoch are written into them. Also: the permits charged for them, and the place of the first
    entry that is not plain.
    """

def encode_command(type: int, body: Buffer = b"", /) -> bytes:
    """The frame of a cold command: its type and the bytes of its sub-message."""

def encode_send(
    producer_id: int,
    sequence_id: int,
    metadata: Buffer,
    payload: Buffer,
    /,
    *,
    num_messages: int = 0,
    highest_sequence_id: int | None = None,
    is_chunk: bool = False,
    marker: bool = False,
    txn: tuple[int, int] | None = None,
) -> bytes:
    """SEND with its CRC-32C. `num_messages` 0 leaves the field out: for an entry that is not batch-framed."""

def encode_message(
    consumer_id: int,
    ledger: int,
    entry: int,
    stored: Buffer,
    /,
    *,
    partition: int | None = None,
    redelivery_count: int = 0,
    ack_set: Sequence[int] | None = None,
    consumer_epoch: int | None = None,
    broker_timestamp: int | None = None,
    broker_index: int | None = None,
    head_only: bool = False,
) -> bytes:
    """MESSAGE around `stored` as it is; broker entry metadata in front if one of its two fields is given.

    Brokers write the partition always, -1 where the topic is none. `head_only`: what stands before `stored`, which then
    is sent from where it lies.
    """

def encode_receipt(
    producer_id: int, sequence_id: int, ledger: int, entry: int, /, highest_sequence_id: int = -1
) -> bytes:
    """SEND_RECEIPT"""

def encode_ack(
    consumer_id: int,
    ids: Sequence[tuple[Any, ...]],
    /,
    *,
    cumulative: bool = False,
    validation_error: int | None = None,
    txn: tuple[int, int] | None = None,
    request_id: int | None = None,
) -> bytes:
    """ACK. An id is `(ledger, entry)`, `(ledger, entry, ack_set)` or `(ledger, entry, ack_set, batch_size)`.

    `ack_set` is None or the words of what is still not acked, trailing zero words left out.
    """

def encode_flow(consumer_id: int, permits: int, /) -> bytes:
    """FLOW"""

def encode_metadata(
    producer_name: str,
    sequence_id: int,
    published_at: int,
    /,
    *,
    properties: Mapping[str, str] | None = None,
    replicated_from: str | None = None,
    partition_key: str | None = None,
    replicate_to: Sequence[str] = (),
    compression: int = 0,
    uncompressed_size: int | None = None,
    num_messages: int = 0,
    event_time: int = 0,
    encryption_keys: Sequence[bytes] = (),
    encryption_algo: str | None = None,
    encryption_param: bytes | None = None,
    schema_version: bytes | None = None,
    key_b64: bool | None = None,
    ordering_key: bytes | None = None,
    deliver_at: int | None = None,
    txn: tuple[int, int] | None = None,
    highest_sequence_id: int | None = None,
    null_value: bool = False,
    uuid: str | None = None,
    num_chunks: int | None = None,
    total_chunk_size: int | None = None,
    chunk_id: int | None = None,
    null_key: bool = False,
) -> bytes:
    """MessageMetadata. `num_messages` 0 leaves the field out: not batch-framed.

    `encryption_keys` are serialized EncryptionKeys.
    """

@final
class BatchBuilder:
    """The payload of one batch, message by message; used anew after `seal`.

    `add` takes always; `add_many` stops at the limits.
    """

    @property
    def count(self) -> int: ...
    @property
    def size(self) -> int:
        """Bytes of the payload so far."""

    def __init__(self, max_messages: int = 1000, max_bytes: int = 131072) -> None: ...
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
        """Append one message; the size after it. A body of None is a null value; a sequence id of -1 is left out."""

    def add_many(self, items: Sequence[Any], start: int = 0, sequence_id: int = -1) -> int:
        """Append from `start` until a limit; the index of the first that was not taken.

        An item is a body, or a tuple of `add`'s arguments in their order. Those without a sequence id of their own
        get `sequence_id`, `sequence_id + 1`, …, if it is not -1. The first of an empty builder is always taken.
        """

    def open(self, sequence_id: int, /) -> int:
        """From now on `join` takes messages, the first of which gets this sequence id; the token for it."""

    def shut(self) -> int:
        """`join` takes none any more; the sequence id after the last one. Nothing else is called between the two."""

    def join(self, message: Any, token: int, /) -> int:
        """Append a message, a tuple as `add_many` takes it: the index, or -1: this token's time is over, there is no
        room for it and one more, or it has other things than a body of bytes, keys and event time.

        One step that no other thread sees half done, so it may be called outside of any entry.
        """

    def seal(self) -> tuple[bytes, int]:
        """`(payload, count)`; the builder is empty again."""

@final
class Door:
    """Where a face puts what it was given, while a batch gathers that may be joined: outside of any entry."""

    def __init__(self, future: Callable[[Any, int], Any], /) -> None:
        """`future(batch, index)` makes what `board` gives."""

    def open(self, builder: BatchBuilder, batch: Any, token: int, /) -> None:
        """From now on messages may join the batch that this builder holds, see `BatchBuilder.open`."""

    def shut(self) -> None: ...
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
        """What `Producer.submit` was given: the future of the message, or None: it has not joined, and has to be
        looked at. Only what needs no check joins: a body of bytes, keys that are text and bytes, an event time in
        milliseconds."""

@final
class EntryFlight:
    """SEND frames of single messages without receipt, in their order, and the slots of those who wait for them."""

    @property
    def count(self) -> int:
        """Messages without receipt."""

    @property
    def size(self) -> int:
        """Of the bodies without receipt."""

    @property
    def sequence_id(self) -> int:
        """Of the first one without receipt; there is one."""

    @property
    def last_sequence_id(self) -> int: ...
    @property
    def deadline(self) -> float:
        """Of the first one without receipt; there is one."""

    @property
    def landed_bytes(self) -> int:
        """Of the bodies for which `take_receipts` found receipts, the last time."""

    @property
    def closed(self) -> bool:
        """It was parted."""

    def __init__(
        self, producer_id: int, producer_name: str, partition: int, limit: int, schema_version: bytes | None = None
    ) -> None:
        """At most `limit` bytes of metadata and body each."""

    def add(self, message: Any, sequence_id: int, published_at: int, deadline: float, slot: Any, /) -> bytes | None:
        """The message's frame, to be written now; the message is a tuple as `BatchBuilder.add_many` takes it. None: it
        is no plain message (a body of bytes, at most keys and event time), is too large, or this was parted."""

    def take_receipts(self, events: Sequence[Any], at: int, /) -> int:
        """How many of the events from `at` on are SEND_RECEIPT of the next messages, in their order; their slots are
        completed with a MessageId."""

    def part(self) -> list[tuple[bytes, int, int, float, Any]]:
        """`(frame, size of the body, sequence id, deadline, slot)` of those without receipt, which leave. Nobody joins
        any more."""

@final
class Lane:
    """A send that waits, whole: a message goes out and its receipt comes back in one call without an entry. The third
    place where native code touches a descriptor.

    Open, it owns the next sequence id, and what is in the flight; whoever wants to know or change either shuts it
    first, inside an entry. Up to its wait `send` is one step: it runs no Python code and keeps the GIL, so nobody, no
    Ctrl-C either, finds half of it done. The pure twin never opens: in Python it would be many steps.

    Several threads may be in it. They wait in the order of their messages; one of them reads for all, without the GIL,
    until it has its own receipt, and then the next one does: no other thread is woken, or needs the GIL, for a receipt
    that is not its own. Who sends while others have their receipts and not yet the GIL leaves the writing to the last
    of those, who is about to send again; a millisecond later he writes it himself.
    """

    patience_ms: int
    """A receipt that takes longer than these 100 is waited for as by everybody else."""

    @property
    def opened(self) -> bool: ...
    @property
    def published(self) -> int:
        """The last sequence id of which it saw the receipt; -1: none."""

    def __init__(self, budget: Any, make_slot: Callable[[], Any], give_up: Callable[[], None], /) -> None:
        """`budget`: a `Budget`, which is only looked at. `give_up` shuts it, outside of any entry."""

    def open(self, flight: EntryFlight, passage: Any, sequence_id: int, /) -> bool:
        """Messages go this way from now on: a flight of which all have landed, a `Passage` of mqclient/io, and the
        next sequence id. False: they do not."""

    def shut(self, deadline: float, /) -> tuple[int, int, list[bytes]]:
        """`(next sequence id, messages that went this way, frames that nobody has written)`. Those on their way have
        slots and this deadline now."""

    def send(self, message: Any, /) -> Any:
        """None: nothing was done, send it the long way. Else a slot; nearly always it is done."""

@final
class EntryTrain:
    """SEND frames of single messages, one entry each and one behind the other, with sequence ids in a row; and where
    the broker stored each of them.

    `add`, `close` and `take_receipts` are each one step that no other thread sees half done.
    """

    @property
    def first(self) -> int:
        """The sequence id of the first one."""

    @property
    def following(self) -> int:
        """The sequence id after the last one."""

    @property
    def count(self) -> int: ...
    @property
    def landed(self) -> int:
        """So many, from the first on, are stored."""

    @property
    def size(self) -> int:
        """Bytes of all frames."""

    def __init__(
        self,
        producer_id: int,
        producer_name: str,
        sequence_id: int,
        published_at: int,
        max_bytes: int,
        limit: int,
        schema_version: bytes | None = None,
    ) -> None:
        """At most `max_bytes` of frames, but one message at least; at most `limit` bytes of metadata and body each."""

    def add(self, message: Any, /) -> int:
        """The index of the message, a tuple as `BatchBuilder.add_many` takes it; or -1: no room, or closed; -2: it is
        no plain message (a body of bytes, at most keys and event time), or too large."""

    def close(self) -> bytes:
        """All frames; nothing is added any more."""

    def drop(self) -> None:
        """Of a closed one, whose frames nobody needs any more."""

    def frame(self, index: int, /) -> bytes:
        """That of one message, when closed."""

    def land(self, ledger: int, entry: int, /) -> None:
        """The next one is stored there."""

    def place(self, index: int, /) -> tuple[int, int]:
        """`(ledger, entry)` of one that is stored."""

    def take_receipts(self, events: list[_Event], at: int, /) -> int:
        """How many SEND_RECEIPT events from `at` on are those of the next messages in their order; they are stored."""

def encode_columns(
    columns: Mapping[str, _Column],
    start: int,
    stop: int,
    /,
    *,
    sequence_id: int = -1,
    max_bytes: int = 131072,
) -> tuple[bytes, int]:
    """`(batch payload, next row)` of Arrow buffers, layout and names as in `MessageBatch.columns`.

    body is needed, key, ordering_key, event_time (0: left out) and properties may be there. Rows from `start` until
    `stop` or until `max_bytes` are reached, at least one. With `sequence_id` not -1 the rows get it and those after
    it. ConfigError if offsets or rows point outside of their buffers. Offsets may begin above 0.
    """

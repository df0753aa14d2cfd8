"""Generated Pulsar frames, entries and their parts, and what is compared of what two twins make of them."""

from __future__ import annotations

import zlib
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from mqclient import _schema
from mqclient.errors import ProtocolError
from tests.property.twins import compared, twins_of

TWINS = twins_of("pulsar")
ONE = TWINS[0]

VECTORS = Path(__file__).parents[1] / "vectors" / "pulsar"
RECORDED = sorted(path for path in VECTORS.glob("*.bin") if path.stat().st_size < 8192)
ENTRY_FACTS = (
    *("consumer_id", "ledger", "entry", "partition", "batch_index", "redelivery_count", "ack_set", "consumer_epoch"),
    *("charged", "corrupt", "broker_timestamp", "broker_index", "num_messages", "batched", "compression", "metadata"),
    *("uncompressed_size", "encrypted", "chunk_id", "num_chunks", "total_chunk_size", "uuid", "marker_type", "txn"),
    *("deliver_at", "producer_name", "sequence_id", "highest_sequence_id", "published_at", "event_time", "stored"),
    *("partition_key", "key_b64", "ordering_key", "schema_version", "replicated_from", "null_value", "properties"),
    *("topic", "epoch"),
)
MESSAGE_FACTS = (
    *("body", "batch_index", "key", "partition_key", "key_bytes", "ordering_key", "properties", "published_at"),
    *("event_time", "sequence_id", "producer_name", "redeliveries", "null_value", "compacted_out", "schema_version"),
    *("index", "topic", "compression", "encrypted"),
)
ID_FACTS = ("ledger", "entry", "partition", "batch_index", "batch_size")

int32 = st.integers(-(2**31), 2**31 - 1)
uint32 = st.integers(0, 2**32 - 1)
int64 = st.one_of(st.sampled_from([-(2**63), -1, 2**63 - 1]), st.integers(-(2**63), 2**63 - 1))
uint64 = st.one_of(st.integers(0, 300), st.sampled_from([2**63 - 1, 2**63, 2**64 - 1]), st.integers(0, 2**64 - 1))
words = st.text(st.characters(codec="utf-8"), max_size=8)
blobs = st.binary(max_size=24)
pairs = st.lists(st.tuples(words, words), max_size=4)


same = partial(compared, TWINS)


# ---- what is compared


def decompress(kind: int, data: memoryview, limit: int) -> bytes:
    if kind != 2:
        raise ProtocolError(f"compression {kind}")
    opener = zlib.decompressobj()
    try:
        found = opener.decompress(data, limit + 1)
    except zlib.error as error:
        raise ProtocolError(str(error)) from error
    return found


def batch_facts(batch: Any) -> Any:
    messages = list(batch)
    entry = batch.entry
    if not entry.ack_set:  # else a broker that says permits may contradict itself
        assert entry.charged >= len(messages) + batch.compacted
    columns = [
        {name: tuple(map(plain, column)) for name, column in batch.columns(None, more).items()}
        for more in ((), [batch, batch])
    ]
    return (
        (batch.corrupt, batch.compacted, batch.lost, len(batch)),
        [[getattr(message, name) for name in MESSAGE_FACTS] for message in messages],
        [[getattr(message.message_id, name) for name in ID_FACTS] for message in messages],
        columns,
    )


def plain(buffer: Any) -> Any:
    return None if buffer is None else bytes(buffer)


def entry_facts(twin: Any, entry: Any) -> Any:
    decode = twin.decode_messages
    return (
        [getattr(entry, name) for name in ENTRY_FACTS],
        bytes(entry.payload),
        batch_facts(decode(entry)),
        batch_facts(decode(entry, decompress=decompress, limit=4096)),
        batch_facts(decode(entry, bytes(entry.payload), keep_compacted=True)),
    )


def event_facts(twin: Any, event: tuple[Any, ...]) -> Any:
    return [entry_facts(twin, part) if isinstance(part, twin.Entry) else part for part in event]


def fed(twin: Any, *parts: bytes, max_frame: int = 1 << 16) -> Any:
    reader = twin.FrameReader(max_frame)
    events = [event_facts(twin, event) for part in parts for event in reader.feed(part)]
    return events, reader.error is None, 0 if reader.error else reader.pending


# ---- what is generated


def message(name: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Serialized messages with any of these fields, unknown ones in between."""

    def make(values: dict[str, Any], strange: bytes) -> bytes:
        made = _schema.message(name)()
        for field, value in values.items():
            if isinstance(value, list):
                getattr(made, field).extend(value)
            else:
                setattr(made, field, value)
        return strange + made.SerializePartialToString()

    unknown = st.sampled_from([b"", b"\xf8\x7d\x05", b"\xfa\x7d\x02ab", b"\xfd\x7d\x01\x02\x03\x04"])
    return st.builds(make, st.fixed_dictionaries({}, optional=fields), unknown)


def key_values(found: list[tuple[str, str]]) -> list[Any]:
    return [_schema.message("KeyValue")(key=key, value=value) for key, value in found]


properties = pairs.map(key_values)
base64_keys = st.one_of(words, st.sampled_from(["YQ==", "YWI=", "YWJj", "Y===", "YQ", "+/+/", "YWJj=", "YW=j", "="]))
single = message(
    "SingleMessageMetadata",
    properties=properties,
    partition_key=base64_keys,
    compacted_out=st.booleans(),
    event_time=uint64,
    partition_key_b64_encoded=st.booleans(),
    ordering_key=blobs,
    sequence_id=uint64,
    null_value=st.booleans(),
    null_partition_key=st.booleans(),
)
METADATA: dict[str, st.SearchStrategy[Any]] = {
    "producer_name": words,
    "sequence_id": uint64,
    "publish_time": uint64,
    "properties": properties,
    "replicated_from": words,
    "partition_key": base64_keys,
    "event_time": uint64,
    "schema_version": blobs,
    "partition_key_b64_encoded": st.booleans(),
    "ordering_key": blobs,
    "deliver_at_time": int64,
    "marker_type": int32,
    "txnid_least_bits": uint64,
    "txnid_most_bits": uint64,
    "highest_sequence_id": uint64,
    "null_value": st.booleans(),
    "uuid": words,
    "num_chunks_from_msg": int32,
    "total_chunk_msg_size": int32,
    "chunk_id": int32,
    "null_partition_key": st.booleans(),
    "compacted_batch_indexes": st.lists(st.integers(-1, 6), max_size=4),
}


def size(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big")


@st.composite
def stored_entries(draw: st.DrawFn) -> bytes:
    """An entry as a producer sends it: of one message, or a batch; compressed, encrypted, or wrong in a known way."""
    metadata = draw(message("MessageMetadata", **METADATA))
    count = draw(st.integers(0, 5))
    bodies = draw(st.lists(blobs, min_size=count, max_size=count))
    payload = draw(blobs)
    if count:
        payload = b""
        for body in bodies:
            one = draw(single) + b"\x18" + bytes([len(body)])
            payload += size(one) + one + body
        claimed = draw(st.one_of(st.just(count), st.integers(-1, 6)))
        metadata += _schema.message("MessageMetadata")(num_messages_in_batch=claimed).SerializePartialToString()
    if draw(st.integers(0, 3)) == 0:
        said = len(payload) + draw(st.sampled_from([0, 0, 0, 1, 9999]))
        payload = zlib.compress(payload)
        kind = draw(st.sampled_from([2, 2, 2, 1]))
        compressed = _schema.message("MessageMetadata")(compression=kind, uncompressed_size=said)
        metadata += compressed.SerializePartialToString()
    if draw(st.integers(0, 5)) == 0:
        metadata += b"\x7a\x02iv"
    covered = size(metadata) + metadata + payload
    if draw(st.integers(0, 5)) == 0:
        return covered
    crc = TWINS[-1].encode_send(0, 0, metadata, payload).split(b"\x0e\x01", 1)[1][:4]
    return b"\x0e\x01" + (crc if draw(st.integers(0, 9)) else bytes(4)) + covered


ack_sets = st.one_of(st.none(), st.lists(st.one_of(int64, st.integers(-1, 63)), min_size=1, max_size=2))


@st.composite
def message_frames(draw: st.DrawFn) -> bytes:
    encode = TWINS[-1].encode_message
    frame: bytes = encode(
        draw(int64),
        draw(int64),
        draw(int64),
        draw(stored_entries()),
        partition=draw(st.one_of(st.none(), int32)),
        redelivery_count=draw(st.integers(0, 9)),
        ack_set=draw(ack_sets),
        consumer_epoch=draw(st.one_of(st.none(), int64)),
        broker_timestamp=draw(st.one_of(st.none(), int64)),
        broker_index=draw(st.one_of(st.none(), int64)),
    )
    return frame


message_ids = message(
    "MessageIdData",
    ledgerId=uint64,
    entryId=uint64,
    partition=int32,
    batch_index=int32,
    ack_set=st.lists(int64, max_size=3),
    batch_size=int32,
)


@st.composite
def command_frames(draw: st.DrawFn) -> bytes:
    """Frames of hot commands with any fields, of cold ones, of unknown ones, and SENDs."""
    kind = draw(st.sampled_from([6, 7, 9, 10, 11, 13, 18, 19, 4711, 0]))
    sent = {"producer_id": uint64, "sequence_id": uint64, "highest_sequence_id": uint64}
    bits, errors = st.integers(0, 1), st.integers(0, 4)
    txn = {"txnid_least_bits": uint64, "txnid_most_bits": uint64}
    fields: dict[int, st.SearchStrategy[bytes]] = {
        6: message("CommandSend", num_messages=int32, is_chunk=st.booleans(), marker=st.booleans(), **sent, **txn),
        7: message("CommandSendReceipt", **sent),
        9: message("CommandMessage", consumer_id=uint64, redelivery_count=uint32, ack_set=st.lists(int64, max_size=2)),
        10: message("CommandAck", consumer_id=uint64, ack_type=bits, validation_error=errors, request_id=uint64, **txn),
        11: message("CommandFlow", consumer_id=uint64, messagePermits=uint32),
    }
    body = draw(fields.get(kind, blobs))
    for tag in {7: b"\x1a", 9: b"\x12", 10: b"\x1a"}.get(kind, b"").split():
        for one in draw(st.lists(message_ids, max_size=2)):
            body += tag + bytes([len(one) % 128]) + one[:127]
    if kind == 9 and draw(st.booleans()):
        body += b"\x22\x03\x01\xac\x02" + b"\x30\x05"
    base: bytes = ONE.encode_command(kind, body)[8:]
    rest = draw(stored_entries()) if kind in (6, 9) else draw(st.sampled_from([b"", b"more"]))
    return size(size(base) + base + rest) + size(base) + base + rest


frames = st.one_of(message_frames(), command_frames())


# ---- reading

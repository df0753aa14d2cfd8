"""The native Pulsar codec and its pure twin give the same for everything: valid, damaged, cut off and sliced."""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mqclient import _schema
from mqclient.errors import ConfigError, ProtocolError

NAMES = ("pure",) if os.environ.get("MQCLIENT_IMPL") == "pure" else ("native", "pure")
TWINS = [import_module(f"mqclient._{name}.pulsar") for name in NAMES]
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


def outcome(call: Callable[[], Any]) -> Any:
    """What a call gives, or which of our errors it raises."""
    try:
        return call()
    except (ConfigError, ProtocolError) as error:
        return type(error)


def same(call: Callable[[ModuleType], Any]) -> Any:
    """The outcome of both twins, which must be one."""
    answers = [outcome(lambda twin=twin: call(twin)) for twin in TWINS]  # type: ignore[misc]
    assert all(answer == answers[0] for answer in answers), answers
    return answers[0]


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
    columns = {name: tuple(map(plain, column)) for name, column in batch.columns().items()}
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


def fed_the_same(*parts: bytes) -> Any:
    return same(lambda twin: fed(twin, *parts))


@given(st.lists(frames, max_size=4))
@settings(max_examples=150)
def test_frames_read_the_same(sent: list[bytes]) -> None:
    same(lambda twin: fed(twin, b"".join(sent)))


@st.composite
def plain_frames(draw: st.DrawFn) -> bytes:
    """Of few consumers and ledgers: alone or batches, some of them acknowledged in part."""
    builder = TWINS[-1].BatchBuilder(9, 999)
    count = draw(st.integers(0, 3))
    for _ in range(count):
        builder.add(draw(blobs))
    payload = builder.seal()[0] if count else draw(blobs)
    metadata = TWINS[-1].encode_metadata("p", 1, 2, num_messages=count, null_value=draw(st.booleans()))
    stored = TWINS[-1].encode_send(0, 0, metadata, payload).split(b"\x0e\x01", 1)[1]
    places = draw(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 3)))
    made: bytes = TWINS[-1].encode_message(
        *places, b"\x0e\x01" + stored, ack_set=draw(st.sampled_from([None] * 5 + [[1]]))
    )
    return made


@given(st.lists(st.one_of(plain_frames(), plain_frames(), frames), max_size=8), st.integers(0, 2), st.integers(-1, 2))
@settings(max_examples=150)
def test_runs_of_entries_are_what_their_entries_are(sent: list[bytes], ledger: int, until: int) -> None:
    def runs(twin: Any) -> Any:
        reader = twin.FrameReader()
        events = reader.feed(b"".join(sent))
        at, found = 0, []
        while at < len(events):
            entries = twin.take_run(events, at)
            assert entries == [event[-1] for event in events[at : at + len(entries)]]
            assert bool(entries) is (events[at][0] == twin.MESSAGE)
            assert len({entry.consumer_id for entry in entries}) < 2
            at += max(len(entries), 1)
            place = 0
            while place < len(entries):
                messages, charged, following = twin.decode_run(entries, place, "t", 7, ledger, until)
                decoded = [message for entry in entries[place:following] for message in twin.decode_messages(entry)]
                assert charged == sum(entry.charged for entry in entries[place:following]) == len(messages)
                assert all(entry.topic == "t" and entry.epoch == 7 for entry in entries[place:following])
                facts = [[getattr(message, name) for name in MESSAGE_FACTS] for message in messages]
                assert facts == [[getattr(message, name) for name in MESSAGE_FACTS] for message in decoded]
                hidden = [
                    entry for entry in entries[place:following] if entry.ledger == ledger and entry.entry <= until
                ]
                assert not hidden
                found.append((facts, charged, following))
                place = following + 1
        return found

    same(runs)


@given(st.lists(frames, max_size=4), st.lists(st.integers(0, 400), max_size=6))
def test_slicing_changes_nothing(sent: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(sent)
    at = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]
    whole = same(lambda twin: fed(twin, stream))
    sliced = same(lambda twin: fed(twin, *(stream[a:b] for a, b in pairwise(at))))
    assert sliced == whole


@given(st.one_of(frames, st.sampled_from(RECORDED).map(Path.read_bytes)), st.data())
@settings(max_examples=200)
def test_damaged_bytes_read_the_same_and_never_raise(stream: bytes, data: st.DataObject) -> None:
    broken = bytearray(stream)
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    same(lambda twin: fed(twin, bytes(broken)))


@given(frames)
@settings(max_examples=12)
def test_cut_at_every_byte(frame: bytes) -> None:
    """Of the stream: nothing comes. Of the frame, its size put right: the same damage on both sides."""
    for cut in range(len(frame)):
        events, good, _ = fed_the_same(frame[:cut])
        assert not events
        assert good
        if cut >= 8:
            fed_the_same(size(frame[4:cut]) + frame[4:cut])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: str(path.stem))
def test_real_frames_cut_at_every_byte(path: Path) -> None:
    stream = path.read_bytes()[:600]
    for cut in range(len(stream)):
        whole = ONE.FrameReader()
        parts = ONE.FrameReader()
        kinds = [event[0] for event in whole.feed(stream)]
        assert [event[0] for part in (stream[:cut], stream[cut:]) for event in parts.feed(part)] == kinds
        assert parts.pending == whole.pending


@given(stored_entries(), st.data())
@settings(max_examples=150)
def test_stored_entries_cut_or_damaged_read_the_same(stored: bytes, data: st.DataObject) -> None:
    broken = bytearray(stored[: data.draw(st.integers(0, len(stored)))])
    if broken and data.draw(st.booleans()):
        broken[data.draw(st.integers(0, len(broken) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    same(lambda twin: entry_facts(twin, twin.Entry.from_stored(bytes(broken), 1, 2, 3)))


@given(st.binary(max_size=64))
@example(b"\x00\x00\x00\x04\x00\x00\x00\x00")
@example(b"\xff\xff\xff\xff")
@example(b"\x00\x00\x00\x00")
@example(b"\x00\x00\x00\x09\x00\x00\x00\x05\x08\x12\x92\x01\x00")
def test_any_bytes_read_the_same(data: bytes) -> None:
    same(lambda twin: fed(twin, data))


@given(st.one_of(message_ids, blobs))
@example(b"\x08\x01\x10\x02\x3a\x04\x08\x01\x10\x02")
@example(b"\x08\x01\x10\x02\x3a\x0a\x08\x01\x10\x02\x3a\x04\x08\x01\x10\x02")
def test_message_ids_read_the_same(data: bytes) -> None:
    def read(twin: Any) -> Any:
        found = twin.MessageId.from_bytes(data)
        assert twin.MessageId.from_bytes(found.to_bytes()) == found
        assert pickle.loads(pickle.dumps(found)) == found
        chunk = found.first_chunk
        return [getattr(found, name) for name in ID_FACTS], found.to_bytes(), chunk and chunk.to_bytes(), repr(found)

    same(read)


ids = st.tuples(st.integers(-1, 2), st.integers(-1, 2), st.integers(-1, 1), st.integers(-1, 2))


@given(ids, ids)
def test_message_ids_are_ordered_and_equal_the_same(left: Any, right: Any) -> None:
    def compare(twin: Any) -> Any:
        a, b = twin.MessageId(*left), twin.MessageId(*right)
        assert (a == b) is (left == right)
        assert (hash(a) == hash(b)) or a != b
        assert (a < b) is (b > a)
        assert (a <= b) is (a < b or a == b)
        return a < b, a <= b, a == b, a > b, a >= b

    same(compare)


# ---- writing

txns = st.one_of(st.none(), st.tuples(int64, int64))
maybe64 = st.one_of(st.none(), int64)
maybe32 = st.one_of(st.none(), int32)


sends = st.fixed_dictionaries(
    {
        "num_messages": st.integers(0, 9),
        "highest_sequence_id": maybe64,
        "is_chunk": st.booleans(),
        "marker": st.booleans(),
        "txn": txns,
    }
)


@given(int64, int64, blobs, blobs, sends)
def test_sends_are_written_the_same(
    producer: int, sequence: int, metadata: bytes, payload: bytes, options: dict[str, Any]
) -> None:
    frame = same(lambda twin: twin.encode_send(producer, sequence, metadata, payload, **options))
    (event,) = ONE.FrameReader().feed(frame)
    assert event[:5] == (
        *(ONE.SEND, producer, sequence),
        *(options["num_messages"] or 1, options["highest_sequence_id"] or 0),
    )
    assert event[5:8] == (options["is_chunk"], options["marker"], options["txn"])
    assert bytes(event[8].metadata) == metadata
    assert bytes(event[8].payload) == payload


acked_ids = st.lists(st.tuples(int64, int64, ack_sets, st.integers(0, 99)), max_size=4)


@given(int64, acked_ids, st.booleans(), maybe32, txns, maybe64)
def test_acks_are_written_the_same(
    consumer: int, told: Any, cumulative: bool, wrong: Any, txn: Any, request: Any
) -> None:
    options = {"cumulative": cumulative, "validation_error": wrong, "txn": txn, "request_id": request}
    frame = same(lambda twin: twin.encode_ack(consumer, told, **options))
    (event,) = ONE.FrameReader().feed(frame)
    read = [(a, b, -1, -1, None if words is None else tuple(words), size) for a, b, words, size in told]
    assert event == (ONE.ACK, consumer, int(cumulative), read, wrong, txn, request)


@given(int64, int64, int64, int64, int64)
def test_receipts_and_flows_are_written_the_same(a: int, b: int, c: int, d: int, e: int) -> None:
    frame = same(lambda twin: twin.encode_receipt(a, b, c, d, e))
    assert ONE.FrameReader().feed(frame) == [(ONE.SEND_RECEIPT, a, b, c, d, e)]
    flow = same(lambda twin: twin.encode_flow(a, abs(b) % 2**32))
    assert ONE.FrameReader().feed(flow) == [(ONE.FLOW, a, abs(b) % 2**32)]


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(words, words, max_size=3),
            "replicated_from": words,
            "partition_key": words,
            "replicate_to": st.lists(words, max_size=2),
            "compression": st.integers(0, 4),
            "uncompressed_size": st.integers(0, 2**32 - 1),
            "num_messages": st.integers(0, 5),
            "event_time": int64,
            "encryption_keys": st.lists(message("EncryptionKeys", value=blobs).map(lambda data: b"\x0a\x00" + data)),
            "encryption_algo": words,
            "encryption_param": blobs,
            "schema_version": blobs,
            "key_b64": st.one_of(st.none(), st.booleans()),
            "ordering_key": blobs,
            "deliver_at": int64,
            "txn": txns,
            "highest_sequence_id": maybe64,
            "null_value": st.booleans(),
            "uuid": words,
            "num_chunks": maybe32,
            "total_chunk_size": maybe32,
            "chunk_id": maybe32,
            "null_key": st.booleans(),
        },
    )
)
def test_metadata_is_written_the_same_and_protobuf_reads_it(options: dict[str, Any]) -> None:
    data = same(lambda twin: twin.encode_metadata("producer", 7, 1700000000000, **options))
    read: Any = _schema.message("MessageMetadata").FromString(data)
    assert read.producer_name == "producer"
    assert {pair.key: pair.value for pair in read.properties} == options.get("properties", {})
    assert read.HasField("num_messages_in_batch") is bool(options.get("num_messages"))
    assert list(read.replicate_to) == options.get("replicate_to", [])


items = st.one_of(
    blobs,
    st.tuples(blobs),
    st.tuples(
        st.one_of(st.none(), blobs), st.one_of(st.none(), words), st.one_of(st.none(), st.dictionaries(words, words))
    ),
    st.tuples(
        st.one_of(st.none(), blobs, blobs.map(bytearray)),
        st.one_of(st.none(), words),
        st.one_of(st.none(), st.dictionaries(words, words, max_size=2)),
        st.one_of(st.just(0), int64),
        st.one_of(st.none(), blobs),
        st.one_of(st.just(-1), st.integers(0, 2**40)),
        st.booleans(),
        st.booleans(),
    ),
)


@given(st.lists(items, max_size=12), st.integers(1, 8), st.integers(1, 200), st.sampled_from([-1, 0, 1000]))
def test_batches_are_built_the_same_and_read_back(sent: list[Any], most: int, room: int, first: int) -> None:
    def build(twin: Any) -> list[tuple[bytes, int]]:
        builder = twin.BatchBuilder(most, room)
        batches, at = [], 0
        while at < len(sent):
            at = builder.add_many(sent, at, first if first == -1 else first + at)
            assert 1 <= builder.count <= most
            assert builder.size <= room or builder.count == 1
            batches.append(builder.seal())
        return batches

    read: list[Any] = []
    for payload, count in same(build):
        metadata = ONE.encode_metadata("p", 0, 0, num_messages=count)
        (event,) = ONE.FrameReader().feed(ONE.encode_send(0, 0, metadata, payload, num_messages=count))
        read += ONE.decode_messages(event[-1])
    assert len(read) == len(sent)
    for place, (found, item) in enumerate(zip(read, sent, strict=True)):
        body, key, *rest = (*item, None, None, None)[:3] if isinstance(item, tuple) else (item, None, None)
        assert found.body == bytes(body or b"")
        assert found.null_value is (body is None)
        assert found.properties == (rest[0] or {})
        if not (isinstance(item, tuple) and len(item) > 3):
            assert found.key == key
            if first != -1:
                assert found.sequence_id == first + place


@given(st.lists(items, min_size=1, max_size=12), st.integers(0, 4), st.integers(0, 14), st.integers(1, 300))
def test_columns_are_written_the_same_and_read_back(sent: list[Any], start: int, stop: int, room: int) -> None:
    builder = TWINS[-1].BatchBuilder(100, 100000)
    builder.add_many(sent)
    payload, count = builder.seal()
    metadata = ONE.encode_metadata("p", 0, 0, num_messages=count)
    (event,) = ONE.FrameReader().feed(ONE.encode_send(0, 0, metadata, payload, num_messages=count))
    batch = ONE.decode_messages(event[-1])
    columns = batch.columns(("body", "key", "ordering_key", "event_time", "properties"))
    written = same(lambda twin: twin.encode_columns(columns, start, stop, sequence_id=5, max_bytes=room))
    if written is ConfigError:
        assert stop > count > 0
        return
    data, row = written
    taken = batch[start:row]
    again = TWINS[-1].BatchBuilder(100, 100000)
    for place, found in enumerate(taken):
        again.add(
            *(None if found.null_value else found.body, found.key, found.properties, found.event_time),
            *(found.ordering_key, 5 + place),
        )
    assert data == again.seal()[0]


@given(st.data())
def test_columns_that_lie_are_refused_the_same(data: st.DataObject) -> None:
    offsets = data.draw(st.lists(st.integers(-2, 9), max_size=4))
    body = (
        data.draw(st.one_of(st.none(), st.binary(max_size=1))),
        b"".join(value.to_bytes(4, "little", signed=True) for value in offsets),
        data.draw(st.binary(max_size=8)),
    )
    columns: dict[str, Any] = {"body": body}
    if data.draw(st.booleans()):
        columns["properties"] = (None, body[1], body[1], body[2], body[1], body[2])
    if data.draw(st.booleans()):
        columns["event_time"] = (None, data.draw(st.binary(max_size=24)))
    start, stop = data.draw(st.integers(-1, 3)), data.draw(st.integers(0, 4))
    same(lambda twin: twin.encode_columns(columns, start, stop))

"""The native Pulsar codec and its pure twin write the same bytes, which read back as what was written."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mqclient import _schema
from mqclient.errors import ConfigError
from tests.property.pulsar_frames import ONE, TWINS, ack_sets, blobs, int32, int64, message, same, words

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

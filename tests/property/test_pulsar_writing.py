"""The native Pulsar codec and its pure twin write the same bytes, which read back as what was written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mqclient import _schema
from mqclient.core.slot import Slot
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


plain = st.tuples(
    st.binary(max_size=200),
    st.one_of(st.none(), st.text(max_size=9)),
    st.none(),
    st.one_of(st.just(0), st.integers(0, 2**62)),
    st.one_of(st.none(), st.binary(max_size=9)),
    st.just(-1),
    st.booleans(),
)
odd = st.one_of(
    st.just(b"x"),
    st.tuples(st.just(b"x")),
    st.tuples(st.one_of(st.none(), st.just(bytearray(b"x"))), *[st.none()] * 2, st.just(0), st.none(), st.just(-1)),
    st.tuples(
        st.one_of(st.none(), st.just(b"x"), st.just(bytearray(b"x"))),
        st.one_of(st.none(), st.just(b"k")),
        st.one_of(st.none(), st.just({"a": "b"})),
        st.just(0),
        st.one_of(st.none(), st.just("k")),
        st.sampled_from([-1, 7]),
        st.just(False),
    ),
)
receipts = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(-1, 9), int64), max_size=12)


@given(
    int64,
    st.text(max_size=20),
    st.integers(0, 2**60),
    st.integers(0, 2**62),
    st.integers(0, 900),
    st.integers(0, 400),
    st.one_of(st.none(), st.binary(max_size=9)),
    st.lists(st.one_of(plain, odd), max_size=9),
    receipts,
)
def test_trains_are_written_the_same_and_take_the_same_receipts(
    producer: int, name: str, first: int, born: int, most: int, limit: int, version: Any, messages: Any, told: Any
) -> None:
    trains = [twin.EntryTrain(producer, name, first, born, most, limit, version) for twin in TWINS]
    codec, events = ONE, []
    for near, number, ledger, entry in told:
        whose = producer - near if producer > 0 else producer + near
        receipt = codec.encode_receipt(whose, first + number, ledger, entry)
        events += codec.FrameReader().feed(receipt)

    def seen(train: Any) -> list[Any]:
        found: list[Any] = [train.take_receipts(events, 0)]
        found += [train.add(message) for message in messages]
        found += [train.count, train.size, train.following, train.take_receipts(events, 0)]
        found += [train.close(), train.close(), train.size, train.add((b"", None, None, 0, None, -1, False))]
        found += [train.frame(index) for index in range(train.count)]
        at = 0
        while at < len(events):
            taken = train.take_receipts(events, at)
            found.append(taken)
            at += taken or 1
        if train.landed < train.count:
            train.land(5, 6)
        found += [train.place(index) for index in range(train.landed)]
        frames.append(train.close())
        train.drop()
        return [*found, train.count, train.size, train.close()]

    frames: list[bytes] = []

    ours, *others = map(seen, trains)
    assert all(other == ours for other in others)
    sent = codec.FrameReader().feed(frames[0])
    taken = [message for message, index in zip(messages, ours[1:], strict=False) if index >= 0]
    assert [bytes(event[8].payload) for event in sent] == [message[0] for message in taken]
    assert [event[2] for event in sent] == list(range(first, first + len(taken)))
    for event, (_, key, _, born_at, ordering_key, _, key_b64) in zip(sent, taken, strict=True):
        told = {"partition_key": key, "event_time": born_at, "ordering_key": ordering_key, "schema_version": version}
        made = codec.encode_metadata(name, event[2], born, key_b64=key_b64 or None, **told)
        assert bytes(event[8].metadata) == made


@given(
    st.integers(0, 2**60),
    st.text(max_size=5),
    st.integers(0, 2**60),
    st.integers(0, 2**62),
    st.integers(0, 400),
    st.one_of(st.none(), st.binary(max_size=9)),
    st.lists(st.one_of(plain, odd), max_size=9),
    receipts,
)
def test_flights_are_written_the_same_and_take_the_same_receipts(
    producer: int, name: str, first: int, born: int, limit: int, version: Any, messages: Any, told: Any
) -> None:
    events: list[Any] = []
    for near, number, ledger, entry in told:
        whose = producer - near if producer > 0 else producer + near
        events += ONE.FrameReader().feed(ONE.encode_receipt(whose, first + number, ledger, entry))

    def seen(twin: Any) -> list[Any]:
        flight = twin.EntryFlight(producer, name, -1, limit, version)
        slots: list[Slot[Any]] = [Slot() for _ in messages]
        found: list[Any] = [
            flight.add(message, first + number, born, float(number), slot)
            for number, (message, slot) in enumerate(zip(messages, slots, strict=True))
        ]
        at = 0
        while at < len(events):
            taken = flight.take_receipts(events, at)
            found.append((taken, flight.landed_bytes, flight.count))
            at += taken or 1
        found += [(slot.result().ledger, slot.result().entry) if slot.done else None for slot in slots]
        return [*found, [part[:4] for part in flight.part()], flight.closed]

    ours, *others = map(seen, TWINS)
    assert all(other == ours for other in others)


@pytest.mark.parametrize("twin", TWINS)
def test_a_train_s_places_are_checked(twin: Any) -> None:
    train = twin.EntryTrain(1, "p", 0, 0, 100, 100)
    train.add((b"", None, None, 0, None, -1, False))
    for call, argument in ((train.frame, 0), (train.place, 0), (train.place, -1)):
        with pytest.raises(IndexError):
            call(argument)
    train.close()
    train.land(1, 2)
    assert train.place(0) == (1, 2)
    for call, argument in ((train.frame, 1), (train.frame, -1)):
        with pytest.raises(IndexError):
            call(argument)
    with pytest.raises(IndexError):
        train.land(1, 3)
    train.drop()
    with pytest.raises(IndexError):
        train.frame(0)
    assert train.place(0) == (1, 2)


@given(
    st.integers(0, 2**60),
    st.integers(1, 6),
    st.integers(1, 400),
    st.lists(st.one_of(plain, odd), max_size=9),
    st.data(),
)
def test_messages_join_a_batch_the_same(first: int, most: int, size: int, messages: Any, data: st.DataObject) -> None:
    steps = [data.draw(st.sampled_from(["join", "join", "stale", "add", "shut", "seal"])) for _ in messages]

    def seen(twin: Any) -> list[Any]:
        builder = twin.BatchBuilder(most, size)
        found: list[Any] = [builder.join((b"", None, None, 0, None, -1, False), 0)]
        token = builder.open(first)
        for step, item in zip(steps, messages, strict=True):
            if step == "add":
                following = builder.shut()
                found += [following, builder.add(b"in between", sequence_id=following)]
                token = builder.open(following + 1)
            elif step == "seal":
                found += [builder.shut(), builder.seal()]
                token = builder.open(first)
            elif step == "shut":
                found.append(builder.shut())
            else:
                found.append(builder.join(item, token - (step == "stale")))
            found += [builder.count, builder.size]
        return [*found, builder.shut(), builder.seal()]

    ours, *others = map(seen, TWINS)
    assert all(other == ours for other in others)


given_fields: tuple[st.SearchStrategy[Any], ...] = (
    st.one_of(st.binary(max_size=40), st.none(), st.just(bytearray(b"x"))),
    st.one_of(st.none(), st.text(max_size=5), st.just(b"bytes")),
    st.one_of(st.none(), st.just({}), st.just({"a": "b"})),
    st.one_of(st.integers(0, 2**60), st.just(True), st.just(1.5)),
    st.one_of(st.none(), st.binary(max_size=5)),
    st.one_of(st.none(), st.just(0)),
)


@given(st.integers(0, 2**60), st.lists(st.tuples(*given_fields), max_size=9), st.integers(1, 400))
def test_what_is_given_joins_as_what_is_prepared(first: int, messages: Any, size: int) -> None:
    def seen(twin: Any) -> list[Any]:
        builder, joined = twin.BatchBuilder(7, size), twin.BatchBuilder(7, size)
        door, token = twin.Door(lambda _, index: index), joined.open(first)
        door.open(builder, None, builder.open(first))
        found: list[Any] = []
        for body, key, properties, event_time, ordering_key, own_id in messages:
            found.append(door.board(body, key, properties, event_time, ordering_key, own_id, *[None] * 4))
            if found[-1] is not None:
                item = (body, key, properties, event_time, ordering_key, -1, False)
                assert joined.join(item, token) == found[-1]
        assert joined.shut() == builder.shut()
        found.append(builder.seal())
        assert joined.seal() == found[-1]
        return found

    ours, *others = map(seen, TWINS)
    assert all(other == ours for other in others)


def test_who_joins_is_written_as_if_added() -> None:
    for twin in TWINS:
        joined, added = twin.BatchBuilder(9, 999), twin.BatchBuilder(9, 999)
        token = joined.open(7)
        message = (b"body", "k\xe9y", None, 5, b"o", -1, True)
        assert [joined.join(message, token) for _ in range(9)] == [*range(8), -1]  # the last one has to be looked at
        assert joined.shut() == 15
        assert joined.join(message, token) == -1
        for number in range(8):
            added.add(b"body", "k\xe9y", None, 5, b"o", 7 + number, True)
        assert joined.seal() == added.seal()

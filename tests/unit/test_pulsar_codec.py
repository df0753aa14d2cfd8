"""The Pulsar codec's manners: bad bytes and descriptors, what a batch tells, what is refused."""

from __future__ import annotations

import gc
import pickle
import socket
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.errors import ConfigError, ProtocolError


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def stored(codec: Impl, payload: bytes = b"hello", published_at: int = 1700000000000, **options: Any) -> bytes:
    metadata = codec.pulsar.encode_metadata("p", 7, published_at, **options)
    frame = codec.pulsar.encode_send(0, 7, metadata, payload)
    (event,) = codec.pulsar.FrameReader().feed(frame)
    found: bytes = event[-1].stored
    return found


def entry_of(codec: Impl, payload: bytes = b"hello", *, ack_set: list[int] | None = None, **options: Any) -> Any:
    frame = codec.pulsar.encode_message(3, 5, 9, stored(codec, payload, **options), partition=2, ack_set=ack_set)
    ((_, entry),) = codec.pulsar.FrameReader().feed(frame)
    return entry


def batch_entry(codec: Impl, count: int = 3, *, ack_set: list[int] | None = None, **options: Any) -> Any:
    builder = codec.pulsar.BatchBuilder()
    builder.add_many([b"body-%d" % place for place in range(count)])
    payload, _ = builder.seal()
    return entry_of(codec, payload, num_messages=count, ack_set=ack_set, **options)


# ---- the frame reader


def test_a_frame_above_the_limit_is_an_error_before_any_of_it_is_there(codec: Impl) -> None:
    reader = codec.pulsar.FrameReader(1000)
    assert reader.feed(codec.pulsar.PING_FRAME + (1001).to_bytes(4, "big")) == [(codec.pulsar.PING,)]
    assert isinstance(reader.error, ProtocolError)
    assert "1001" in str(reader.error)
    assert reader.feed(codec.pulsar.PING_FRAME) == []
    assert reader.pending == 0


def test_the_limit_can_be_raised_when_the_broker_names_it(codec: Impl) -> None:
    reader = codec.pulsar.FrameReader(20)
    reader.max_frame = 2000
    assert reader.max_frame == 2000
    frame = codec.pulsar.encode_command(13, b"\x08\x01" + bytes([0x52, 90]) + bytes(90))
    assert reader.feed(frame) == [(13, frame[-94:])]
    assert reader.error is None


@pytest.mark.parametrize(
    "frame",
    [
        b"\x00\x00\x00\x03\x00\x00\x00",  # no room for the command's size
        b"\x00\x00\x00\x04\x00\x00\x00\x01",  # a command beyond its frame
        b"\x00\x00\x00\x04\x00\x00\x00\x00",  # no type
        b"\x00\x00\x00\x06\x00\x00\x00\x02\x08\x00",  # type 0
        b"\x00\x00\x00\x06\x00\x00\x00\x02\x08\xff",  # a varint that does not end
        b"\x00\x00\x00\x08\x00\x00\x00\x04\x08\x0b\x5a\x00",  # FLOW without its fields
        b"\x00\x00\x00\x06\x00\x00\x00\x02\x08\x09",  # MESSAGE without its fields
        b"\x00\x00\x00\x09\x00\x00\x00\x05\x08\x0d\x6a\x05\x08",  # a field beyond its command
    ],
)
def test_bad_bytes_are_a_state_and_no_exception(codec: Impl, frame: bytes) -> None:
    reader = codec.pulsar.FrameReader()
    assert reader.feed(codec.pulsar.PONG_FRAME + frame + codec.pulsar.PONG_FRAME) == [(codec.pulsar.PONG,)]
    assert isinstance(reader.error, ProtocolError)


def test_what_comes_into_the_vacancy_is_as_good_as_fed(codec: Impl) -> None:
    entry = stored(codec, b"x" * 300_000, num_messages=1)
    frame = codec.pulsar.encode_message(3, 5, 9, entry)
    rest = memoryview(codec.pulsar.PING_FRAME + frame + codec.pulsar.PONG_FRAME)
    reader, events = codec.pulsar.FrameReader(), []
    while rest:
        room = reader.vacancy()
        part, rest = rest[: len(room)], rest[len(room) :]
        room[: len(part)] = part
        events += reader.filled(len(part))
    assert [event[0] for event in events] == [codec.pulsar.PING, codec.pulsar.MESSAGE, codec.pulsar.PONG]
    assert events[1][1].stored == entry
    for count in (-1, len(reader.vacancy()) + 1):
        with pytest.raises(ConfigError, match="cannot have come"):
            reader.filled(count)
    reader.vacancy()[:4] = b"\xff" * 4
    assert reader.filled(4) == []
    assert isinstance(reader.error, ProtocolError)


def test_unknown_commands_are_told_with_their_bytes(codec: Impl) -> None:
    assert codec.pulsar.FrameReader().feed(codec.pulsar.encode_command(4711, b"\x08\x01")) == [(4711, b"\x08\x01")]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_can_be_fed(codec: Impl, kind: Callable[[bytes], Any]) -> None:
    assert codec.pulsar.FrameReader().feed(kind(codec.pulsar.PING_FRAME)) == [(codec.pulsar.PING,)]


def test_what_was_fed_may_change_afterwards(codec: Impl) -> None:
    frame = bytearray(codec.pulsar.encode_message(3, 5, 9, stored(codec)))
    reader = codec.pulsar.FrameReader()
    ((_, entry),) = reader.feed(frame)
    frame[:] = bytes(len(frame))
    assert entry.corrupt is None
    assert codec.pulsar.decode_messages(entry)[0].body == b"hello"


def test_checksums_are_verified_unless_told_not_to(codec: Impl) -> None:
    frame = bytearray(codec.pulsar.encode_message(3, 5, 9, stored(codec)))
    frame[-1] ^= 1
    ((_, entry),) = codec.pulsar.FrameReader().feed(frame)
    assert entry.corrupt == codec.pulsar.CHECKSUM_MISMATCH
    assert (entry.charged, entry.ledger, entry.entry) == (1, 5, 9)
    batch = codec.pulsar.decode_messages(entry)
    assert (batch.corrupt, len(batch), batch.lost) == (codec.pulsar.CHECKSUM_MISMATCH, 0, 1)
    ((_, trusted),) = codec.pulsar.FrameReader(check_crc=False).feed(frame)
    assert codec.pulsar.decode_messages(trusted)[0].body == b"helln"


# ---- the descriptor calls


def test_receive_into_reads_what_is_there(codec: Impl, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    reader = codec.pulsar.FrameReader()
    assert reader.receive_into(ours.fileno()) == ([], codec.pulsar.WOULD_BLOCK)
    theirs.sendall(codec.pulsar.PING_FRAME + codec.pulsar.PONG_FRAME[:5])
    assert reader.receive_into(ours.fileno()) == ([(codec.pulsar.PING,)], len(codec.pulsar.PING_FRAME) + 5)
    assert reader.pending == 5
    theirs.sendall(codec.pulsar.PONG_FRAME[5:])
    theirs.close()
    assert reader.receive_into(ours.fileno())[0] == [(codec.pulsar.PONG,)]
    assert reader.receive_into(ours.fileno()) == ([], 0)
    assert reader.receive_into(-1)[1] < 0


def test_a_stream_that_fills_reads_is_read_in_larger_ones(
    codec: Impl, pair: tuple[socket.socket, socket.socket]
) -> None:
    """Of large entries one read would bring half of one: a turn of the client for each, where one does for several."""
    if codec.name == "pure":
        pytest.skip("the pure reader has buffers of its own")
    ours, theirs = pair
    reader, sizes = codec.pulsar.FrameReader(), []
    theirs.sendall((codec.pulsar.PING_FRAME * 20_000)[:150_000])
    while (got := reader.receive_into(ours.fileno())[1]) > 0:
        sizes.append(got)
    assert sizes == [65536, 150_000 - 65536]


def test_a_frame_larger_than_a_read_comes_together(codec: Impl, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    theirs.setblocking(False)
    body = bytes(range(256)) * 4000
    frame = codec.pulsar.encode_message(3, 5, 9, stored(codec, body))
    reader, sent = codec.pulsar.FrameReader(), 0
    events: list[Any] = []
    while not events:
        sent += max(codec.pulsar.send_now(theirs.fileno(), [memoryview(frame)[sent:]]), 0)
        events, _ = reader.receive_into(ours.fileno())
    assert sent == len(frame)
    assert codec.pulsar.decode_messages(events[0][1])[0].body == body
    assert reader.pending == 0


def test_wait_into_waits_and_gives_up(codec: Impl, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    reader = codec.pulsar.FrameReader()
    assert reader.wait_into(ours.fileno(), 1) == ([], codec.pulsar.WOULD_BLOCK)
    theirs.sendall(codec.pulsar.PING_FRAME)
    assert reader.wait_into(ours.fileno(), -1) == ([(codec.pulsar.PING,)], len(codec.pulsar.PING_FRAME))


def test_a_bell_ends_the_waiting_and_data_goes_before_it(
    codec: Impl, pair: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = pair
    reader, (bell, ringer) = codec.pulsar.FrameReader(), socket.socketpair()
    with bell, ringer:
        ringer.sendall(b"x")
        assert reader.wait(ours.fileno(), -1, bell.fileno()) == codec.pulsar.WOULD_BLOCK
        theirs.sendall(codec.pulsar.PING_FRAME)
        assert reader.wait(ours.fileno(), -1, bell.fileno()) == 0


def test_send_now_gathers_and_says_how_much(codec: Impl, pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    assert codec.pulsar.send_now(ours.fileno(), [b"ab", bytearray(b"cd"), memoryview(b"ef")]) == 6
    assert theirs.recv(16) == b"abcdef"
    while (sent := codec.pulsar.send_now(ours.fileno(), [bytes(1 << 20)])) > 0:
        assert sent <= 1 << 20
    assert sent == codec.pulsar.WOULD_BLOCK
    theirs.close()
    assert codec.pulsar.send_now(ours.fileno(), [b"x"]) < 0
    with pytest.raises(TypeError):
        codec.pulsar.send_now(ours.fileno(), ["text"])


# ---- entries and batches


def test_permits_are_charged_for_what_is_not_acknowledged(codec: Impl) -> None:
    assert batch_entry(codec, 70).charged == 70
    assert batch_entry(codec, 70, ack_set=[-1, -1]).charged == 70
    assert batch_entry(codec, 70, ack_set=[-1]).charged == 64  # trailing zero words are left out
    assert batch_entry(codec, 70, ack_set=[0b101]).charged == 2
    assert entry_of(codec).charged == 1


def test_the_permits_that_a_broker_names_count(codec: Impl) -> None:
    """Field 6 of CommandMessage, as PIP-491 proposes it."""
    body = b"\x08\x03\x12\x04\x08\x05\x10\x09\x30\x02"
    base = codec.pulsar.encode_command(9, body)[8:]
    rest = stored(codec)
    sizes = (4 + len(base) + len(rest)).to_bytes(4, "big") + len(base).to_bytes(4, "big")
    ((_, entry),) = codec.pulsar.FrameReader().feed(sizes + base + rest)
    batch = codec.pulsar.decode_messages(entry)
    assert (entry.charged, len(batch), batch.lost) == (2, 1, 1)


def test_a_batch_is_a_sequence(codec: Impl) -> None:
    batch = codec.pulsar.decode_messages(batch_entry(codec))
    assert len(batch) == 3
    assert [message.body for message in batch] == [b"body-0", b"body-1", b"body-2"]
    assert batch[-1].body == b"body-2"
    assert [message.body for message in batch[1:]] == [b"body-1", b"body-2"]
    assert [message.body for message in batch[::-2]] == [b"body-2", b"body-0"]
    for place in (3, -4):
        with pytest.raises(IndexError):
            batch[place]
    assert batch[0].entry is batch[1].entry is batch.entry


def test_messages_outlive_their_batch(codec: Impl) -> None:
    message = codec.pulsar.decode_messages(batch_entry(codec))[1]
    gc.collect()
    assert (message.body, message.batch_index, message.published_at) == (b"body-1", 1, 1700000000000)
    assert message.producer_name == "p"


def test_the_engine_marks_an_entry(codec: Impl) -> None:
    entry = entry_of(codec)
    assert (entry.topic, entry.epoch) == (None, 0)
    entry.topic, entry.epoch = "persistent://public/default/t", 4
    (message,) = codec.pulsar.decode_messages(entry)
    assert message.topic == "persistent://public/default/t"
    assert message.entry.epoch == 4


def test_indexes_count_back_from_the_entrys_last(codec: Impl) -> None:
    frame = codec.pulsar.encode_message(3, 5, 9, batch_entry(codec).stored, broker_timestamp=17, broker_index=41)
    ((_, entry),) = codec.pulsar.FrameReader().feed(frame)
    assert (entry.broker_timestamp, entry.broker_index) == (17, 41)
    assert [message.index for message in codec.pulsar.decode_messages(entry)] == [39, 40, 41]
    assert codec.pulsar.decode_messages(entry_of(codec))[0].index is None


def test_ids_tell_where_a_message_lies(codec: Impl) -> None:
    first, second = codec.pulsar.decode_messages(batch_entry(codec, 2))
    assert first.message_id == codec.pulsar.MessageId(5, 9, 2, 0)
    assert (second.message_id.batch_index, second.message_id.batch_size) == (1, 2)
    assert first.message_id < second.message_id < codec.pulsar.LATEST
    assert first.message_id > codec.pulsar.EARLIEST
    alone = codec.pulsar.decode_messages(entry_of(codec))[0].message_id
    assert (alone.batch_index, alone.batch_size) == (-1, 0)
    assert {first.message_id: 1}[codec.pulsar.MessageId(5, 9, 2, 0, 99)] == 1
    assert first.message_id != (5, 9, 2, 0)
    with pytest.raises(TypeError):
        first.message_id < 3  # noqa: B015
    with pytest.raises(AttributeError):
        first.message_id.ledger = 7


def test_ids_of_a_run_in_a_batch(codec: Impl) -> None:
    make = codec.pulsar.MessageId
    found = make.of_batch(1 << 40, 5, -1, 3, 6, 10)
    assert found == [make(1 << 40, 5, -1, index, 10) for index in (3, 4, 5)]
    assert [(one.batch_size, one.first_chunk, one.ok) for one in found] == [(10, None, True)] * 3
    assert make.of_batch(1, 5, 2, 4, 4, 10) == []
    assert not any(map(gc.is_tracked, found)) or make.__module__.startswith("mqclient._pure")


def test_a_chunked_id_keeps_its_first(codec: Impl) -> None:
    first = codec.pulsar.MessageId(5, 9)
    last = codec.pulsar.MessageId(5, 11, 2, -1, 0, first)
    again = codec.pulsar.MessageId.from_bytes(last.to_bytes())
    assert again == last
    assert again.first_chunk == first
    assert pickle.loads(pickle.dumps(last)).first_chunk == first
    for data in (b"", b"\x08\x01", b"\x08\x01\x10", last.to_bytes()[:-1]):
        with pytest.raises(ProtocolError):
            codec.pulsar.MessageId.from_bytes(data)


def test_keys_given_as_bytes_come_back_as_bytes(codec: Impl) -> None:
    (text,) = codec.pulsar.decode_messages(entry_of(codec, partition_key="a2V5"))
    assert (text.key, text.key_bytes) == ("a2V5", b"a2V5")
    (raw,) = codec.pulsar.decode_messages(entry_of(codec, partition_key="a2V5", key_b64=True))
    assert (raw.key, raw.key_bytes) == ("a2V5", b"key")
    (wrong,) = codec.pulsar.decode_messages(entry_of(codec, partition_key="a2V", key_b64=True))
    assert wrong.key_bytes == b"a2V"
    (none,) = codec.pulsar.decode_messages(entry_of(codec))
    assert (none.key, none.key_bytes) == (None, None)
    (null,) = codec.pulsar.decode_messages(entry_of(codec, partition_key="x", null_key=True))
    assert null.key is None


def test_text_that_is_not_utf8_is_shown_all_the_same(codec: Impl) -> None:
    metadata = codec.pulsar.encode_metadata("p", 0, 0) + b"\x32\x02\xff\xfe"
    (event,) = codec.pulsar.FrameReader().feed(codec.pulsar.encode_send(0, 0, metadata, b""))
    (message,) = codec.pulsar.decode_messages(event[-1])
    assert message.key == "\ufffd\ufffd"
    _, offsets, data = message_columns(codec, event[-1])["key"]
    assert bytes(data).decode() == "\ufffd\ufffd"
    assert bytes(offsets)[4:] == (6).to_bytes(4, "little")


def message_columns(codec: Impl, entry: Any) -> Any:
    return codec.pulsar.decode_messages(entry).columns()


# ---- compression and encryption


def inflate(kind: int, data: memoryview, limit: int) -> bytes:
    assert kind == 2
    opener = zlib.decompressobj()
    found = opener.decompress(data, limit)
    if opener.unconsumed_tail:
        raise ProtocolError("more than announced")
    return found


def compressed(codec: Impl, body: bytes, said: int) -> Any:
    return entry_of(codec, zlib.compress(body), compression=2, uncompressed_size=said)


def test_compressed_bodies_are_opened_by_what_is_handed_in(codec: Impl) -> None:
    (message,) = codec.pulsar.decode_messages(compressed(codec, b"x" * 99, 99), decompress=inflate)
    assert (message.body, message.compression) == (b"x" * 99, 0)


def test_without_a_way_to_open_it_a_body_stays_as_stored_and_says_so(codec: Impl) -> None:
    entry = compressed(codec, b"x" * 99, 99)
    (message,) = codec.pulsar.decode_messages(entry)
    assert (message.body, message.compression, message.encrypted) == (bytes(entry.payload), 2, False)


def test_a_bomb_stops_at_the_limit(codec: Impl) -> None:
    asked: list[int] = []

    def count(kind: int, data: memoryview, limit: int) -> bytes:
        asked.append(limit)
        return inflate(kind, data, limit)

    batch = codec.pulsar.decode_messages(compressed(codec, bytes(5000), 5000), decompress=count, limit=4999)
    assert (batch.corrupt, len(batch), asked) == (codec.pulsar.UNCOMPRESSED_SIZE_CORRUPTION, 0, [])
    batch = codec.pulsar.decode_messages(compressed(codec, bytes(5000), 10), decompress=count)
    assert (batch.corrupt, asked) == (codec.pulsar.DECOMPRESSION_ERROR, [10])
    batch = codec.pulsar.decode_messages(compressed(codec, b"short", 10), decompress=count)
    assert batch.corrupt == codec.pulsar.UNCOMPRESSED_SIZE_CORRUPTION


def test_a_missing_library_is_no_corruption(codec: Impl) -> None:
    def absent(kind: int, data: memoryview, limit: int) -> bytes:
        raise ConfigError("pip install mqclient[compress]")

    with pytest.raises(ConfigError):
        codec.pulsar.decode_messages(compressed(codec, b"x", 1), decompress=absent)


def test_an_encrypted_entry_is_one_message_until_decrypted(codec: Impl) -> None:
    plain = batch_entry(codec)
    entry = batch_entry(codec, encryption_param=b"iv")
    assert (entry.encrypted, entry.charged) == (True, 3)
    batch = codec.pulsar.decode_messages(entry)
    assert [message.encrypted for message in batch] == [True]
    assert batch.lost == 2
    opened = codec.pulsar.decode_messages(entry, bytes(plain.payload))
    assert [message.body for message in opened] == [b"body-0", b"body-1", b"body-2"]
    assert not any(message.encrypted for message in opened)


def test_a_batch_that_is_cut_is_corrupt_as_a_whole(codec: Impl) -> None:
    whole = batch_entry(codec)
    for cut in range(len(whole.payload)):
        batch = codec.pulsar.decode_messages(whole, bytes(whole.payload)[:cut])
        assert (batch.corrupt, len(batch), batch.lost) == (codec.pulsar.BATCH_DESERIALIZE_ERROR, 0, 3)


def test_a_batch_that_claims_too_many_costs_nothing(codec: Impl) -> None:
    entry = entry_of(codec, b"tiny", num_messages=2**31 - 1)
    batch = codec.pulsar.decode_messages(entry)
    assert (batch.corrupt, len(batch)) == (codec.pulsar.BATCH_DESERIALIZE_ERROR, 0)


# ---- writing


def test_the_builder_keeps_what_it_had_when_a_message_is_refused(codec: Impl) -> None:
    builder = codec.pulsar.BatchBuilder()
    size = builder.add(b"good")
    for wrong in (("text",), (b"x", 5), (b"x", None, {"a": 1}), (b"x", None, {1: "a"})):
        with pytest.raises((TypeError, AttributeError)):
            builder.add(*wrong)
        assert (builder.size, builder.count) == (size, 1)
    with pytest.raises(UnicodeEncodeError):
        builder.add(b"x", "\ud800")
    assert builder.seal()[1] == 1
    assert (builder.size, builder.count) == (0, 0)
    assert builder.seal() == (b"", 0)


def test_add_many_stops_at_count_and_bytes(codec: Impl) -> None:
    builder = codec.pulsar.BatchBuilder(2, 1000)
    assert builder.add_many([b"a", b"b", b"c"]) == 2
    assert builder.add_many([b"a", b"b", b"c"], 2) == 2
    builder.seal()
    assert builder.add_many([b"a", b"b", b"c"], 2) == 3
    large = codec.pulsar.BatchBuilder(10, 100)
    assert large.add_many([bytes(500), b"b"]) == 1  # one that is too large goes alone
    assert large.count == 1
    large.seal()
    assert large.add_many([bytes(60), bytes(60)]) == 1
    assert large.size <= 100


def test_a_null_value_is_not_an_empty_body(codec: Impl) -> None:
    builder = codec.pulsar.BatchBuilder()
    builder.add(None)
    builder.add(b"")
    payload, count = builder.seal()
    batch = codec.pulsar.decode_messages(entry_of(codec, payload, num_messages=count))
    assert [(message.body, message.null_value) for message in batch] == [(b"", True), (b"", False)]
    validity, _, _ = batch.columns(["body"])["body"]
    assert bytes(validity) == b"\x02"


def test_columns_are_arrows(codec: Impl) -> None:
    arrow = pytest.importorskip("pyarrow")
    builder = codec.pulsar.BatchBuilder()
    builder.add(b"a", "k1", {"x": "1", "y": "2"}, 5, b"o", 40)
    builder.add(None)
    builder.add(b"ccc", None, {"z": "ж"}, 0, None, 42)
    payload, count = builder.seal()
    batch = codec.pulsar.decode_messages(entry_of(codec, payload, num_messages=count))
    columns = batch.columns()
    assert set(columns) == set(codec.pulsar.COLUMNS)

    def array(kind: Any, parts: Any, rows: int = 3) -> list[Any]:
        buffers = [None if part is None else arrow.py_buffer(part) for part in parts]
        found: list[Any] = arrow.Array.from_buffers(kind, rows, buffers).to_pylist()
        return found

    assert array(arrow.binary(), columns["body"]) == [b"a", None, b"ccc"]
    assert array(arrow.utf8(), columns["key"]) == ["k1", None, None]
    assert array(arrow.binary(), columns["ordering_key"]) == [b"o", None, None]
    assert array(arrow.int32(), columns["batch_index"]) == [0, 1, 2]
    assert array(arrow.int64(), columns["sequence_id"]) == [40, 8, 42]
    assert array(arrow.int64(), columns["published_at"]) == [1700000000000] * 3
    assert array(arrow.int64(), columns["event_time"]) == [5, 0, 0]
    _, offsets, key_offsets, keys, value_offsets, values = columns["properties"]
    assert array(arrow.utf8(), (None, key_offsets, keys)) == ["x", "y", "z"]
    assert array(arrow.utf8(), (None, value_offsets, values)) == ["1", "2", "ж"]
    assert array(arrow.int32(), (None, offsets), 4) == [0, 2, 2, 3]
    with pytest.raises(ConfigError):
        batch.columns(["colour"])


def test_the_head_of_a_message_goes_before_what_is_stored(codec: Impl) -> None:
    told: dict[str, Any] = {"partition": 2, "redelivery_count": 3, "ack_set": [5], "broker_index": 7}
    for body in (stored(codec), memoryview(stored(codec))):
        whole = codec.pulsar.encode_message(3, 5, 9, body, **told)
        head = codec.pulsar.encode_message(3, 5, 9, body, head_only=True, **told)
        assert head + bytes(body) == whole


def test_columns_of_several_batches_are_one(codec: Impl) -> None:
    arrow = pytest.importorskip("pyarrow")

    def batch(*messages: tuple[Any, ...], **metadata: Any) -> Any:
        builder = codec.pulsar.BatchBuilder()
        for message in messages:
            builder.add(*message)
        payload, count = builder.seal()
        return codec.pulsar.decode_messages(entry_of(codec, payload, num_messages=count, **metadata))

    first = batch((b"a", "k1", {"x": "1"}), (None,))
    second = batch((b"ccc",), published_at=1700000000001)
    third = batch(*[(b"%d" % number, None, {"n": str(number)}) for number in range(9)])
    columns = first.columns(["body", "key", "published_at", "batch_index", "properties"], [second, third])
    kinds = {"body": arrow.binary(), "key": arrow.utf8(), "published_at": arrow.int64(), "batch_index": arrow.int32()}
    found = {
        name: arrow.Array.from_buffers(
            kind, 12, [None if part is None else arrow.py_buffer(part) for part in columns[name]]
        ).to_pylist()
        for name, kind in kinds.items()
    }
    assert found["body"] == [b"a", None, b"ccc", *[b"%d" % number for number in range(9)]]
    assert found["key"] == ["k1", *[None] * 11]
    assert found["published_at"] == [1700000000000] * 2 + [1700000000001] + [1700000000000] * 9
    assert found["batch_index"] == [0, 1, 0, *range(9)]
    assert bytes(columns["properties"][5]) == b"1012345678"
    assert list(memoryview(columns["properties"][1]).cast("i")) == [0, 1, 1, *range(1, 11)]
    assert third.columns(["key"], [second])["key"][0] == bytes(2)
    with pytest.raises(TypeError, match="not of int"):
        first.columns(None, [second, 7])


def test_columns_of_arrow_become_a_batch(codec: Impl) -> None:
    arrow = pytest.importorskip("pyarrow")
    body = arrow.array([b"zero", b"one", None, b"three"], arrow.binary())
    key = arrow.array([None, "k1", "k2", "k3"], arrow.utf8())
    columns = {"body": tuple(body.buffers()), "key": tuple(key.buffers())}
    payload, row = codec.pulsar.encode_columns(columns, 1, 4, sequence_id=100)
    assert row == 4
    batch = codec.pulsar.decode_messages(entry_of(codec, payload, num_messages=3))
    found = [(message.body, message.null_value, message.key, message.sequence_id) for message in batch]
    assert found == [(b"one", False, "k1", 100), (b"", True, "k2", 101), (b"three", False, "k3", 102)]
    first, row = codec.pulsar.encode_columns(columns, 0, 4, max_bytes=1)
    assert (row, len(first)) == (1, 10)
    for wrong in ({}, {"body": columns["body"], "colour": columns["key"]}):
        with pytest.raises(ConfigError):
            codec.pulsar.encode_columns(wrong, 0, 1)
    with pytest.raises(ConfigError):
        codec.pulsar.encode_columns(columns, 0, 5000)
    with pytest.raises(ConfigError):
        codec.pulsar.encode_columns(columns, -1, 2)


def test_what_does_not_fit_its_field_is_an_overflow(codec: Impl) -> None:
    with pytest.raises(OverflowError):
        codec.pulsar.encode_flow(1 << 64, 1)
    with pytest.raises(OverflowError):
        codec.pulsar.encode_send(0, -(1 << 63) - 1, b"", b"")


# ---- memory


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc/self/statm")
@pytest.mark.timeout(3600)
def test_memory_does_not_grow_with_what_was_decoded(codec: Impl, scale: str) -> None:
    """10^8 messages in the soak, and everything of them touched at times."""
    if codec.name == "pure":
        total = {"test": 20_000, "ci": 100_000, "soak": 1_000_000}[scale]
    else:
        total = {"test": 1_000_000, "ci": 10_000_000, "soak": 100_000_000}[scale]
    frame = codec.pulsar.encode_message(3, 5, 9, batch_entry(codec, 1000).stored)
    rich = codec.pulsar.encode_message(3, 5, 9, stored(codec, b"x", partition_key="k", properties={"a": "b"}))
    reader, builder, start = codec.pulsar.FrameReader(), codec.pulsar.BatchBuilder(), 0
    for done in range(0, total, 1000):
        ((_, entry),) = reader.feed(frame[:700]) or reader.feed(frame[700:])
        messages = list(codec.pulsar.decode_messages(entry))
        if done % 50_000 == 0:
            builder.add_many([message.body for message in messages])
            builder.seal()
            messages[0].message_id, messages[-1].key_bytes, codec.pulsar.decode_messages(entry).columns()
            ((_, one),) = reader.feed(rich)
            codec.pulsar.decode_messages(one)[0].properties  # noqa: B018
            codec.pulsar.FrameReader().feed(frame[:40] + b"\xff" * 60)
        if done == total // 10 // 1000 * 1000:
            gc.collect()
            start = resident()
    del messages, entry
    gc.collect()
    assert resident() - start <= 4 << 20

"""What only strange peers write: the Pulsar codec steps over what it does not know, and refuses what is broken."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.errors import ConfigError


def stored(codec: Impl) -> bytes:
    """An entry of one message, as a broker keeps it."""
    frame = codec.pulsar.encode_send(0, 7, codec.pulsar.encode_metadata("p", 7, 1700000000000), b"hello")
    (event,) = codec.pulsar.FrameReader().feed(frame)
    found: bytes = event[-1].stored
    return found


def batch_entry(codec: Impl, payload: bytes, count: int) -> Any:
    metadata = codec.pulsar.encode_metadata("p", 7, 0, num_messages=count)
    (event,) = codec.pulsar.FrameReader().feed(codec.pulsar.encode_send(0, 7, metadata, payload))
    return codec.pulsar.Entry.from_stored(event[-1].stored, 5, 9, 2)


def three(codec: Impl) -> bytes:
    """The payload of a batch of three."""
    builder = codec.pulsar.BatchBuilder()
    builder.add_many([b"body-%d" % place for place in range(3)])
    payload: bytes = builder.seal()[0]
    return payload


def message_frame(codec: Impl, command: bytes, rest: bytes) -> bytes:
    base = codec.pulsar.encode_command(9, command)[8:]
    sizes = (4 + len(base) + len(rest)).to_bytes(4, "big") + len(base).to_bytes(4, "big")
    return bytes(sizes + base + rest)


ID = b"\x08\x03\x12\x04\x08\x05\x10\x09"
"""CommandMessage: consumer 3, message 5:9."""


@pytest.mark.parametrize(
    ("extra", "good"),
    [
        (b"\xf8\x07\x05", True),  # an unknown number
        (b"\xfa\x07\x02ab", True),  # unknown bytes
        (b"\xf9\x07" + bytes(8), True),  # unknown fixed numbers
        (b"\xfd\x07" + bytes(4), True),
        (b"\xfd\x07" + bytes(3), False),  # a cut one
        (b"\xfb\x07", False),  # a group
        (b"\x00\x00", False),  # field number 0
        (b"\xf8\xff\xff\xff\xff\x7f\x00", False),  # a tag of more than 32 bits
        (b"\x28" + b"\xff" * 9 + b"\x01", True),  # the longest varint
        (b"\x28" + b"\xff" * 10 + b"\x01", False),  # one that is longer
        (b"\x12\x02\x28\x07", True),  # a second message_id adds to the first
        (b"\x12\x01\x08", False),  # a malformed one
        (b"\x22\x02\x05\xff", False),  # a malformed ack_set
    ],
)
def test_fields_of_no_concern_are_stepped_over_and_broken_ones_are_not(codec: Impl, extra: bytes, good: bool) -> None:
    reader = codec.pulsar.FrameReader()
    events = reader.feed(message_frame(codec, ID + extra, stored(codec)))
    assert (len(events), reader.error is None) == ((1, True) if good else (0, False))
    if good:
        assert (events[0][1].consumer_id, events[0][1].ledger, events[0][1].entry) == (3, 5, 9)


def test_lists_may_be_packed(codec: Impl) -> None:
    command = ID + b"\x22\x0b\x05" + b"\xff" * 9 + b"\x01"
    ((_, entry),) = codec.pulsar.FrameReader().feed(message_frame(codec, command, stored(codec)))
    assert entry.ack_set == (5, -1)
    ack = codec.pulsar.encode_command(10, b"\x08\x03\x10\x00\x1a\x0a\x08\x05\x10\x09\x2a\x02\x05\x06\x30\x07")
    told = [(5, 9, -1, -1, (5, 6), 7)]
    assert codec.pulsar.FrameReader().feed(ack) == [(codec.pulsar.ACK, 3, 0, told, None, None, None)]


def test_compacted_batches_keep_the_indexes_that_are_listed(codec: Impl) -> None:
    payload = three(codec)
    for field in (b"\xf8\x01\x02", b"\xfa\x01\x01\x02"):  # one by one, and packed
        metadata = codec.pulsar.encode_metadata("p", 7, 0, num_messages=3) + field
        (event,) = codec.pulsar.FrameReader().feed(codec.pulsar.encode_send(0, 7, metadata, payload))
        batch = codec.pulsar.decode_messages(event[-1])
        assert ([message.batch_index for message in batch], batch.compacted) == ([2], 2)
    metadata = codec.pulsar.encode_metadata("p", 7, 0, num_messages=3) + b"\xfa\x01\x01\xff"
    (event,) = codec.pulsar.FrameReader().feed(codec.pulsar.encode_send(0, 7, metadata, payload))
    assert event[-1].corrupt == codec.pulsar.CHECKSUM_MISMATCH


def test_messages_that_compaction_marked_are_left_out(codec: Impl) -> None:
    payload = b"\x00\x00\x00\x04\x18\x00\x20\x01" + b"\x00\x00\x00\x04\x18\x01\x20\x00x"
    batch = codec.pulsar.decode_messages(batch_entry(codec, payload, 2))
    assert ([message.body for message in batch], batch.compacted) == ([b"x"], 1)


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        b"\x00\x00\x00",
        b"\x00\x00\x00\x05\x0a",  # metadata beyond the entry
        b"\x00\x00\x00\x02\x0a\x05",  # a field beyond the metadata
        b"\x00\x00\x00\x02\x58\x00",  # a batch of none
        b"\x0e\x01\x00\x00",  # a cut checksum
        b"\x0e\x02\x00\x00\x00\x09\x08",  # broker entry metadata beyond the entry
        b"\x0e\x02\x00\x00\x00\x01\x08\x00\x00\x00\x00",  # malformed broker entry metadata
    ],
)
def test_entries_that_cannot_be_read_are_corrupt_and_charge_one(codec: Impl, rest: bytes) -> None:
    reader = codec.pulsar.FrameReader()
    ((_, entry),) = reader.feed(message_frame(codec, ID, rest))
    assert reader.error is None
    assert (entry.corrupt, entry.charged, entry.num_messages) == (codec.pulsar.CHECKSUM_MISMATCH, 1, 1)
    assert (entry.properties, entry.producer_name, entry.partition_key) == ({}, "", None)
    assert codec.pulsar.decode_messages(entry).lost == 1


def test_properties_in_any_order_and_shape(codec: Impl) -> None:
    def read(*pairs: bytes) -> Any:
        fields = b"".join(b"\x22" + bytes([len(pair)]) + pair for pair in pairs)
        metadata = codec.pulsar.encode_metadata("p", 7, 0) + fields
        (event,) = codec.pulsar.FrameReader().feed(codec.pulsar.encode_send(0, 7, metadata, b""))
        (message,) = codec.pulsar.decode_messages(event[-1])
        assert message.properties == event[-1].properties
        return message.properties

    assert read(b"\x0a\x01k\x12\x01v", b"\x12\x01w\x0a\x01l") == {"k": "v", "l": "w"}
    assert read(b"\x0a\x01k\x12\x01v", b"\x0a\x01k\x12\x01w") == {"k": "w"}
    assert read(b"\x0a\x01k", b"") == {"k": "", "": ""}
    assert read(b"\x0a\x01k\x12\x01v", b"\x0a\x05k") == {}


def test_nothing_of_an_entry_can_be_pickled_but_its_ids(codec: Impl) -> None:
    entry = batch_entry(codec, three(codec), 3)
    (message, *_) = codec.pulsar.decode_messages(entry)
    assert "5:9" in repr(entry)
    assert "5:9:0" in repr(message)
    for it in (entry, message):
        with pytest.raises(TypeError):
            pickle.dumps(it)
    assert repr(pickle.loads(pickle.dumps(message.message_id))) == "MessageId(5, 9, 2, 0)"


def test_an_item_may_bring_its_own_sequence_id_and_flags(codec: Impl) -> None:
    builder = codec.pulsar.BatchBuilder()
    builder.add_many([b"a", (b"b", "k", None, 5, b"o", 77, True), (None, "k", None, 0, None, -1, False, True)], 0, 10)
    payload, count = builder.seal()
    a, b, c = codec.pulsar.decode_messages(batch_entry(codec, payload, count))
    assert [message.sequence_id for message in (a, b, c)] == [10, 77, 12]
    assert (b.event_time, b.ordering_key, b.key) == (5, b"o", "k")
    assert (c.key, c.null_value, c.body) == (None, True, b"")


def offsets_of(*ends: int) -> bytes:
    return b"".join(end.to_bytes(4, "little", signed=True) for end in ends)


def test_columns_with_everything_become_a_batch(codec: Impl) -> None:
    columns = {
        "body": (None, offsets_of(0, 1, 3), b"abb"),
        "ordering_key": (b"\x01", offsets_of(0, 1, 1), b"o"),
        "event_time": (None, (7).to_bytes(8, "little") + bytes(8)),
        "properties": (b"\x01", offsets_of(0, 2, 3), offsets_of(0, 1, 2, 3), b"xyz", offsets_of(0, 1, 1, 2), b"12"),
    }
    payload, row = codec.pulsar.encode_columns(columns, 0, 2)
    assert row == 2
    a, b = codec.pulsar.decode_messages(batch_entry(codec, payload, 2))
    assert (a.body, a.ordering_key, a.event_time, a.properties) == (b"a", b"o", 7, {"x": "1", "y": ""})
    assert (b.body, b.ordering_key, b.event_time, b.properties) == (b"bb", None, 0, {})


@pytest.mark.parametrize(
    "wrong",
    [
        {"body": (None, offsets_of(0, 4), b"abc")},  # beyond the data
        {"body": (None, offsets_of(2, 1), b"abc")},  # falling
        {"body": (None, offsets_of(-1, 1), b"abc")},
        {"body": (None, offsets_of(0), b"abc")},  # no end
        {"body": (b"", offsets_of(0, 1), b"abc")},  # no validity bit
        {"event_time": (None, bytes(7))},
        {"properties": (b"", offsets_of(0, 1), offsets_of(0, 1), b"x", offsets_of(0, 1), b"1")},
        {"properties": (None, offsets_of(0, 2), offsets_of(0, 1), b"x", offsets_of(0, 1), b"1")},  # beyond the keys
    ],
)
def test_columns_that_point_outside_are_refused(codec: Impl, wrong: dict[str, Any]) -> None:
    columns = {"body": (None, offsets_of(0, 1), b"a"), **wrong}
    with pytest.raises(ConfigError):
        codec.pulsar.encode_columns(columns, 0, 1)

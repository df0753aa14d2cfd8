"""Frames between real clients and a real broker (`pulsar/README.md`): both twins read what the recording says, cold
commands through the schema, and write the same bytes again.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mqclient import _schema
from mqclient.errors import ProtocolError

HERE = Path(__file__).parent / "pulsar"
SCENARIOS = sorted(path.stem for path in HERE.glob("*.json") if path.stem != "index")
TYPES = _schema.enum("BaseCommand.Type")
NAMES = {number: name for name, number in TYPES.items()}


class Frame(NamedTuple):
    """One frame of a recording: its bytes and what they are said to mean."""

    raw: bytes
    said: dict[str, Any]


@cache
def recording(scenario: str) -> dict[str, list[Frame]]:
    """The frames of each file of a scenario, in order."""
    described = json.loads((HERE / f"{scenario}.json").read_text())
    files: dict[str, list[Frame]] = {name: [] for name in described["files"]}
    for said in described["frames"]:
        data = (HERE / said["file"]).read_bytes()
        files[said["file"]].append(Frame(data[said["offset"] : said["offset"] + said["length"]], said))
    return files


def frames_of(kind: str) -> Iterator[Frame]:
    for scenario in SCENARIOS:
        for frames in recording(scenario).values():
            yield from (frame for frame in frames if frame.said["type"] == kind)


def decompress(kind: int, data: memoryview, limit: int) -> bytes:
    """As the engine's, with no more care than a test needs."""
    if kind == 2:
        return zlib.decompress(data)
    if kind == 1:
        return bytes(pytest.importorskip("lz4.block").decompress(bytes(data), uncompressed_size=limit))
    if kind == 3:
        return bytes(pytest.importorskip("zstandard").decompress(bytes(data), max_output_size=limit))
    if kind == 4:
        return bytes(pytest.importorskip("cramjam").snappy.decompress_raw(bytes(data)))
    raise ProtocolError(f"compression {kind}")


def shown(message: Any) -> dict[str, Any]:
    """A protobuf message in the recording's notation."""
    return {field.name: _shown(field, value) for field, value in message.ListFields()}


def _shown(field: Any, value: Any) -> Any:
    if field.is_repeated if hasattr(type(field), "is_repeated") else field.label == field.LABEL_REPEATED:
        return [_shown_one(field, item) for item in value]
    return _shown_one(field, value)


def _shown_one(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return shown(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    return blob(value) if isinstance(value, bytes) else value


def blob(value: bytes) -> str:
    return "hex:" + value.hex() if len(value) <= 64 else f"hex:{value[:32].hex()}… ({len(value)} bytes)"


def wire(value: int) -> int:
    """As the recording writes it: unsigned."""
    return value % (1 << 64)


def put(fields: dict[str, Any], name: str, value: Any, absent: Any) -> None:
    if value != absent:
        fields[name] = value


def message_id(ledger: int, entry: int, partition: int | None, words: Any, batch_size: int) -> dict[str, Any]:
    found: dict[str, Any] = {"ledgerId": wire(ledger), "entryId": wire(entry)}
    put(found, "partition", partition, None)
    put(found, "ack_set", list(words or ()), [])
    put(found, "batch_size", batch_size, 0)
    return found


def hot_fields(event: tuple[Any, ...], said: dict[str, Any]) -> dict[str, Any]:
    """The fields of a hot command from its event, those left out that hold their default and were not said."""
    kind = NAMES[event[0]]
    found: dict[str, Any] = {}
    if kind == "FLOW":
        found = {"consumer_id": event[1], "messagePermits": event[2]}
    elif kind == "SEND_RECEIPT":
        _, producer, sequence, ledger, entry, highest = event
        found = {
            "producer_id": producer,
            "sequence_id": sequence,
            "message_id": message_id(ledger, entry, None, None, 0),
            "highest_sequence_id": wire(highest),
        }
    elif kind == "SEND":
        _, producer, sequence, count, highest, is_chunk, marker, txn, _ = event
        found = {"producer_id": producer, "sequence_id": sequence}
        put(found, "num_messages", count, said.get("num_messages", 1) if "num_messages" not in said else None)
        put(found, "highest_sequence_id", highest, None if "highest_sequence_id" in said else 0)
        put(found, "is_chunk", is_chunk, False)
        put(found, "marker", marker, False)
        if txn is not None:
            found.update(txnid_most_bits=txn[0], txnid_least_bits=txn[1])
    elif kind == "ACK":
        _, consumer, ack_type, ids, wrong, txn, request = event
        found = {"consumer_id": consumer, "ack_type": ("Individual", "Cumulative")[ack_type]}
        found["message_id"] = [message_id(a, b, None, words, size) for a, b, _, _, words, size in ids]
        put(found, "validation_error", wrong, None)
        put(found, "request_id", request, None)
        if txn is not None:
            found.update(txnid_most_bits=txn[0], txnid_least_bits=txn[1])
    elif kind == "MESSAGE":
        entry = event[1]
        found = {"consumer_id": entry.consumer_id}
        found["message_id"] = message_id(entry.ledger, entry.entry, entry.partition, None, 0)
        put(found, "redelivery_count", entry.redelivery_count, 0)
        put(found, "ack_set", list(entry.ack_set or ()), [])
        put(found, "consumer_epoch", entry.consumer_epoch, None)
    return found


def check_entry(entry: Any, said: dict[str, Any]) -> None:
    """What is read by hand is what protobuf reads, and that is what the recording says."""
    told = dict(said["metadata"])
    crc = told.pop("crc32c", None)
    broker = told.pop("broker_entry_metadata", None)
    read: Any = _schema.message("MessageMetadata").FromString(entry.metadata)
    assert shown(read) == told
    assert len(entry.payload) == said["payload_length"]
    if crc is not None:
        assert entry.stored[:2] == b"\x0e\x01"
        assert entry.stored[2:6].hex() == crc
    assert (entry.corrupt is None) is (crc != "00000000")
    if broker is not None:
        assert {"broker_timestamp": entry.broker_timestamp, "index": entry.broker_index} == broker
    assert entry.producer_name == read.producer_name
    assert entry.sequence_id == read.sequence_id
    assert entry.published_at == read.publish_time
    assert entry.properties == {pair.key: pair.value for pair in read.properties}
    assert entry.batched is read.HasField("num_messages_in_batch")
    assert entry.num_messages == read.num_messages_in_batch
    assert (entry.compression, entry.uncompressed_size) == (read.compression, read.uncompressed_size)
    assert entry.encrypted is bool(read.encryption_keys)
    assert (entry.event_time, entry.highest_sequence_id) == (read.event_time, read.highest_sequence_id)
    for name, field in OPTIONAL.items():
        assert getattr(entry, name) == (getattr(read, field) if read.HasField(field) else None), name
    txn = (read.txnid_most_bits, read.txnid_least_bits) if read.HasField("txnid_most_bits") else None
    assert entry.txn == txn


OPTIONAL = {
    "partition_key": "partition_key",
    "ordering_key": "ordering_key",
    "schema_version": "schema_version",
    "replicated_from": "replicated_from",
    "uuid": "uuid",
    "chunk_id": "chunk_id",
    "num_chunks": "num_chunks_from_msg",
    "total_chunk_size": "total_chunk_msg_size",
    "deliver_at": "deliver_at_time",
    "marker_type": "marker_type",
}


def written_again(codec: Any, event: tuple[Any, ...], frame: Frame) -> bytes:
    """The frame, encoded from its event."""
    pulsar = codec.pulsar
    kind, said = event[0], frame.said["fields"]
    if kind == pulsar.PING:
        return bytes(pulsar.PING_FRAME)
    if kind == pulsar.PONG:
        return bytes(pulsar.PONG_FRAME)
    if kind == pulsar.FLOW:
        return bytes(pulsar.encode_flow(*event[1:]))
    if kind == pulsar.SEND_RECEIPT:
        return bytes(pulsar.encode_receipt(*event[1:5], highest_sequence_id=event[5]))
    if kind == pulsar.SEND:
        _, producer, sequence, count, highest, is_chunk, marker, txn, entry = event
        options: dict[str, Any] = {"is_chunk": is_chunk, "marker": marker, "txn": txn}
        if "num_messages" in said:
            options["num_messages"] = count
        if "highest_sequence_id" in said:
            options["highest_sequence_id"] = highest
        return bytes(pulsar.encode_send(producer, sequence, entry.metadata, entry.payload, **options))
    if kind == pulsar.ACK:
        _, consumer, ack_type, ids, wrong, txn, request = event
        told = [(ledger, entry, words, size) for ledger, entry, _, _, words, size in ids]
        return bytes(
            pulsar.encode_ack(
                consumer, told, cumulative=ack_type == 1, validation_error=wrong, txn=txn, request_id=request
            )
        )
    if kind == pulsar.MESSAGE:
        entry = event[1]
        return bytes(
            pulsar.encode_message(
                entry.consumer_id,
                entry.ledger,
                entry.entry,
                entry.stored,
                partition=entry.partition,
                redelivery_count=entry.redelivery_count,
                ack_set=entry.ack_set,
                consumer_epoch=entry.consumer_epoch,
                broker_timestamp=entry.broker_timestamp,
                broker_index=entry.broker_index,
            )
        )
    return bytes(pulsar.encode_command(*event))


HOT = ("SEND", "SEND_RECEIPT", "MESSAGE", "ACK", "FLOW")
UNCHECKED = ("raw_unknown_producer_and_oversize", "raw_send_bad_checksum")
"""Their hand-made SENDs carry no checksum, or a wrong one: what we write carries a right one."""


def test_the_files_are_what_was_recorded() -> None:
    for scenario in SCENARIOS:
        for name, file in json.loads((HERE / f"{scenario}.json").read_text())["files"].items():
            assert hashlib.sha256((HERE / name).read_bytes()).hexdigest() == file["sha256"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_frame_reads_as_the_recording_says_and_is_written_the_same(codec: Any, scenario: str) -> None:
    for name, frames in recording(scenario).items():
        reader = codec.pulsar.FrameReader()
        events = reader.feed((HERE / name).read_bytes())
        assert reader.error is None
        assert reader.pending == 0
        assert [NAMES[event[0]] for event in events] == [frame.said["type"] for frame in frames]
        for event, frame in zip(events, frames, strict=True):
            kind, said = frame.said["type"], frame.said["fields"]
            if kind in HOT:
                assert hot_fields(event, said) == said
            elif kind not in ("PING", "PONG"):
                assert shown(_schema.read_command(*event)) == said
            if kind in ("SEND", "MESSAGE"):
                check_entry(event[-1], frame.said)
            if kind != "SEND" or scenario not in UNCHECKED:
                assert written_again(codec, event, frame) == frame.raw


@pytest.mark.parametrize("kind", ["SEND", "MESSAGE"])
def test_every_entry_gives_its_messages(codec: Any, kind: str) -> None:
    seen = 0
    for frame in frames_of(kind):
        (event,) = codec.pulsar.FrameReader().feed(frame.raw)
        entry = event[-1]
        batch = codec.pulsar.decode_messages(entry, decompress=decompress)
        assert entry.charged == len(batch) + batch.compacted + batch.lost
        if entry.corrupt is not None:
            assert (batch.corrupt, len(batch)) == (codec.pulsar.CHECKSUM_MISMATCH, 0)
            continue
        assert batch.corrupt is None
        if entry.encrypted:
            assert [message.encrypted for message in batch] == [True]
            assert batch[0].body == bytes(entry.payload)
            continue
        assert batch.lost == 0
        seen += len(batch)
        if entry.batched:
            payload = entry.payload
            if entry.compression:
                payload = memoryview(decompress(entry.compression, payload, entry.uncompressed_size))
            check_batch(batch, payload)
        elif not entry.compression:
            assert batch[0].body == bytes(entry.payload)
    assert seen > 100


def check_batch(batch: Any, payload: memoryview) -> None:
    """The batch, against a loop over the payload with protobuf's own reading of the metadata."""
    single_type = _schema.message("SingleMessageMetadata")
    given = {message.batch_index: message for message in batch}
    at = 0
    for index in range(batch.entry.num_messages):
        size = int.from_bytes(payload[at : at + 4], "big")
        single: Any = single_type.FromString(bytes(payload[at + 4 : at + 4 + size]))
        start, at = at + 4 + size, at + 4 + size + single.payload_size
        if index not in given:
            continue
        message = given.pop(index)
        assert message.body == bytes(payload[start:at])
        assert message.key == (single.partition_key if single.HasField("partition_key") else None)
        assert message.properties == {pair.key: pair.value for pair in single.properties}
        assert message.event_time == single.event_time
        assert message.null_value is single.null_value
        if single.HasField("sequence_id"):
            assert message.sequence_id == single.sequence_id
        assert message.message_id.batch_index == index
    assert at == len(payload)
    assert not given


def test_a_batch_is_built_again_byte_for_byte(codec: Any) -> None:
    built = 0
    for frame in frames_of("SEND"):
        (event,) = codec.pulsar.FrameReader().feed(frame.raw)
        entry = event[-1]
        if not entry.batched or entry.encrypted or entry.compression:
            continue
        builder = codec.pulsar.BatchBuilder()
        for message in codec.pulsar.decode_messages(entry):
            builder.add(
                None if message.null_value else message.body,
                message.key,
                message.properties,
                message.event_time,
                message.ordering_key,
                message.sequence_id,
            )
        payload, count = builder.seal()
        assert count == entry.num_messages
        if b"\x30\x00" in bytes(entry.payload)[:64]:
            continue  # Java writes partition_key_b64_encoded = false; we leave it out
        assert payload == bytes(entry.payload)
        built += 1
    assert built >= 7


def test_partly_acknowledged_batches_leave_out_what_is_acknowledged(codec: Any) -> None:
    frames = [frame for frame in frames_of("MESSAGE") if frame.said["fields"].get("ack_set")]
    assert frames
    for frame in frames:
        ((_, entry),) = codec.pulsar.FrameReader().feed(frame.raw)
        bits = sum(wire(word) << 64 * place for place, word in enumerate(frame.said["fields"]["ack_set"]))
        left = [index for index in range(entry.num_messages) if bits >> index & 1]
        batch = codec.pulsar.decode_messages(entry)
        assert [message.batch_index for message in batch] == left
        assert entry.charged == len(left)


def test_compaction_leaves_out_what_it_took(codec: Any) -> None:
    (frame,) = [frame for frame in frames_of("MESSAGE") if "compacted_batch_indexes" in frame.said["metadata"]]
    ((_, entry),) = codec.pulsar.FrameReader().feed(frame.raw)
    batch = codec.pulsar.decode_messages(entry)
    assert [message.batch_index for message in batch] == [8, 9]
    assert batch.compacted == 8
    kept = codec.pulsar.decode_messages(entry, keep_compacted=True)
    assert [message.compacted_out for message in kept] == [True] * 8 + [False] * 2
    assert kept.compacted == 0


def test_chunks_of_one_message_fit_together(codec: Any) -> None:
    chunks = [codec.pulsar.FrameReader().feed(frame.raw)[0][1] for frame in frames_of("MESSAGE")]
    chunks = [entry for entry in chunks if entry.uuid == "standalone-0-11-0"]
    assert [(entry.chunk_id, entry.num_chunks, entry.charged) for entry in chunks] == [(0, 3, 1), (1, 3, 1), (2, 3, 1)]
    whole = b"".join(bytes(entry.payload) for entry in chunks)
    assert len(whole) == chunks[0].total_chunk_size == 230400
    (message,) = codec.pulsar.decode_messages(chunks[-1], whole)
    assert message.body == whole
    assert message.properties == {"big": "yes"}


def test_the_hashes_and_frames_of_the_fact_sheet(codec: Any) -> None:
    pulsar = codec.pulsar
    metadata = pulsar.encode_metadata("p", 0, 1700000000000)
    hello = pulsar.encode_send(0, 0, metadata, b"hello")
    assert pulsar.PING_FRAME.hex() == "00000009000000050812920100"
    assert pulsar.PONG_FRAME.hex() == "000000090000000508139a0100"
    assert pulsar.encode_flow(0, 1000).hex() == "0000000d00000009080b5a05080010e807"
    assert pulsar.encode_ack(0, [(5, 7)]).hex() == "000000120000000e080a520a080010001a0408051007"
    assert pulsar.encode_ack(0, [(5, 7, (13,))]).hex() == "0000001400000010080a520c080010001a0608051007280d"
    assert metadata.hex() == "0a017010001880d095ffbc31"
    assert hello.hex() == (
        "00000027000000080806320408001000"  # sizes and command
        "0e01cf85822f0000000c0a017010001880d095ffbc3168656c6c6f"
    )
    builder = pulsar.BatchBuilder()
    builder.add(b"a")
    builder.add(b"b")
    payload, count = builder.seal()
    assert payload.hex() == "0000000218016100000002180162"
    batch = pulsar.encode_metadata("p", 0, 1700000000000, num_messages=count)
    assert pulsar.encode_send(0, 0, batch, payload, num_messages=count).hex() == (
        "000000340000000a08063206080010001802"  # sizes and command
        "0e0124a5e30d0000000e0a017010001880d095ffbc3158020000000218016100000002180162"
    )
    stored = hello[16:]
    message = pulsar.encode_message(0, 5, 7, stored, broker_timestamp=1700000000001, broker_index=41)
    assert message.hex() == (
        "0000003a0000000c08094a080800120408051007"  # sizes and command
        "0e02000000090881d095ffbc3110290e01cf85822f0000000c0a017010001880d095ffbc3168656c6c6f"
    )
    assert pulsar.LATEST.to_bytes().hex() == "08ffffffffffffffff7f10ffffffffffffffff7f"
    assert pulsar.EARLIEST.to_bytes().hex() == "08ffffffffffffffffff0110ffffffffffffffffff01"

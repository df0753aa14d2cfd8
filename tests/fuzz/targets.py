"""The decoders under fuzz: what each is fed from, and what it may answer to bad bytes."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from mqclient._impl import Impl, select
from mqclient.errors import ProtocolError
from tests.fuzz.mutator import Repair

VECTORS = Path(__file__).resolve().parent.parent / "vectors"
LIMIT = 1 << 20


class Target(NamedTuple):
    """One decoder. `run` raises nothing, whatever the bytes are; a documented error is caught where it may occur."""

    seeds: Callable[[], list[bytes]]
    run: Callable[[Impl, bytes, Random], None]
    repair: Repair | None = None


READABLE: dict[type, tuple[str, ...]] = {}


def readable(kind: type) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if not name.startswith("_") and not callable(getattr(kind, name)))


def touch(thing: object) -> None:
    """Read everything that can be read: most of it is decoded only then."""
    kind = type(thing)
    if kind not in READABLE:
        READABLE[kind] = readable(kind)
    for name in READABLE[kind]:
        getattr(thing, name)
    repr(thing)


def slices(data: bytes, random: Random) -> Iterator[bytes]:
    """A stream arrives as it likes."""
    start = 0
    while start < len(data):
        stop = start + (len(data) if random.random() < 0.5 else random.randrange(1, 200))
        yield data[start:stop]
        start = stop


def feed(reader: Any, data: bytes, random: Random) -> list[Any]:
    """Everything that comes out; after an error nothing may come any more."""
    out = [thing for part in slices(data, random) for thing in reader.feed(part)]
    if reader.error is not None:
        assert isinstance(reader.error, ProtocolError), reader.error
        assert list(reader.feed(data)) == []
    assert 0 <= reader.pending <= max(len(data), 1 << 24)
    return out


def decompress(kind: int, data: memoryview, limit: int, /) -> bytes:
    """zlib under whatever number it has; the rest is the business of core/compress.py."""
    try:
        out = zlib.decompressobj().decompress(data, limit + 1)
    except zlib.error as error:
        raise ProtocolError(str(error)) from error
    if len(out) > limit:
        raise ProtocolError(f"more than {limit} bytes after decompression")
    return out


# ------------------------------------------------------------------------------------------------------- remoting


def remoting_frames() -> list[bytes]:
    return [path.read_bytes() for path in sorted((VECTORS / "rocketmq").glob("*.frame.bin"))]


@functools.cache
def remoting_bodies() -> list[bytes]:
    """Bodies of pull replies, bare ones and those in recorded frames, and what brokers answer as one message."""
    bare = [path.read_bytes() for path in sorted((VECTORS / "rocketmq").glob("pull-body-*.bin"))]
    reader = select("pure").remoting.FrameReader()
    framed = [frame.body for frame in reader.feed(b"".join(remoting_frames()))]
    return [body for body in bare + framed if body[4:7] == b"\xda\xa3\x20"]


def whole_frame(data: bytearray) -> None:
    data[:4] = (max(len(data) - 4, 0)).to_bytes(4, "big")


def whole_record(data: bytearray) -> None:
    """The first stored message covers what is there, and its checksum is right."""
    data[:4] = len(data).to_bytes(4, "big")


def run_remoting_feed(impl: Impl, data: bytes, random: Random) -> None:
    for frame in feed(impl.remoting.FrameReader(LIMIT), data, random):
        touch(frame)
        frame.field("topic")
        frame.field("\u00e9")


def run_remoting_messages(impl: Impl, data: bytes, random: Random) -> None:
    tags = ["Tag1", "TagA"] if random.random() < 0.2 else None
    helper = decompress if random.random() < 0.8 else None
    try:
        batch = impl.remoting.decode_messages(
            data,
            tags,
            check_crc=random.random() < 0.2,
            decompress=helper,
            limit=LIMIT,
            retry_topic=random.random() < 0.2,
        )
    except ProtocolError:
        return
    touch(batch)
    for message in batch:
        touch(message)
        message.property("KEYS")
    batch.columns()


def run_properties(impl: Impl, data: bytes, random: Random) -> None:
    impl.remoting.decode_properties(data)


def run_split_batch(impl: Impl, data: bytes, random: Random) -> None:
    try:
        parts = impl.remoting.split_batch(data)
    except ProtocolError:
        return
    assert sum(len(body) + len(properties) for _, body, properties in parts) <= len(data)


def property_texts() -> list[bytes]:
    batches = (select("pure").remoting.decode_messages(body) for body in remoting_bodies())
    return [batch[0].properties_text for batch in batches if len(batch)]


def send_bodies() -> list[bytes]:
    builder = select("pure").remoting.BatchBuilder()
    out = []
    for count in (1, 2, 9):
        for index in range(count):
            builder.add(b"body" * index, b"TAGS\x01a\x02KEYS\x01k", index)
        out.append(builder.seal())
    return out


# --------------------------------------------------------------------------------------------------------- pulsar


@functools.cache
def pulsar_frames() -> list[bytes]:
    """Every different frame shape once or a few times; streams are cut at the frames' own lengths."""
    kept: dict[tuple[bytes, int], bytes] = {}
    for path in sorted((VECTORS / "pulsar").glob("*.bin")):
        stream = path.read_bytes()
        while stream:
            size = 4 + int.from_bytes(stream[:4], "big")
            kept.setdefault((stream[8:12], size), stream[:size])
            stream = stream[size:]
    return list(kept.values())


@functools.cache
def pulsar_entries() -> list[bytes]:
    """What brokers store: checksum, metadata, payload."""
    reader = select("pure").pulsar.FrameReader()
    events = [event for frame in pulsar_frames() for event in reader.feed(frame)]
    return [event[-1].stored for event in events if event[0] in (6, 9)]


def right_checksum(data: bytearray, start: int) -> None:
    if data[start : start + 2] == b"\x0e\x01" and len(data) >= start + 6:
        crc = select("pure").digest.crc32c(bytes(data[start + 6 :]))
        data[start + 2 : start + 6] = crc.to_bytes(4, "big")


def whole_pulsar_frame(data: bytearray) -> None:
    whole_frame(data)
    right_checksum(data, 8 + int.from_bytes(data[4:8], "big"))


def whole_entry(data: bytearray) -> None:
    right_checksum(data, 0)


def use_entry(impl: Impl, entry: Any, random: Random) -> None:
    touch(entry)
    helper = decompress if random.random() < 0.8 else None
    batch = impl.pulsar.decode_messages(entry, decompress=helper, limit=LIMIT, keep_compacted=random.random() < 0.2)
    assert entry.charged == len(batch) + batch.compacted + batch.lost
    touch(batch)
    for message in batch:
        touch(message)
    batch.columns()


def run_pulsar_feed(impl: Impl, data: bytes, random: Random) -> None:
    for event in feed(impl.pulsar.FrameReader(LIMIT), data, random):
        assert isinstance(event[0], int)
        if event[0] in (6, 9):
            use_entry(impl, event[-1], random)


def run_pulsar_messages(impl: Impl, data: bytes, random: Random) -> None:
    use_entry(impl, impl.pulsar.Entry.from_stored(data, 1, 2), random)


def run_message_id(impl: Impl, data: bytes, random: Random) -> None:
    try:
        found = impl.pulsar.MessageId.from_bytes(data)
    except ProtocolError:
        return
    touch(found)
    assert impl.pulsar.MessageId.from_bytes(found.to_bytes()) == found


def message_ids() -> list[bytes]:
    make = select("pure").pulsar.MessageId
    first = make(1, 2, 3)
    return [make(1, 2).to_bytes(), make(2**40, 2**33, 7, 3, 10).to_bytes(), make(5, 6, -1, -1, 0, first).to_bytes()]


TARGETS = {
    "remoting.feed": Target(remoting_frames, run_remoting_feed, whole_frame),
    "remoting.decode_messages": Target(remoting_bodies, run_remoting_messages, whole_record),
    "remoting.decode_properties": Target(property_texts, run_properties),
    "remoting.split_batch": Target(send_bodies, run_split_batch),
    "pulsar.feed": Target(pulsar_frames, run_pulsar_feed, whole_pulsar_frame),
    "pulsar.decode_messages": Target(pulsar_entries, run_pulsar_messages, whole_entry),
    "pulsar.message_id": Target(message_ids, run_message_id),
}

"""The decoders under fuzz: what each is fed from, and what it may answer to bad bytes."""

from __future__ import annotations

import contextlib
import pickle
import socket
import zlib
from collections.abc import Callable, Iterator, Sequence
from operator import length_hint
from random import Random
from typing import Any, NamedTuple

from mqclient._impl import Impl, select
from mqclient.errors import ConfigError, ProtocolError
from mqclient.rocketmq.model import MessageQueue, Receipt
from tests.fuzz import crossing, seeds, sent, written
from tests.fuzz.mutator import Repair

LIMIT = 1 << 20
LARGE_REMOTING = select("pure").remoting.encode_frame(10, 1, body=bytes(200_000))
LARGE_PULSAR = select("pure").pulsar.encode_command(21, bytes(200_000))


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
        descriptor = getattr(kind, name)  # a class may have a faster way to some of its attributes
        if hasattr(descriptor, "__get__"):
            descriptor.__get__(thing)
    repr(thing)


def slices(data: bytes, random: Random) -> Iterator[bytes]:
    """A stream arrives as it likes."""
    start = 0
    while start < len(data):
        stop = start + (len(data) if random.random() < 0.5 else random.randrange(1, 200))
        yield data[start:stop]
        start = stop


def feed(reader: Any, data: bytes, random: Random, large: bytes) -> list[Any]:
    """Everything that comes out; after an error nothing may come any more. Now and then a large frame goes ahead, so
    that the buffer grows and moves, or the bytes come through a socket."""
    way = random.random()
    if way < 0.02:
        assert len([thing for part in slices(large, random) for thing in reader.feed(part)]) == 1
    if 0.02 <= way < 0.06:
        out = list(received(reader, data))
    else:
        out = [thing for part in slices(data, random) for thing in reader.feed(part)]
    if reader.error is not None:
        assert isinstance(reader.error, ProtocolError), reader.error
        assert list(reader.feed(data)) == []
    assert 0 <= reader.pending <= len(data)
    return out


def received(reader: Any, data: bytes) -> Iterator[Any]:
    """What the descriptor calls bring until the stream ends."""
    here, there = socket.socketpair()
    with here, there:
        here.setblocking(False)
        there.sendall(data)
        there.shutdown(socket.SHUT_WR)
        count, way = 1, len(data) % 3
        while count > 0:
            if way == 0:
                count = here.recv_into(reader.vacancy())
                things = reader.filled(count)
            elif way == 1:
                things, count = reader.receive_into(here.fileno())
            else:
                things, count = reader.wait_into(here.fileno(), 100)
            yield from things


def pick(batch: Sequence[Any], random: Random) -> None:
    """One from the front, one from the back, a part, one too far."""
    if len(batch):
        touch(batch[random.randrange(len(batch))])
        touch(batch[-1 - random.randrange(len(batch))])
    walk = iter(batch)
    assert iter(walk) is walk
    length_hint(walk)
    assert len(batch[random.randrange(3) :: 1 + random.randrange(3)]) <= len(batch)
    with contextlib.suppress(IndexError):
        batch[len(batch)]
        raise AssertionError("an index beyond the end gave something")


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


def whole_frame(data: bytearray) -> None:
    data[:4] = (max(len(data) - 4, 0)).to_bytes(4, "big")


def whole_record(data: bytearray) -> None:
    """If the first message does not end within the data, it ends where they do."""
    if int.from_bytes(data[:4], "big") > len(data):
        data[:4] = len(data).to_bytes(4, "big")


def run_remoting_feed(impl: Impl, data: bytes, random: Random) -> None:
    names = ("topic", "\u00e9", "queueId")
    for frame in feed(impl.remoting.FrameReader(LIMIT), data, random, LARGE_REMOTING):
        ids = ["id"] * random.randrange(4)
        in_place = impl.remoting.receipts(Receipt, frame, MessageQueue("t", "b", 3), ids, "SEND_OK")
        picked = frame.pick(names)
        frame.field("topic")
        frame.field("\u00e9", "none")
        touch(frame)
        assert picked == frame.pick(names) == tuple(frame.fields.get(name) for name in names)
        said = impl.remoting.receipts(Receipt, frame, MessageQueue("t", "b", 3), ids, "SEND_OK")
        assert [type(one) for one in said] == [Receipt] * len(ids)
        assert said == in_place, "of fields that are decoded, and where they lie"
        frame.field("topic")


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
        message.property("\u00e9", "none")
    pick(batch, random)
    batch.columns()


def run_properties(impl: Impl, data: bytes, random: Random) -> None:
    found = impl.remoting.decode_properties(data)
    with contextlib.suppress(ConfigError):
        assert impl.remoting.decode_properties(impl.remoting.encode_properties(found)) == found


def run_split_batch(impl: Impl, data: bytes, random: Random) -> None:
    try:
        parts = impl.remoting.split_batch(data)
    except ProtocolError:
        return
    assert sum(len(body) + len(properties) for _, body, properties in parts) <= len(data)


def run_store_batch(impl: Impl, data: bytes, random: Random) -> None:
    host = random.choice([("127.0.0.1", 1), ("::1", 2)])
    offset = random.choice([0, 7, 2**63 - 2])
    impl.remoting.is_timed(data)
    try:
        records, ends, tags = impl.remoting.store_batch(data, "topic", born_host=host, offset=offset)
    except (ProtocolError, ConfigError):
        return
    batch = impl.remoting.decode_messages(records, check_crc=True)
    assert len(ends) == len(tags) == 4 * len(batch)
    assert batch.offsets == list(range(offset, offset + len(batch)))
    assert list(memoryview(ends).cast("I"))[-1:] == [len(records)][: len(batch)]
    assert impl.remoting.offset_ids(*host, 0, ends).count(",") == max(0, len(batch) - 1)


# --------------------------------------------------------------------------------------------------------- pulsar


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
    payload = bytes(entry.payload)[1:] if random.random() < 0.05 else None  # such as after decryption
    batch = impl.pulsar.decode_messages(
        entry, payload, decompress=helper, limit=LIMIT, keep_compacted=random.random() < 0.2
    )
    assert batch.lost == max(entry.charged - len(batch) - batch.compacted, 0)
    touch(batch)
    for message in batch:
        touch(message)
    pick(batch, random)
    batch.columns(["body", "key"] if random.random() < 0.1 else None)


def run_pulsar_feed(impl: Impl, data: bytes, random: Random) -> None:
    events = feed(impl.pulsar.FrameReader(LIMIT), data, random, LARGE_PULSAR)
    use_runs(impl, events, random)
    for event in events:
        assert isinstance(event[0], int)
        if event[0] in (6, 9):
            use_entry(impl, event[-1], random)


def use_runs(impl: Impl, events: list[Any], random: Random) -> None:
    """What comes in a row is taken in a row, up to what needs a decision; nothing is taken twice."""
    at = 0
    while at < len(events):
        run = impl.pulsar.take_run(events, at)
        at += len(run) or 1
        messages, charged, end = impl.pulsar.decode_run(
            run, 0, "t", 1, random.choice([-1, 0, 1]), random.choice([-1, 5])
        )
        assert (len(messages), sum(entry.charged for entry in run[:end])) == (charged, charged)
        for message in messages:
            touch(message)


def run_pulsar_messages(impl: Impl, data: bytes, random: Random) -> None:
    use_entry(impl, impl.pulsar.Entry.from_stored(data, 1, 2), random)


def run_message_id(impl: Impl, data: bytes, random: Random) -> None:
    try:
        found = impl.pulsar.MessageId.from_bytes(data)
    except ProtocolError:
        return
    touch(found)
    again = impl.pulsar.MessageId.from_bytes(found.to_bytes())
    assert (again, hash(again)) == (found, hash(found))
    assert again <= found <= again
    assert not again < found
    assert pickle.loads(pickle.dumps(found)) == found


def run_offset_id(impl: Impl, data: bytes, random: Random) -> None:
    with contextlib.suppress(ConfigError):
        host, port, offset = impl.remoting.parse_offset_id(data.decode("latin-1"))
        assert impl.remoting.parse_offset_id(impl.remoting.offset_id(host, port, offset)) == (host, port, offset)
    with contextlib.suppress(ConfigError):
        impl.remoting.parse_unique_key(data.decode("latin-1"))
    with contextlib.suppress(ConfigError):
        ids = impl.remoting.offset_ids("::1", 1, random.choice([0, 2**63 - 2**31]), data)
        assert len(ids) == max(0, len(data) // 4 * 57 - 1)


# --------------------------------------------------------------------------------------------------------- digest


def whole_file(data: bytearray) -> None:
    """The first frame reaches to the end, and its checksum is right: what is in it is looked at, then."""
    if len(data) >= 12:
        data[:8] = b"mqfr" + (len(data) - 12).to_bytes(4, "little")
        data[8:12] = select("pure").digest.crc32c(bytes(data[12:])).to_bytes(4, "little")


def run_files(impl: Impl, data: bytes, random: Random) -> None:
    payloads, end = impl.digest.split_frames(data, b"mqfr")
    assert end == sum(12 + len(payload) for payload in payloads) <= len(data)
    try:
        changes, runs = impl.digest.take_records(payloads if random.random() < 0.9 else [data])
    except ValueError:
        return
    assert sum(map(len, changes)) + sum(len(run[2]) for run in runs) <= len(data)
    for _, _, records, ends, marks, times in runs:
        assert len(ends) == len(marks) == len(times) // 2
        assert list(memoryview(ends).cast("I"))[-1:] == ([len(records)] if ends else [])


TARGETS = {
    "remoting.feed": Target(seeds.remoting_frames, run_remoting_feed, whole_frame),
    "remoting.decode_messages": Target(seeds.remoting_bodies, run_remoting_messages, whole_record),
    "remoting.decode_properties": Target(seeds.property_texts, run_properties),
    "remoting.split_batch": Target(seeds.send_bodies, run_split_batch),
    "remoting.store_batch": Target(seeds.send_bodies, run_store_batch),
    "remoting.ids": Target(seeds.offset_ids, run_offset_id),
    "remoting.written": Target(written.messages_to_send, written.run_remoting_written),
    "remoting.columns": Target(written.remoting_columns, written.run_remoting_columns),
    "remoting.crossing": Target(seeds.remoting_frames, crossing.run_crossing, whole_frame),
    "pulsar.feed": Target(seeds.pulsar_frames, run_pulsar_feed, whole_pulsar_frame),
    "pulsar.decode_messages": Target(seeds.pulsar_entries, run_pulsar_messages, whole_entry),
    "pulsar.message_id": Target(seeds.message_ids, run_message_id),
    "pulsar.written": Target(written.entries_to_send, written.run_pulsar_written),
    "pulsar.sent": Target(sent.messages_sent_singly, sent.run_sent_singly),
    "pulsar.columns": Target(written.pulsar_columns, written.run_pulsar_columns),
    "permits.acks": Target(written.ids_to_acknowledge, written.run_acks),
    "digest.files": Target(seeds.data_files, run_files, whole_file),
    "digest.hashes": Target(written.texts_to_hash, written.run_hashes),
    "allocation.allocate": Target(written.groups, written.run_allocate),
}

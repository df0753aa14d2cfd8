"""What users and brokers hand us to be written: columns, properties, stored bytes, ids to acknowledge. It reads bytes,
too, and what comes out is read back by our own decoders."""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

from mqclient._impl import Impl, select
from mqclient.errors import ConfigError, ProtocolError
from tests.fuzz import seeds

ABSENT = 0xFFFF
SMALL = 64
"""Of texts up to this length the pure twins are asked, too: they are slow."""


def packed(parts: list[bytes | None]) -> bytes:
    """Several byte strings in one: each behind its length in two bytes; what is longer than those can tell is cut."""
    cut = [None if part is None else part[: ABSENT - 1] for part in parts]
    return b"".join(ABSENT.to_bytes(2, "big") if part is None else len(part).to_bytes(2, "big") + part for part in cut)


def unpacked(data: bytes, count: int) -> list[bytes | None]:
    """As many parts as are asked for; what is cut short is what is there, what follows is empty."""
    parts: list[bytes | None] = []
    for _ in range(count):
        size = int.from_bytes(data[:2], "big")
        parts.append(None if size == ABSENT and len(data) >= 2 else data[2 : 2 + size])
        data = data[2:] if size == ABSENT else data[2 + size :]
    return parts


def all_unpacked(data: bytes) -> Iterator[bytes]:
    while data:
        size = int.from_bytes(data[:2], "big")
        yield data[2 : 2 + size]
        data = data[2 + size :]


def text_of(part: bytes | None) -> str:
    return (part or b"").decode("utf-8", "replace")


# -------------------------------------------------------------------------------------------------------- columns

SHAPES = {"body": 3, "keys": 3, "tag": 3, "properties": 5, "flag": 1}
PULSAR_SHAPES = {"body": 3, "key": 3, "ordering_key": 3, "properties": 5, "event_time": 1}


def packed_columns(columns: dict[str, Any], shapes: dict[str, int], start: int, stop: int) -> bytes:
    """First which columns are there, and the rows; then the buffers of all: no validity but for text."""
    there = sum(1 << place for place, name in enumerate(shapes) if name in columns)
    parts: list[bytes | None] = []
    for name, count in shapes.items():
        buffers = columns.get(name, (None,) * 6)
        parts += [None if buffer is None else bytes(buffer) for buffer in buffers[-count:]]
    return struct.pack(">BHH", there, start, stop) + packed(parts)


def unpacked_columns(data: bytes, shapes: dict[str, int]) -> tuple[dict[str, Any], int, int]:
    there, start, stop = struct.unpack(">BHH", data[:5].ljust(5, b"\0"))
    parts = unpacked(data[5:], sum(shapes.values()))
    columns: dict[str, Any] = {}
    for place, (name, count) in enumerate(shapes.items()):
        buffers, parts = parts[:count], parts[count:]
        needed = buffers[1:] if count == 3 else buffers
        if there >> place & 1 and None not in needed:
            columns[name] = tuple(buffers) if count == 3 else (None, *buffers)
    return columns, start, stop


@functools.cache
def remoting_columns() -> list[bytes]:
    codec = select("pure").remoting
    out = []
    for body in seeds.remoting_bodies():
        batch = codec.decode_messages(body)
        count = min(len(batch), 12)
        columns = batch[:12].columns(tuple(SHAPES))
        out.append(packed_columns(columns, SHAPES, count // 3, count))
        out.append(packed_columns({name: columns[name] for name in ("body", "tag")}, SHAPES, 0, count))
    return [seed for seed in out if len(seed) < 4096]


@functools.cache
def pulsar_columns() -> list[bytes]:
    codec = select("pure").pulsar
    out = []
    for stored in seeds.pulsar_entries():
        batch = codec.decode_messages(codec.Entry.from_stored(stored, 1, 2))
        count = min(len(batch), 80)
        columns = batch.columns(tuple(PULSAR_SHAPES))
        out.append(packed_columns(columns, PULSAR_SHAPES, count // 3, count))
        out.append(packed_columns({name: columns[name] for name in ("body", "key")}, PULSAR_SHAPES, 0, count))
    return [seed for seed in dict.fromkeys(out) if len(seed) < 6000]


def run_remoting_columns(impl: Impl, data: bytes, random: Random) -> None:
    columns, start, stop = unpacked_columns(data, SHAPES)
    unique = impl.remoting.UniqueKeys(b"\x7f\0\0\1", 70000, 9) if random.random() < 0.5 else None
    try:
        body = impl.remoting.encode_columns(columns, start, stop, unique=unique, now_ms=1_700_000_000_000)
    except ConfigError:
        return
    parts = impl.remoting.split_batch(body)
    assert len(parts) == stop - start
    for _, _, text in parts:
        assert ("UNIQ_KEY" in impl.remoting.decode_properties(text)) >= (unique is not None)


def run_pulsar_columns(impl: Impl, data: bytes, random: Random) -> None:
    columns, start, stop = unpacked_columns(data, PULSAR_SHAPES)
    first, room = random.choice([-1, 0, 2**62]), random.choice([1, 300, 131072])
    try:
        payload, row = impl.pulsar.encode_columns(columns, start, stop, sequence_id=first, max_bytes=room)
    except ConfigError:
        return
    assert max(start, stop) >= row >= min(start + 1, stop)
    if row > start:
        batch = read_back(impl, payload, row - start)
        assert (len(batch), batch.corrupt) == (row - start, None)


def read_back(impl: Impl, payload: bytes, count: int) -> Any:
    """The messages of a batch that we made ourselves."""
    metadata = impl.pulsar.encode_metadata("p", 1, 2, num_messages=count)
    frame = impl.pulsar.encode_send(1, 2, metadata, payload, num_messages=count)
    (event,) = impl.pulsar.FrameReader().feed(frame)
    return impl.pulsar.decode_messages(event[-1])


# ------------------------------------------------------------------------------------------------------- messages


def messages_to_send() -> list[bytes]:
    """Topic, tag, keys, body, property text, and the number of the flag."""
    texts = seeds.property_texts()
    tails = [b"", b"k1", b"key one", "é中😀".encode()]
    return [
        packed([b"orders", tails[at % 4], tails[(at + 1) % 4], b"body" * at, text[:3000], at.to_bytes(4, "big")])
        for at, text in enumerate([*texts, b"k\x01v\x02" * 300, b""])
    ]


def run_remoting_written(impl: Impl, data: bytes, random: Random) -> None:
    """A user's message goes into a batch, alone, and into every frame that can hold it; then it is read again."""
    codec = impl.remoting
    topic, tag, keys, body, text, flag = unpacked(data, 6)
    found = codec.decode_properties(text or b"")
    message = codec.Outgoing(
        text_of(topic),
        body or b"",
        tag=text_of(tag),
        keys=text_of(keys).split(),
        properties=found,
        flag=int.from_bytes((flag or b"")[:5], "big", signed=True),
    )
    kind = random.choice([None, codec.Outgoing])  # by its attributes, or by its fields
    ids: list[str] = []
    unique, builder = codec.UniqueKeys(b"\x7f\0\0\1", 70000, 9), codec.BatchBuilder()
    builder.add(b"first", b"TAGS\x01a")
    with suppress(ConfigError):
        codec.add_messages(builder, [message], 0, message.topic, unique, 5, ids, {"UNIQ_KEY"}, max_size=9000, kind=kind)
    with suppress(ConfigError):
        codec.message_text(message, unique, 5, {"UNIQ_KEY"}, kind=kind)
    with suppress(ConfigError):
        builder.add(message.body, text or b"", message.flag)
        ids.append("")
    builder.add(b"last")
    parts = codec.split_batch(builder.seal())
    assert len(parts) == 2 + len(ids)
    assert (parts[0][1], parts[-1][1]) == (b"first", b"last")
    run_frames(impl, message, text or b"", random)


def run_frames(impl: Impl, message: Any, text: bytes, random: Random) -> None:
    codec = impl.remoting
    with suppress(ConfigError):
        stored = codec.encode_message(message.body, message.topic, properties=text, flag=message.flag)
        (again,) = codec.decode_messages(stored, check_crc=True)
        assert (again.body, again.flag, again.properties_text) == (message.body, message.flag, text)
    serialize = random.choice([0, 1])
    with suppress(ConfigError):
        fields, remark = {**message.properties, "topic": message.topic}, message.tag or None
        frame = codec.encode_frame(310, 7, fields=fields, body=message.body, remark=remark, serialize=serialize)
        (again,) = codec.FrameReader().feed(frame)
        kept = {name: value for name, value in fields.items() if value or not serialize}  # binary knows no empty ones
        assert (again.fields, again.body, again.remark) == (kept, message.body, remark)
    with suppress(ConfigError):
        frame = codec.encode_send(
            7, message.tag, message.topic, 3, text, message.body, born_at=5, serialize=serialize, extra={"x": "y"}
        )
        plain = codec.encode_send(7, message.tag, message.topic, 3, text, message.body, born_at=5)
        head = codec.SendHead(message.tag, message.topic, 3)
        assert [head.frame(7, text, message.body, 5) for _ in range(2)] == [plain] * 2
        (again,) = codec.FrameReader().feed(frame)
        assert (again.field("b", ""), again.body, again.field("x")) == (message.topic, message.body, "y")
    with suppress(ConfigError):
        subscription = " ".join(message.keys)
        frame = codec.encode_pull(7, message.tag, message.topic, 3, 9, subscription=subscription, serialize=serialize)
        (again,) = codec.FrameReader().feed(frame)
        assert (again.field("topic", ""), again.field("subscription", "")) == (message.topic, subscription)


# ------------------------------------------------------------------------------------------------------- pulsar


def entries_to_send() -> list[bytes]:
    """Metadata, payload, stored bytes, a key, property text."""
    reader, out = select("pure").pulsar.FrameReader(), []
    events = [event for frame in seeds.pulsar_frames() for event in reader.feed(frame)]
    for at, event in enumerate(event for event in events if event[0] in (6, 9)):
        entry = event[-1]
        key = (None, b"a2V5", "é中".encode())[at % 3]
        out.append(packed([entry.metadata, bytes(entry.payload), entry.stored, key, b"a\x01b\x02c\x01"]))
    return [seed for seed in dict.fromkeys(out) if len(seed) < 6000]


def run_pulsar_written(impl: Impl, data: bytes, random: Random) -> None:
    codec = impl.pulsar
    metadata, payload, stored, key, pairs = unpacked(data, 5)
    for frame in (
        codec.encode_send(1, 2, metadata or b"", payload or b"", num_messages=random.choice([0, 3]), txn=(1, -1)),
        codec.encode_message(1, 2, 3, stored or b"", ack_set=[-1, 7], broker_timestamp=9),
    ):
        reader = codec.FrameReader()
        events = reader.feed(frame)
        assert (len(events), reader.error) in ((1, None), (0, reader.error))
        for event in events:
            batch = codec.decode_messages(event[-1], stored if random.random() < 0.2 else None)
            assert event[-1].stored in frame
            batch.columns()
    builder = codec.BatchBuilder(1000, 1000)
    properties = dict(pair.split("\x01", 1) for pair in text_of(pairs).split("\x02") if "\x01" in pair)
    items: list[Any] = [b"first", (payload, key if key is None else text_of(key), properties), stored or b""]
    builder.add(None, "lonely", {}, 5, metadata, 9, random.random() < 0.5, random.random() < 0.2)
    taken = builder.add_many(items, 0, 7)
    body, count = builder.seal()
    batch = read_back(impl, body, count)
    assert (count, len(batch), batch.corrupt) == (taken + 1, taken + 1, None)
    assert [message.body for message in batch][1:] == [b"first", payload or b"", stored or b""][:taken]
    if taken > 1:
        assert batch[2].properties == properties


# -------------------------------------------------------------------------------------------------------- permits


def ids_to_acknowledge() -> list[bytes]:
    make = select("pure").pulsar.MessageId
    ids = [make(1, 2, -1, at, 70).to_bytes() for at in (0, 1, 63, 64, 69, 5)]
    ids += [make(1, entry).to_bytes() for entry in range(5)] + [make(2, 1, 0, 2, 3).to_bytes()]
    entries = [stored for stored in seeds.pulsar_entries() if len(stored) < 1500]
    return [packed(list(ids)), *(packed([*ids[:3], stored, *ids[3:5], stored]) for stored in entries)]


def run_acks(impl: Impl, data: bytes, random: Random) -> None:
    acks = impl.permits.AckSet(random.choice([1, 3, 1000]), batch_index=random.random() < 0.7)
    for part in all_unpacked(data):
        for one in acknowledged(impl, part):
            with suppress(ValueError):  # an index that is not within its batch
                (acks.add if random.random() < 0.9 else acks.add_cumulative)(one)
        way = random.random()
        if way < 0.2:
            tell(impl, acks)
        elif way < 0.25:
            acks.forget()
        elif way < 0.3:
            acks.covers(1, 2, random.choice([-1, 0, 64, 2**31 - 1]))
        elif way < 0.32:
            acks.clear()
    tell(impl, acks)
    assert (len(acks), acks.take()) == (0, [])


def acknowledged(impl: Impl, part: bytes) -> list[Any]:
    """A message id, as a user may keep one; or the messages of an entry."""
    with suppress(ProtocolError):
        return [impl.pulsar.MessageId.from_bytes(part)]
    return list(impl.pulsar.decode_messages(impl.pulsar.Entry.from_stored(part, 1, 2)))


def tell(impl: Impl, acks: Any) -> None:
    ids = acks.take()
    last = acks.take_cumulative()
    frame = impl.pulsar.encode_ack(1, ids) + (impl.pulsar.encode_ack(1, [last], cumulative=True) if last else b"")
    events = impl.pulsar.FrameReader().feed(frame)
    told = [(one[0], one[1], *([one[4]] if one[4] else [])) for event in events for one in event[3]]
    assert told == [*ids, *([last] if last else [])]


# ---------------------------------------------------------------------------------------------------------- digest


def texts_to_hash() -> list[bytes]:
    return [b"", b"key", "é中😀".encode(), bytes(range(256)), b"x" * 1500, *seeds.offset_ids()]


def run_hashes(impl: Impl, data: bytes, random: Random) -> None:
    """All of it and in two parts, from places that are aligned and from others."""
    digest, cut = impl.digest, random.randrange(len(data) + 1)
    view = memoryview(data)
    whole = digest.crc32c(data)
    assert digest.crc32(data) == zlib.crc32(data) == digest.crc32(view[cut:], digest.crc32(view[:cut]))
    assert whole == digest.crc32c(view[cut:], digest.crc32c(view[:cut]))
    moved = b"x" * (1 + cut % 15) + data
    assert whole == digest.crc32c(memoryview(moved)[1 + cut % 15 :])
    murmur, boost = digest.murmur3_32(view[cut:], cut), digest.boost_hash(view[cut:])
    texts = [data.decode("latin-1"), data.decode("utf-8", "replace"), data.decode("utf-16", "replace")]
    hashes = [digest.java_string_hash(text) for text in texts]
    if len(data) <= SMALL:
        pure = select("pure").digest
        assert (whole, murmur) == (pure.crc32c(data), pure.murmur3_32(view[cut:], cut))
        assert (boost, hashes) == (pure.boost_hash(view[cut:]), [pure.java_string_hash(text) for text in texts])


# ------------------------------------------------------------------------------------------------------ allocation

RULES = ("averagely", "averagely_by_circle", "consistent_hash", "rendezvous", "sticky")


def groups() -> list[bytes]:
    """Members, then topics with their brokers; a byte apart each."""
    ids = [b"\x01".join(b"10.0.0.%d@%d#1" % (at, 900 + at) for at in range(count)) for count in (1, 2, 7)]
    names = [b"\x01".join((b"orders%d" % at) + b"\x02broker-%d" % (at % 3) for at in range(6)), "é中\x02😀".encode()]
    return [packed([members, queues]) for members in ids for queues in names]


def run_allocate(impl: Impl, data: bytes, random: Random) -> None:
    """Whatever ids and names are: every queue has exactly one owner."""
    members, names = ([text_of(one) for one in (part or b"").split(b"\x01")] for part in unpacked(data, 2))
    members, rule = [one for one in dict.fromkeys(members) if one][:9], random.choice(RULES)
    topics = [(*name.split("\x02", 1), "")[:2] for name in dict.fromkeys(names)]
    queues = [(topic, broker, queue) for topic, broker in dict.fromkeys(topics) for queue in (0, 3, 2**31 - 1)][:40]
    if not members:
        return
    options: dict[str, Any] = {"current": {members[0]: queues[::2]}} if rule == "sticky" else {}
    shares = [impl.allocation.allocate(rule, own, queues, members, **options) for own in members]
    assert sorted(queue for share in shares for queue in share) == sorted(queues)
    again = [*members, members[0]]
    assert impl.allocation.repeated(again) == [members[0]]
    impl.allocation.allocate(rule, members[0], queues, again, **options)
    if len(data) <= SMALL:
        pure = select("pure").allocation
        assert shares == [pure.allocate(rule, own, queues, members, **options) for own in members]

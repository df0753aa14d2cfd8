"""Where mutation begins: the recordings, and what real software may send though nobody recorded it."""

from __future__ import annotations

import functools
import struct
import zlib
from pathlib import Path

from mqclient._impl import select
from tests.fuzz.mutator import varint

VECTORS = Path(__file__).resolve().parent.parent / "vectors"
COMPRESSED, ZLIB, INNER_BATCH = 0x1, 0x300, 0xC0
ODD_HEADER = (
    rb'{ "code" : 10,"extFields":{"a":"\u0041\u00e9\u4e2d\ud83d\ude00 \n\r\t\b\f\/\\\"","n":12,"t":true,"f":false,'
    rb'"x":null,"o":{"a":[1,"]",{}]},"d":-1.5e3,"raw":"' + "é中😀".encode() + rb'"},"flag":1,"language":"JAVA",'
    rb'"opaque":-5,"remark":"\u4e2d no \ud83d alone","serializeTypeCurrentRPC":"JSON","version":399,"later":[[],{}]}'
)


# ------------------------------------------------------------------------------------------------------- remoting


@functools.cache
def remoting_frames() -> list[bytes]:
    recorded = [path.read_bytes() for path in sorted((VECTORS / "rocketmq").glob("*.frame.bin"))]
    head = len(ODD_HEADER).to_bytes(4, "big")
    odd = (len(ODD_HEADER) + 4).to_bytes(4, "big") + head + ODD_HEADER
    fields = {"é": "中", "topic": "T" * 300, "empty": "", "k" * 40: "😀"}
    encode = select("pure").remoting.encode_frame
    made = [encode(11, -1, fields=fields, remark="r", body=b"x" * 50, serialize=form, flag=1) for form in (0, 1)]
    stored = [{"queueId": "3", "queueOffset": "7", "msgId": text} for text in ("AB,CD", "AB,CD,EF", "AB", ",", "é,中")]
    answers = [
        encode(0, 5, fields=fields, flag=1) for fields in (*stored, {"queueOffset": "1e3"}, {"queueId": "9" * 30})
    ]
    return [*recorded, odd, *made, *answers]


@functools.cache
def remoting_bodies() -> list[bytes]:
    """Bodies of pull replies: bare ones, those in recorded frames, and variants of the stored form."""
    bare = [path.read_bytes() for path in sorted((VECTORS / "rocketmq").glob("pull-body-*.bin"))]
    reader = select("pure").remoting.FrameReader()
    framed = [frame.body for frame in reader.feed(b"".join(remoting_frames()))]
    return [body for body in bare + framed if body[4:7] == b"\xda\xa3\x20"] + stored_variants()


def stored_variants() -> list[bytes]:
    """IPv6 hosts, compressed, an inner batch, a retry topic, a long topic, many properties, negative numbers."""
    codec = select("pure").remoting
    texts = [
        codec.encode_properties({"TAGS": "TagA", "KEYS": "k1 k2", "UNIQ_KEY": "0A" * 16, "DELAY": "3"}),
        codec.encode_properties({"RETRY_TOPIC": "orders", "RECONSUME_TIME": "3", "__transactionId__": "t", "é": "中"}),
        codec.encode_properties({f"name{index}": "v" * 20 for index in range(40)}) + b"\x02\x01\x02x\x01",
        b"",
    ]
    encode = codec.encode_message
    squeezed = zlib.compress(b"orders" * 400)
    packed = zlib.compress(send_bodies()[2])
    return [
        encode(b"a", "%RETRY%g", properties=texts[1], attempts=3, offset=-1, queue_id=-1),
        encode(b"b", "T" * 200, properties=texts[2], born_host=("::1", 1), store_host=("2001:db8::2", 65535)),
        encode(squeezed, "t", properties=texts[0], sys_flag=COMPRESSED | ZLIB),
        encode(squeezed, "t", properties=texts[0], sys_flag=COMPRESSED),
        encode(send_bodies()[2], "t", properties=texts[0], sys_flag=INNER_BATCH, offset=100),
        encode(packed, "t", sys_flag=COMPRESSED | ZLIB | INNER_BATCH, offset=2**62),
        b"".join(encode(bytes([65 + index]), "t", properties=texts[index % 4], offset=index) for index in range(70)),
    ]


def property_texts() -> list[bytes]:
    batches = (select("pure").remoting.decode_messages(body) for body in remoting_bodies())
    return [batch[0].properties_text for batch in batches if len(batch)] + [b"k\x01v\x02" * 2000]


@functools.cache
def send_bodies() -> list[bytes]:
    builder = select("pure").remoting.BatchBuilder()
    out = []
    for count in (1, 2, 9):
        for index in range(count):
            builder.add(b"body" * index, b"TAGS\x01a\x02KEYS\x01k", index)
        out.append(builder.seal())
    return out


def offset_ids() -> list[bytes]:
    return [b"7F00000100002A9F0000000000000123", b"20010DB8" + b"0" * 24 + b"00002A9F0000000000000123", b"x"]


# --------------------------------------------------------------------------------------------------------- pulsar


@functools.cache
def pulsar_frames() -> list[bytes]:
    """Every frame shape once or a few times (streams are cut at the frames' own lengths), then packed number lists."""
    kept: dict[tuple[bytes, int], bytes] = {}
    for path in sorted((VECTORS / "pulsar").glob("*.bin")):
        stream = path.read_bytes()
        while stream:
            size = 4 + int.from_bytes(stream[:4], "big")
            kept.setdefault((stream[8:12], size), stream[:size])
            stream = stream[size:]
    return [*kept.values(), *packed_frames(), *entry_frames()]


def data(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def packed_frames() -> list[bytes]:
    """ACK with packed ack sets, as an encoder may write a repeated number; one field that nobody knows."""
    words = varint(5) + varint(2**64 - 1) + varint(0)
    message_id = b"\x08\x01\x10\x02" + data(5, words) + b"\x30\x0a"
    ack = b"\x08\x07\x10\x00" + data(3, message_id) * 2 + b"\x20\x02\x30\x01\x38\x02\x40\x63" + data(99, b"later")
    return [select("pure").pulsar.encode_command(10, ack), select("pure").pulsar.encode_command(10, ack[:8])]


def entry_frames() -> list[bytes]:
    """MESSAGE around the entries below, with ack sets, packed and not, epochs and broker entry metadata."""
    encode = select("pure").pulsar.encode_message
    made = []
    for stored in entry_variants():
        made.append(encode(1, 2, 3, stored, ack_set=[5, -1], redelivery_count=4, consumer_epoch=7))
        made.append(encode(1, 2, 3, stored, partition=3, broker_timestamp=10**12, broker_index=99))
        plain = encode(1, 2, 3, stored)
        size = int.from_bytes(plain[4:8], "big")
        sub = plain[8 : 8 + size].split(b"\x4a", 1)[1][1:] + data(4, varint(5) + varint(2**64 - 1))
        command = b"\x08\x09" + data(9, sub)
        rest = len(command).to_bytes(4, "big") + command + plain[8 + size :]
        made.append(len(rest).to_bytes(4, "big") + rest)
    return made


@functools.cache
def entry_variants() -> list[bytes]:
    """Stored entries with what recordings lack: null values and keys, byte keys, transactions, bad compression."""
    codec = select("pure").pulsar
    builder = codec.BatchBuilder()
    for index in range(70):
        key = "a2V5" if index % 3 else "key="
        builder.add(None if index % 9 == 0 else b"v" * index, key, {"k": "é"}, index, b"o", index, index % 2 == 0)
    payload, count = builder.seal()
    squeezed = zlib.compress(payload)
    every = {
        "properties": {"k": "v", "é": "中"},
        "partition_key": "a2V5",
        "key_b64": True,
        "ordering_key": b"\x00o",
        "event_time": 5,
        "schema_version": b"\x01",
        "replicated_from": "west",
        "replicate_to": ["a", "b"],
        "deliver_at": 9,
        "txn": (1, -2),
        "uuid": "u",
        "num_chunks": 3,
        "chunk_id": 1,
        "total_chunk_size": 99,
    }
    cases = [
        (codec.encode_metadata("p", 1, 2, num_messages=count, highest_sequence_id=70), payload),
        (codec.encode_metadata("p", 1, 2, num_messages=count, compression=2, uncompressed_size=len(payload)), squeezed),
        (codec.encode_metadata("p", 1, 2, compression=2, uncompressed_size=3), zlib.compress(b"abc")),
        (codec.encode_metadata("p", 1, 2, compression=2, uncompressed_size=1 << 30), squeezed),
        (codec.encode_metadata("p", 1, 2, null_value=True, null_key=True), b""),
        (codec.encode_metadata("p", 1, 2, **every), b"chunk"),
        (codec.encode_metadata("p", 1, 2, num_messages=3, encryption_keys=[b"\x0a\x01k\x12\x01v"]), b"secret"),
    ]
    reader = codec.FrameReader()
    sent = b"".join(codec.encode_send(1, 2, metadata, body, num_messages=1) for metadata, body in cases)
    return [event[-1].stored for event in reader.feed(sent)]


@functools.cache
def pulsar_entries() -> list[bytes]:
    """What brokers store: checksum, metadata, payload."""
    reader = select("pure").pulsar.FrameReader()
    events = [event for frame in pulsar_frames() for event in reader.feed(frame)]
    return [event[-1].stored for event in events if event[0] in (6, 9)]


def message_ids() -> list[bytes]:
    make = select("pure").pulsar.MessageId
    first = make(1, 2, 3)
    ids = [make(1, 2), make(2**40, 2**33, 7, 3, 10), make(5, 6, -1, -1, 0, first)]
    return [one.to_bytes() for one in ids] + [b"\x08\x01\x10\x02" + data(5, varint(5) + varint(1)) + b"\x28\x03"]


# --------------------------------------------------------------------------------------------------------- digest


def record_entries() -> list[bytes]:
    """What frames of a data folder hold: blocks in a row and with gaps, of one log and of two, and changes."""

    def entry(kind: int, content: bytes) -> bytes:
        return struct.pack("<BxxxI", kind, len(content)) + content

    def block(log: int, first: int, records: list[bytes]) -> bytes:
        count = len(records)
        ends = [sum(map(len, records[: place + 1])) for place in range(count)]
        columns = struct.pack(f"={count}q{count}i{count}I", *range(count), *range(count), *ends)
        return entry(2, struct.pack("<IIQ", log, count, first) + columns + b"".join(records))

    row = block(1, 0, [b"a", b"bc"]) + block(1, 2, [b"", b"d" * 9])
    return [row, block(1, 5, [b"e"]) + block(257, 0, [b"f"] * 5) + block(1, 6, [b"g"]), entry(1, b"{}") + row, b""]


def data_files() -> list[bytes]:
    crc32c = select("pure").digest.crc32c
    frames = [struct.pack("<4sII", b"mqfr", len(one), crc32c(one)) + one for one in record_entries()]
    return [*frames, b"".join(frames), b"".join(frames) + b"mqfr\x01"]

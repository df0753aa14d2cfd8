"""The remoting codec: what it promises, told by examples, for the native module and its pure twin."""

from __future__ import annotations

import gc
import os
import socket
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.errors import ConfigError, ProtocolError

SHEET_JSON = bytes.fromhex(
    "000000810000007d7b22636f6465223a3130352c226578744669656c6473223a7b22746f706963223a2254227d2c22666c6167223a302c226c"
    "616e6775616765223a22505954484f4e222c226f7061717565223a312c2273657269616c697a655479706543757272656e74525043223a224a"
    "534f4e222c2276657273696f6e223a3437397d"
)
SHEET_BINARY = bytes.fromhex("000000250100002100690301df0000000100000000000000000000000c0005746f7069630000000154")
SHEET_ELEMENT = bytes.fromhex("0000001f000000000000000000000000000000026162000754414753014102")
SHEET_MESSAGE = bytes.fromhex(
    "00000065daa320a758932aac000000030000000000000000000000070000000000000400000000000000018bcfe568000a00000900009c4000"
    "00018bcfe568050a00000100002a9f0000000000000000000000000000000268690154000754414753014102"
)


@pytest.fixture
def remoting(codec: Impl) -> ModuleType:
    return codec.remoting


def message(remoting: ModuleType, body: bytes = b"body", topic: str = "T", **options: Any) -> bytes:
    mapping = options.pop("mapping", {})
    encoded: bytes = remoting.encode_message(body, topic, properties=remoting.encode_properties(mapping), **options)
    return encoded


# ----------------------------------------------------------------------------------------- the sheet's own examples


@pytest.mark.parametrize(("data", "form"), [(SHEET_JSON, "JSON"), (SHEET_BINARY, "ROCKETMQ")])
def test_the_sheets_frames(remoting: ModuleType, data: bytes, form: str) -> None:
    serialize = getattr(remoting, form)
    assert remoting.encode_frame(105, 1, fields={"topic": "T"}, serialize=serialize) == data
    (frame,) = remoting.FrameReader().feed(data)
    assert (frame.code, frame.opaque, frame.flag, frame.version) == (105, 1, 0, 479)
    assert (frame.language, frame.remark, frame.fields, frame.body) == ("PYTHON", None, {"topic": "T"}, b"")
    assert (frame.is_response, frame.is_oneway, frame.serialize) == (False, False, serialize)
    assert frame.field("topic") == "T"
    assert frame.field("nonesuch", "-") == "-"
    assert frame.field("nonesuch") is None


def test_the_sheets_batch_element(remoting: ModuleType) -> None:
    builder = remoting.BatchBuilder()
    assert builder.add(b"ab", remoting.encode_properties({"TAGS": "A"})) == len(SHEET_ELEMENT)
    assert builder.seal() == SHEET_ELEMENT
    assert remoting.split_batch(SHEET_ELEMENT) == [(0, b"ab", b"TAGS\x01A\x02")]


def test_the_sheets_stored_message(remoting: ModuleType) -> None:
    (one,) = remoting.decode_messages(SHEET_MESSAGE, check_crc=True)
    assert (one.queue_id, one.offset, one.physical_offset) == (3, 7, 1024)
    assert (one.born_at, one.born_host) == (1700000000000, "10.0.0.9:40000")
    assert (one.stored_at, one.store_host) == (1700000000005, "10.0.0.1:10911")
    assert (one.body, one.body_crc, one.topic, one.tag) == (b"hi", 1486039724, "T", "A")
    assert one.offset_id == one.message_id == "0A00000100002A9F0000000000000400"
    again = remoting.encode_message(
        b"hi",
        "T",
        properties=one.properties_text,
        queue_id=3,
        offset=7,
        physical_offset=1024,
        born_at=one.born_at,
        born_host=("10.0.0.9", 40000),
        stored_at=one.stored_at,
        store_host=("10.0.0.1", 10911),
    )
    assert again == SHEET_MESSAGE


def test_the_sheets_send_fields(remoting: ModuleType) -> None:
    text = remoting.encode_properties({"UNIQ_KEY": "0" * 32, "WAIT": "true"})
    data = remoting.encode_send(1, "PG", "T", 0, text, b"x", born_at=1700000000000, broker="broker-a")
    (frame,) = remoting.FrameReader().feed(data)
    assert frame.code == 310
    assert frame.fields == {
        "a": "PG",
        "b": "T",
        "c": "TBW102",
        "d": "4",
        "e": "0",
        "f": "0",
        "g": "1700000000000",
        "h": "0",
        "i": text.decode(),
        "j": "0",
        "k": "false",
        "m": "false",
        "n": "broker-a",
    }


# ----------------------------------------------------------------------------------------------------------- frames


def test_bad_bytes_are_a_state(remoting: ModuleType) -> None:
    reader = remoting.FrameReader()
    frames = reader.feed(SHEET_JSON + b"\0\0\0\3junk")
    assert [frame.code for frame in frames] == [105]
    assert isinstance(reader.error, ProtocolError)
    assert "3 bytes" in str(reader.error)
    assert (reader.feed(SHEET_JSON), reader.pending) == ([], 0)


@pytest.mark.parametrize("size", [-1, 3, 1001 - 4, 2**31 - 1])
def test_a_size_out_of_bounds_is_an_error_before_anything_is_allocated(remoting: ModuleType, size: int) -> None:
    reader = remoting.FrameReader(1000)
    assert reader.feed(size.to_bytes(4, "big", signed=True)) == []
    assert isinstance(reader.error, ProtocolError)


def test_a_frame_of_just_the_limit_is_taken(remoting: ModuleType) -> None:
    reader = remoting.FrameReader(len(SHEET_JSON))
    assert len(reader.feed(SHEET_JSON)) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"\0\0\0\4\2\0\0\0",  # a form nobody knows
        b"\0\0\0\4\0\0\0\1",  # a header longer than its frame
        b"\0\0\0\6\0\0\0\2{}",  # no code
        b"\0\0\0\5\1\0\0\1x",  # a binary header that ends too early
    ],
)
def test_headers_that_are_none(remoting: ModuleType, data: bytes) -> None:
    reader = remoting.FrameReader()
    assert reader.feed(data) == []
    assert isinstance(reader.error, ProtocolError)


def test_byte_by_byte_any_bytes_like(remoting: ModuleType) -> None:
    reader = remoting.FrameReader()
    parts = [memoryview(SHEET_BINARY)[i : i + 1] for i in range(len(SHEET_BINARY))]
    assert [len(reader.feed(part)) for part in parts] == [0] * (len(parts) - 1) + [1]
    assert len(reader.feed(bytearray(SHEET_JSON))) == 1
    with pytest.raises(TypeError):
        reader.feed("text")


def test_large_frames_through_small_reads(remoting: ModuleType) -> None:
    body = os.urandom(3_000_000)
    data = remoting.encode_frame(0, 1, flag=1, body=body) + SHEET_JSON
    reader = remoting.FrameReader()
    frames = [frame for at in range(0, len(data), 70_000) for frame in reader.feed(data[at : at + 70_000])]
    assert [frame.code for frame in frames] == [0, 105]
    assert frames[0].body == body
    assert reader.pending == 0


def test_header_fields_of_every_json_kind(remoting: ModuleType) -> None:
    ext = b'{"n":-1.5e3,"b":true,"x":null,"o":{"a":[1]},"u":"\\u4e2d\xe4\xb8\xad"}'
    header = b'{"code":"12","opaque":null,"extFields":' + ext + b"}"
    data = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header
    (frame,) = remoting.FrameReader().feed(data)
    assert (frame.code, frame.opaque, frame.language, frame.version) == (12, 0, "JAVA", 0)
    assert frame.field("u") == "中中"
    assert frame.fields == {"n": "-1.5e3", "b": "true", "o": '{"a":[1]}', "u": "中中"}


def test_frames_cannot_be_made_nor_changed_and_show_no_body(remoting: ModuleType) -> None:
    (frame,) = remoting.FrameReader().feed(remoting.encode_frame(1, 2, flag=3, body=b"secret", remark="why"))
    assert repr(frame) == "<Frame response code=1 opaque=2 body=6 bytes>"
    assert (frame.is_response, frame.is_oneway, frame.remark) == (True, True, "why")
    with pytest.raises(AttributeError):
        frame.code = 7


def test_what_does_not_fit_a_frame_is_refused(remoting: ModuleType) -> None:
    encode = remoting.encode_frame
    wrongs: tuple[Callable[[], object], ...] = (
        lambda: encode(2**31, 1),
        lambda: encode(1, -(2**31) - 1),
        lambda: encode(200050, 1, serialize=remoting.ROCKETMQ),
        lambda: encode(1, 1, serialize=2),
        lambda: encode(1, 1, body=b"x" * remoting.MAX_FRAME),
        lambda: encode(1, 1, fields={"x" * 32768: ""}, serialize=remoting.ROCKETMQ),
        lambda: encode(1, 1, fields={"a": "\ud800"}),
        lambda: remoting.encode_send(1, "g", "t", 0, b"\xff", b"", born_at=0),
    )
    for wrong in wrongs:
        with pytest.raises(ConfigError):
            wrong()
    with pytest.raises(TypeError):
        encode(1, 1, fields={"a": 1})


def test_a_body_may_come_in_parts(remoting: ModuleType) -> None:
    whole = remoting.encode_frame(0, 1, body=b"onetwo")
    assert remoting.encode_frame(0, 1, body=[b"one", memoryview(b"two")]) == whole
    assert remoting.encode_frame(0, 1, body=(bytearray(b"one"), b"two")) == whole


# ------------------------------------------------------------------------------------------------------ descriptors


@contextmanager
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, two = socket.socketpair()
    with one, two:
        one.setblocking(False)
        yield one, two


def test_receiving_into_the_reader(remoting: ModuleType) -> None:
    with connected() as (one, two):
        reader = remoting.FrameReader()
        assert reader.receive_into(one.fileno()) == ([], remoting.WOULD_BLOCK)
        two.sendall(SHEET_JSON + SHEET_BINARY[:9])
        frames, received = reader.receive_into(one.fileno())
        assert ([frame.code for frame in frames], received) == ([105], len(SHEET_JSON) + 9)
        assert reader.pending == 9
        two.sendall(SHEET_BINARY[9:])
        assert len(reader.wait_into(one.fileno(), 1000)[0]) == 1
        two.close()
        assert reader.receive_into(one.fileno()) == ([], 0)
        assert reader.wait_into(one.fileno(), -1) == ([], 0)


def test_waiting_ends_at_the_timeout(remoting: ModuleType) -> None:
    with connected() as (one, _):
        start = time.monotonic()
        assert remoting.FrameReader().wait_into(one.fileno(), 20) == ([], remoting.WOULD_BLOCK)
        assert time.monotonic() - start >= 0.015


def test_sending_what_fits(remoting: ModuleType) -> None:
    with connected() as (one, two):
        assert remoting.send_now(one.fileno(), [b"abc", memoryview(b"de"), bytearray(b"f")]) == 6
        assert two.recv(10) == b"abcdef"
        total = 0
        while (sent := remoting.send_now(one.fileno(), [bytes(100_000), b"end"])) > 0:
            total += sent
        assert sent == remoting.WOULD_BLOCK
        assert total > 0
        two.close()
        assert remoting.send_now(one.fileno(), [b"x"]) < 0


def test_errors_of_the_system_are_numbers(remoting: ModuleType) -> None:
    reader, write = os.pipe()
    os.close(write)
    os.close(reader)
    frames, number = remoting.FrameReader().receive_into(reader)
    assert (frames, number < 0) == ([], True)
    assert remoting.send_now(reader, [b"x"]) < 0


def test_reading_a_stopped_reader_goes_on_to_the_end_of_stream(remoting: ModuleType) -> None:
    with connected() as (one, two):
        reader = remoting.FrameReader()
        two.sendall(b"\0\0\0\0" + bytes(100))
        assert reader.receive_into(one.fileno()) == ([], 104)
        assert reader.error is not None
        two.sendall(b"more")
        assert reader.receive_into(one.fileno()) == ([], 4)
        assert reader.pending == 0


# --------------------------------------------------------------------------------------------------------- messages


def test_a_batch_is_a_lazy_sequence(remoting: ModuleType) -> None:
    data = b"".join(message(remoting, bytes([97 + i]) * i, offset=10 + i) for i in range(5))
    batch = remoting.decode_messages(data, queue=("broker", 3))
    assert isinstance(batch, Sequence) or len(batch) == 5
    assert [one.offset for one in batch] == batch.offsets == [10, 11, 12, 13, 14]
    assert (batch.first_offset, batch.last_offset, batch.size, batch.scanned) == (10, 14, 10, 5)
    assert batch.sizes == [0, 1, 2, 3, 4]
    assert batch[-1].body == b"eeee"
    assert [one.offset for one in batch[1:4]] == [11, 12, 13]
    assert [one.offset for one in batch[::-2]] == [14, 12, 10]
    assert batch[1:3].size == 3
    assert batch.queue == batch[0].queue == ("broker", 3)
    assert repr(batch) == "<MessageBatch of 5 messages, 10 bytes of bodies>"
    for index in (5, -6):
        with pytest.raises(IndexError):
            batch[index]


def test_an_empty_reply_has_no_offsets(remoting: ModuleType) -> None:
    batch = remoting.decode_messages(b"")
    assert (len(batch), batch.first_offset, batch.last_offset, batch.size, list(batch)) == (0, -1, -1, 0, [])


def test_messages_outlive_their_batch(remoting: ModuleType) -> None:
    data = bytearray(b"".join(message(remoting, b"body %d" % i) for i in range(3)))
    kept = list(remoting.decode_messages(data))
    data[:] = bytes(len(data))
    gc.collect()
    assert [one.body for one in kept] == [b"body 0", b"body 1", b"body 2"]
    assert bytes(kept[1].view) == b"body 1"


def test_messages_are_read_only_and_show_no_body(remoting: ModuleType) -> None:
    (one,) = remoting.decode_messages(message(remoting, b"secret", "orders", queue_id=2, offset=9))
    assert repr(one) == "<Message topic='orders' queue_id=2 offset=9 body=6 bytes>"
    with pytest.raises(AttributeError):
        one.body = b""
    with pytest.raises(AttributeError):
        one.nonesuch  # noqa: B018


def test_properties_in_the_words_of_the_protocol(remoting: ModuleType) -> None:
    mapping = {"KEYS": "a  b ", "TAGS": "T1", "UNIQ_KEY": "ID", "__transactionId__": "TX", "ä": "ö"}
    (one,) = remoting.decode_messages(message(remoting, mapping=mapping))
    assert (one.tag, one.key, one.keys, one.message_id, one.transaction_id) == ("T1", "a  b ", ("a", "b"), "ID", "TX")
    assert (one.property("ä"), one.property("none"), one.property("none", "-")) == ("ö", None, "-")
    assert one.properties == mapping
    assert one.properties is one.properties
    assert one.property("TAGS") == "T1"
    (bare,) = remoting.decode_messages(message(remoting))
    assert (bare.tag, bare.key, bare.keys, bare.transaction_id, bare.properties) == (None, None, (), None, {})


def test_every_address_family(remoting: ModuleType) -> None:
    hosts: dict[str, Any] = {"born_host": ("2001:db8::1", 80), "store_host": ("::ffff:1.2.3.4", 10911)}
    (one,) = remoting.decode_messages(message(remoting, b"b", "x" * 128, sys_flag=2, attempts=4, **hosts))
    assert (one.born_host, one.store_host) == ("[2001:db8::1]:80", "[::ffff:1.2.3.4]:10911")
    assert (one.sys_flag, one.attempts, one.topic, one.body) == (0x32, 4, "x" * 128, b"b")
    assert one.offset_id == "00000000000000000000FFFF01020304" + "00002A9F" + "0" * 16


def test_static_topics_and_retry_topics(remoting: ModuleType) -> None:
    data = message(remoting, topic="%RETRY%g", offset=5, mapping={"RETRY_TOPIC": "orders"})
    (one,) = remoting.decode_messages(data, offset_delta=100)
    assert (one.offset, one.topic) == (105, "%RETRY%g")
    (one,) = remoting.decode_messages(data, retry_topic=True)
    assert one.topic == "orders"
    with pytest.raises(ProtocolError):
        remoting.decode_messages(data, offset_delta=2**63 - 1)


def test_a_tag_filter_looks_at_the_text(remoting: ModuleType) -> None:
    data = b"".join(message(remoting, mapping=m) for m in ({"TAGS": "a"}, {"TAGS": "b"}, {}, {"KEYS": "a"}))
    batch = remoting.decode_messages(data, ["a", "c"])
    assert ([one.tag for one in batch], batch.scanned) == (["a"], 4)
    assert len(remoting.decode_messages(data, set())) == 4


def test_a_crc_is_checked_on_request(remoting: ModuleType) -> None:
    data = bytearray(SHEET_MESSAGE)
    data[89] ^= 1
    assert len(remoting.decode_messages(data)) == 1
    with pytest.raises(ProtocolError, match="message 0 at byte 0: body of offset 7"):
        remoting.decode_messages(data, check_crc=True)


@pytest.mark.parametrize(("place", "value"), [(0, 0x7F), (4, 0), (84, 0x7F), (3, 90), (88 + 2, 0x7F), (92, 0xFF)])
def test_a_damaged_message_says_where_it_is(remoting: ModuleType, place: int, value: int) -> None:
    data = bytearray(SHEET_MESSAGE * 2)
    data[len(SHEET_MESSAGE) + place] = value
    with pytest.raises(ProtocolError, match=f"message 1 at byte {len(SHEET_MESSAGE)}"):
        remoting.decode_messages(data)


def test_compressed_bodies(remoting: ModuleType) -> None:
    told = []

    def decompress(kind: int, view: memoryview, limit: int) -> bytes:
        told.append((kind, limit))
        return zlib.decompress(view)

    body = zlib.compress(b"x" * 1000)
    data = message(remoting, body, sys_flag=0x301) + message(remoting, body, sys_flag=0x1) + message(remoting, b"plain")
    old = remoting.decode_messages(data)
    assert [one.compressed for one in old] == [True, True, False]
    assert [one.compression for one in old] == [3, 3, 0]
    assert (old[0].body, old[0].sys_flag, bytes(old[0].view)) == (body, 0x301, body)
    new = remoting.decode_messages(data, check_crc=True, decompress=decompress, limit=2500)
    assert [one.body for one in new] == [b"x" * 1000, b"x" * 1000, b"plain"]
    assert [(one.compressed, one.sys_flag) for one in new] == [(False, 0x300), (False, 0), (False, 0)]
    assert (new[0].size, bytes(new[0].view), new.size) == (1000, b"x" * 1000, 2005)
    assert told == [(3, 2500), (3, 1500)]
    with pytest.raises(ProtocolError, match="limit"):
        remoting.decode_messages(data, decompress=decompress, limit=1999)


def test_an_inner_batch_is_taken_apart(remoting: ModuleType) -> None:
    builder = remoting.BatchBuilder()
    for i in range(3):
        builder.add(b"inner %d" % i, remoting.encode_properties({"TAGS": f"t{i}"}), i)
    container: dict[str, Any] = {"sys_flag": 0xC0, "offset": 40, "attempts": 2, "physical_offset": 7, "queue_id": 1}
    data = message(remoting, builder.seal(), mapping={"INNER_NUM": "3", "CLUSTER": "c"}, **container)
    batch = remoting.decode_messages(data + message(remoting, b"after", offset=43))
    assert [(one.body, one.offset, one.tag, one.flag) for one in batch] == [
        (b"inner 0", 40, "t0", 0),
        (b"inner 1", 41, "t1", 1),
        (b"inner 2", 42, "t2", 2),
        (b"after", 43, None, 0),
    ]
    inner = batch[1]
    assert (inner.attempts, inner.physical_offset, inner.queue_id, inner.body_crc) == (0, 7, 1, 0)
    assert (inner.properties, inner.stored_size) == ({"TAGS": "t1"}, batch[0].stored_size)
    assert batch.scanned == 4
    broken = message(remoting, b"\0\0\0\x10", **container)
    with pytest.raises(ProtocolError):
        remoting.decode_messages(broken)
    with pytest.raises(ProtocolError):
        remoting.split_batch(b"\0\0\0\x10" + bytes(12))


def test_properties_text(remoting: ModuleType) -> None:
    decode = remoting.decode_properties
    assert decode(b"a\x01b\x02c\x01d") == {"a": "b", "c": "d"}
    assert decode(b"a\x01\x02\x01b\x02c\x02\x02d\x01e\x01f\x02") == {"d": "e\x01f"}
    assert decode(b"a\x01\xff\x02a\x01last") == {"a": "last"}
    assert decode(b"x\x01" + b"y" * 40000) == {"x": "y" * 40000}
    for wrong in ({"": "a"}, {"a": ""}, {"a\x01": "b"}, {"a": "\x02"}, {"a": "x" * 32766}):
        with pytest.raises(ConfigError):
            remoting.encode_properties(wrong)
    with pytest.raises(TypeError):
        remoting.encode_properties({"a": 1})


def test_what_does_not_fit_a_message_is_refused(remoting: ModuleType) -> None:
    for options in (
        {"queue_id": 2**31},
        {"offset": 2**63},
        {"properties": bytes(32768)},
        {"born_host": ("nowhere", 1)},
        {"store_host": ("::1", 2**31)},
    ):
        with pytest.raises(ConfigError):
            remoting.encode_message(b"", "T", **options)
    with pytest.raises(ConfigError):
        remoting.encode_message(b"", "x" * 32768)
    with pytest.raises(ConfigError):
        remoting.BatchBuilder().add(b"", bytes(32768))
    with pytest.raises(ConfigError):
        remoting.BatchBuilder().add(b"", b"", 2**31)


def test_a_builder_starts_anew_after_sealing(remoting: ModuleType) -> None:
    builder = remoting.BatchBuilder()
    assert builder.seal() == b""
    assert builder.add_many([b"a", b"b", b"c"], [b""] * 3, 1, 10**6, 1) == 2
    assert builder.add_many([b"a", b"b", b"c"], [b""] * 3, 2, 30) == 2
    assert (builder.count, builder.size) == (1, 23)
    assert remoting.split_batch(builder.seal()) == [(0, b"b", b"")]
    assert (builder.count, builder.size, builder.seal()) == (0, 0, b"")
    with pytest.raises(ConfigError):
        builder.add_many([b"a"], [])


# ---------------------------------------------------------------------------------------------------------- columns


def test_columns_are_what_arrow_expects(remoting: ModuleType) -> None:
    pa = pytest.importorskip("pyarrow")
    maps = [{"TAGS": "a", "KEYS": "k1 k2", "x": "1"}, {}, {"UNIQ_KEY": "ID", "ä": "ö", "TAGS": "b"}]
    data = b"".join(
        message(remoting, b"body" * i, offset=i, mapping=mapping, flag=-i, attempts=i) for i, mapping in enumerate(maps)
    )
    batch = remoting.decode_messages(data)
    columns = batch.columns()
    assert tuple(columns) == remoting.COLUMNS

    def array(name: str, kind: Any) -> Any:
        return pa.Array.from_buffers(kind, 3, [part and pa.py_buffer(part) for part in columns[name]]).to_pylist()

    for name in ("body", "topic", "message_id"):
        kind = pa.binary() if name == "body" else pa.utf8()
        assert array(name, kind) == [getattr(one, name) for one in batch]
    assert array("tag", pa.utf8()) == ["a", None, "b"]
    assert array("keys", pa.utf8()) == ["k1 k2", None, None]
    for name in ("offset", "physical_offset", "born_at", "stored_at"):
        assert array(name, pa.int64()) == [getattr(one, name) for one in batch]
    for name in ("queue_id", "flag", "sys_flag", "attempts"):
        assert array(name, pa.int32()) == [getattr(one, name) for one in batch]
    _, rows, *texts = columns["properties"]
    names, values = (
        pa.Array.from_buffers(pa.utf8(), 6, [None, *(pa.py_buffer(part) for part in pair)])
        for pair in (texts[:2], texts[2:])
    )
    made = pa.MapArray.from_arrays(pa.Array.from_buffers(pa.int32(), 4, [None, pa.py_buffer(rows)]), names, values)
    assert [dict(row) for row in made.to_pylist()] == maps
    with pytest.raises(ConfigError, match="nonesuch"):
        batch.columns(["nonesuch"])


def test_rows_of_arrow_become_a_batch(remoting: ModuleType) -> None:
    batch = remoting.decode_messages(
        b"".join(message(remoting, b"b%d" % i, mapping={"TAGS": f"t{i}", "x": str(i)} if i else {}) for i in range(4))
    )
    columns = batch.columns(["body", "tag", "keys"])
    keys = remoting.UniqueKeys(b"\x7f\0\0\1", 1, 2)
    body = remoting.encode_columns(columns, 0, 2, unique=keys, now_ms=1_700_000_000_000)
    first, second = ((one, remoting.decode_properties(text)) for _, one, text in remoting.split_batch(body))
    assert first[0] == b"b0"
    assert first[1].keys() == {"UNIQ_KEY", "WAIT"}
    assert remoting.parse_unique_key(second[1].pop("UNIQ_KEY"))[4] == 1
    assert second == (b"b1", {"WAIT": "true", "TAGS": "t1"})
    columns = batch.columns(["body", "properties", "flag"])
    (last,) = remoting.split_batch(remoting.encode_columns(columns, 3, 4, wait=False))
    assert last == (0, b"b3", b"WAIT\x01false\x02TAGS\x01t3\x02x\x013\x02")
    assert remoting.encode_columns(columns, 2, 2) == b""
    for start, stop, wrong in ((0, 5, columns), (2, 1, columns), (0, 1, {}), (0, 1, {**columns, "topic": ()})):
        with pytest.raises(ConfigError):
            remoting.encode_columns(wrong, start, stop)


# -------------------------------------------------------------------------------------------------------------- ids


def test_unique_keys_tell_time_and_order(remoting: ModuleType) -> None:
    keys = remoting.UniqueKeys(bytes([10, 0, 0, 1]), 65537, 0xDEADBEEF, 0xFFFF)
    now = 1_700_000_000_123
    one, two = keys.next(now), keys.next(now + 1)
    assert one.startswith("0A000001" + "0001" + "DEADBEEF")
    ip, pid, salt, since, counter = remoting.parse_unique_key(one)
    assert (ip, pid, salt, counter) == (bytes([10, 0, 0, 1]), 1, 0xDEADBEEF, 0xFFFF)
    assert remoting.parse_unique_key(two)[3:] == (since + 1, 0)
    here = time.localtime(now / 1000)
    assert since == now - 1000 * time.mktime((here.tm_year, here.tm_mon, 1, 0, 0, 0, 0, 0, -1))
    assert remoting.parse_unique_key(keys.next(now - since - 10))[3] == 0
    assert remoting.parse_unique_key(keys.next(now - since - 2_000_000))[3] == 2**32 - 2_000_000
    assert len(remoting.UniqueKeys(bytes(16), 1, 2).next(now)) == 56
    with pytest.raises(ConfigError):
        remoting.UniqueKeys(b"abc", 1, 2)


def test_a_new_month_starts_a_new_count(remoting: ModuleType) -> None:
    keys = remoting.UniqueKeys(bytes(4), 1, 2)
    december = int(1000 * time.mktime((2023, 12, 31, 23, 59, 59, 0, 0, -1)))
    assert remoting.parse_unique_key(keys.next(december))[3] > 30 * 86_400_000
    assert remoting.parse_unique_key(keys.next(december + 1500))[3] == 500


def test_offset_ids(remoting: ModuleType) -> None:
    assert remoting.offset_id("10.0.0.1", 10911, 1024) == "0A00000100002A9F0000000000000400"
    assert remoting.parse_offset_id("0a00000100002a9f0000000000000400") == ("10.0.0.1", 10911, 1024)
    wide = remoting.offset_id("::1", 1, -1)
    assert remoting.parse_offset_id(wide) == ("::1", 1, -1)
    for wrong in ("", "0" * 31, "g" * 32, "0" * 55, " " * 32):
        with pytest.raises(ConfigError):
            remoting.parse_offset_id(wrong)
        with pytest.raises(ConfigError):
            remoting.parse_unique_key(wrong)
    for host, port in (("nowhere", 1), ("1.2.3.4\0", 1), ("1.2.3.4", 2**31)):
        with pytest.raises(ConfigError):
            remoting.offset_id(host, port, 0)


# ----------------------------------------------------------------------------------------------------------- memory


def decoded(remoting: ModuleType, data: bytes, rounds: int) -> int:
    """Decodes and touches everything again and again; gives the number of messages."""
    count = 0
    for _ in range(rounds):
        batch = remoting.decode_messages(data)
        count += len(batch)
        for one in batch:
            one.body, one.tag, one.keys, one.offset  # noqa: B018
        batch[len(batch) // 2].properties  # noqa: B018
    return count


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    "messages",
    [
        10**6,
        pytest.param(10**8, marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
    ],
)
def test_decoding_keeps_no_memory(messages: int) -> None:
    """Native only: pure's objects are Python's own, and 10^8 of them take a quarter of an hour."""
    remoting = pytest.importorskip("mqclient._native.remoting")
    data = b"".join(
        message(remoting, bytes(128), offset=i, mapping={"TAGS": f"t{i % 3}", "KEYS": f"k{i}", "n": str(i), "c": "red"})
        for i in range(1024)
    )
    decoded(remoting, data, 20)
    before = resident()
    assert decoded(remoting, data, messages // 1024) >= messages - 1024
    assert resident() - before <= 4 * 2**20

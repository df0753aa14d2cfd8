"""Stored messages, decoded lazily by native and eagerly by pure, look the same."""

from __future__ import annotations

import copy
import gc
import os
import sys
import zlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.errors import ProtocolError
from tests.support.remoting import SHEET_MESSAGE, message


@pytest.fixture
def remoting(codec: Impl) -> ModuleType:
    return codec.remoting


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


def test_native_objects_cannot_be_made_by_hand() -> None:
    """One made so would point nowhere."""
    remoting = pytest.importorskip("mqclient._native.remoting")
    (one,) = batch = remoting.decode_messages(SHEET_MESSAGE)
    for kind in (remoting.Message, remoting.MessageBatch, remoting.Frame):
        for make in (kind, lambda kind=kind: kind.__new__(kind), lambda kind=kind: object.__new__(kind)):
            with pytest.raises(TypeError):
                make()
    for thing in (one, batch):
        with pytest.raises(TypeError):
            copy.copy(thing)

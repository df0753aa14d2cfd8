"""Frames of the remoting protocol: cut from a stream, made, and moved over a descriptor, by both twins."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from mqclient._impl import Impl
from mqclient.errors import ConfigError, ProtocolError
from tests.support.remoting import SHEET_BINARY, SHEET_JSON


@pytest.fixture
def remoting(codec: Impl) -> ModuleType:
    return codec.remoting


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


def test_what_comes_into_the_vacancy_is_as_good_as_fed(remoting: ModuleType) -> None:
    data = SHEET_BINARY + remoting.encode_frame(0, 1, flag=1, body=os.urandom(3_000_000)) + SHEET_JSON
    fed, filled = remoting.FrameReader(), remoting.FrameReader()
    frames, rest, most = [], memoryview(data), 100
    while rest:
        room = filled.vacancy()
        part, most = rest[: min(len(room), most)], 10 * most
        room[: len(part)] = part
        frames += filled.filled(len(part))
        rest = rest[len(part) :]
    assert [(frame.code, frame.body) for frame in frames] == [(one.code, one.body) for one in fed.feed(data)]
    assert (filled.pending, filled.filled(0)) == (0, [])
    for count in (-1, len(filled.vacancy()) + 1):
        with pytest.raises(ConfigError, match="cannot have come"):
            filled.filled(count)


def test_bad_bytes_in_the_vacancy_are_a_state(remoting: ModuleType) -> None:
    reader = remoting.FrameReader()
    for bad in (b"\0\0\0\3junk", SHEET_JSON):
        reader.vacancy()[: len(bad)] = bad
        assert reader.filled(len(bad)) == []
        assert isinstance(reader.error, ProtocolError)
        assert reader.pending == 0


def test_a_body_may_be_sent_behind_its_frame(remoting: ModuleType) -> None:
    body = os.urandom(100)
    whole = remoting.encode_frame(0, 1, flag=1, body=body)
    assert remoting.encode_frame(0, 1, flag=1, behind=100) + body == whole
    assert remoting.encode_frame(0, 1, flag=1, body=body[:40], behind=60) + body[40:] == whole
    sent = {"born_at": 5, "batch": True}
    whole = remoting.encode_send(1, "g", "T", 0, b"", body, **sent)
    assert remoting.encode_send(1, "g", "T", 0, b"", b"", **sent, behind=100) + body == whole
    for wrong in (-1, remoting.MAX_FRAME, 2**62):
        with pytest.raises(ConfigError):
            remoting.encode_frame(0, 1, behind=wrong)


@pytest.mark.parametrize("text", ["x" * 5000 + '"\\\n' + "y" * 33, "\x1f" * 40, "z" * 15 + "\x7f\u20ac" + "w" * 16, ""])
def test_long_texts_survive_their_json(remoting: ModuleType, text: str) -> None:
    (frame,) = remoting.FrameReader().feed(remoting.encode_frame(0, 1, fields={"a": text, "b": "c"}))
    assert (frame.pick(("a", "b")), frame.field("a")) == ((text, "c"), text)


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


@pytest.mark.parametrize("form", [0, 1])
def test_several_fields_at_once(remoting: ModuleType, form: int) -> None:
    fields = {"queueId": "7", "msgId": "a,b", "name": "\xe4\n"}
    (frame,) = remoting.FrameReader().feed(remoting.encode_frame(0, 1, fields=fields, serialize=form))
    assert frame.pick(("msgId", "none", "queueId", "name")) == ("a,b", None, "7", "\xe4\n")
    assert frame.fields == fields
    assert frame.pick(("queueId",)) == ("7",)
    (empty,) = remoting.FrameReader().feed(remoting.encode_frame(0, 1))
    assert empty.pick(("queueId",)) == (None,)
    with pytest.raises(ConfigError, match="eight"):
        frame.pick(("a",) * 9)


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


def test_a_bell_ends_the_waiting_and_data_goes_before_it(remoting: ModuleType) -> None:
    with connected() as (one, two), connected() as (bell, ringer):
        reader = remoting.FrameReader()
        ringer.sendall(b"x")
        assert reader.wait(one.fileno(), -1, bell.fileno()) == remoting.WOULD_BLOCK
        two.sendall(SHEET_JSON)
        assert reader.wait(one.fileno(), -1, bell.fileno()) == 0
        bell.recv(1)
        assert len(reader.receive_into(one.fileno())[0]) == 1
        assert reader.wait(one.fileno(), 1, bell.fileno()) == remoting.WOULD_BLOCK


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


def test_pull_requests_name_only_what_was_given(remoting: ModuleType) -> None:
    (bare,) = remoting.FrameReader().feed(remoting.encode_pull(5, "g", "t", 3, 7))
    assert (bare.code, bare.opaque, bare.body) == (11, 5, b"")
    assert list(bare.fields) == [
        *("consumerGroup", "topic", "queueId", "queueOffset", "maxMsgNums", "sysFlag", "commitOffset"),
        *("suspendTimeoutMillis", "subVersion"),
    ]
    given = {"subscription": "a || b", "expression_type": "TAG", "max_bytes": 9, "broker": "b"}
    (full,) = remoting.FrameReader().feed(remoting.encode_pull(5, "g", "t", 3, 7, extra={"nsd": "true"}, **given))
    assert full.fields == {
        **bare.fields,
        "subscription": "a || b",
        "expressionType": "TAG",
        "maxMsgBytes": "9",
        "bname": "b",
        "nsd": "true",
    }


def test_sends_of_every_kind(remoting: ModuleType) -> None:
    options = {"code": 320, "batch": True, "oneway": True, "max_reconsume_times": 16, "unit_mode": True}
    (frame,) = remoting.FrameReader().feed(
        remoting.encode_send(5, "g", "t", -1, b"", b"x", born_at=1, extra={"AccessKey": "k"}, **options)
    )
    assert (frame.code, frame.is_oneway, frame.body) == (320, True, b"x")
    assert [frame.field(name) for name in ("e", "i", "k", "l", "m", "n", "AccessKey")] == [
        *("-1", "", "true", "16", "true", None, "k")
    ]

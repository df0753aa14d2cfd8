"""Command headers in both forms: what is read, what is refused, by both twins."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

from mqclient._impl import Impl
from mqclient.errors import ProtocolError
from tests.support.remoting import SHEET_BINARY, SHEET_JSON


@pytest.fixture
def remoting(codec: Impl) -> ModuleType:
    return codec.remoting


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


def test_header_fields_of_every_json_kind(remoting: ModuleType) -> None:
    ext = b'{"n":-1.5e3,"b":true,"x":null,"o":{"a":[1]},"u":"\\u4e2d\xe4\xb8\xad"}'
    header = b'{"code":"12","opaque":null,"extFields":' + ext + b"}"
    data = (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header
    (frame,) = remoting.FrameReader().feed(data)
    assert (frame.code, frame.opaque, frame.language, frame.version) == (12, 0, "JAVA", 0)
    assert frame.field("u") == "中中"
    assert frame.fields == {"n": "-1.5e3", "b": "true", "o": '{"a":[1]}', "u": "中中"}


@pytest.mark.parametrize(
    "header",
    [
        b'{"code":1,"remark":"\xff"}',
        b'{"code":NaN}',
        b'{"code":1.5}',
        b'{"code":2147483648}',
        b'{"code":null}',
        b'{"code":1,"extFields":[]}',
        b'{"code":1,"extFields":"{}"}',
        b'{"code":1,"x":' + b"[" * 33 + b"]" * 33 + b"}",
        b'{"code":1,"x":' + b"[" * 100_000 + b"}",
        b'{"code":1}}',
        b'{"code":1;"flag":2}',
        b'["code"]',
    ],
)
def test_json_that_is_no_header(remoting: ModuleType, header: bytes) -> None:
    reader = remoting.FrameReader()
    size = len(header).to_bytes(4, "big")
    assert reader.feed((4 + len(header)).to_bytes(4, "big") + size + header) == []
    assert isinstance(reader.error, ProtocolError)


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head[:13] + b"\xff\xff\xff\xff" + head[17:],  # a remark of -1 bytes
        lambda head: head[:17] + b"\0\0\0\x7f" + head[21:],  # more ext fields than there are bytes
        lambda head: head[:21] + b"\0\x7f" + head[23:],  # a name longer than its section
        lambda head: head.replace(b"topic", b"\xff\xff\xff\xff\xff"),
    ],
)
def test_binary_that_is_no_header(remoting: ModuleType, change: Callable[[bytes], bytes]) -> None:
    reader = remoting.FrameReader()
    assert reader.feed(SHEET_BINARY[:8] + change(SHEET_BINARY[8:])) == []
    assert isinstance(reader.error, ProtocolError)


def test_binary_headers_know_languages_by_number_and_no_empty_values(remoting: ModuleType) -> None:
    fields = {"a": "", "": "b", "c": "d"}
    data = remoting.encode_frame(1, 2, fields=fields, language="COBOL", remark="why", serialize=remoting.ROCKETMQ)
    (frame,) = remoting.FrameReader().feed(data)
    assert (frame.language, frame.remark, frame.fields, frame.field("a")) == ("OTHER", "why", {"c": "d"}, None)
    (frame,) = remoting.FrameReader().feed(data[:10] + b"\x63" + data[11:])
    assert frame.language == "OTHER"


def test_json_headers_keep_everything(remoting: ModuleType) -> None:
    fields = {"quote": '"\\/\b\f\n\r\t\x01\x1f', "中": "😀", "empty": ""}
    (frame,) = remoting.FrameReader().feed(remoting.encode_frame(1, 2, fields=fields, remark="", language="GO"))
    assert (frame.fields, frame.remark, frame.language) == (fields, "", "GO")
    assert remoting.FrameReader().feed(remoting.encode_frame(1, 2, fields={}))[0].fields == {}
    assert remoting.FrameReader().feed(remoting.encode_frame(1, 2))[0].fields == {}

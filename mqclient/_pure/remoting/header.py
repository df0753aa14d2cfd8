"""The command header in its two forms, flat JSON and binary: from bytes to fields and back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from json import JSONDecodeError, JSONDecoder
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring
from struct import pack
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError, ProtocolError

from .cursor import Cursor

JSON: Final = 0
ROCKETMQ: Final = 1
LANGUAGES: Final = (
    *("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY"),
    *("OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS"),
)  # a language's binary code is its place here
DEEPEST: Final = 32  # nested arrays and objects in one value; real headers have none

_blank = re.compile(r"[ \t\n\r]*").match
_small = re.compile(r"-?[0-9]{1,10}\Z", re.ASCII).match


class Header(NamedTuple):
    """What a header says; `fields` are the ext fields."""

    code: int
    language: str
    version: int
    opaque: int
    flag: int
    remark: str | None
    fields: dict[str, str]


def decode_header(form: int, data: bytes) -> Header:
    """The header in form JSON or ROCKETMQ; ProtocolError for anything else."""
    if form == JSON:
        return _decode_json(data)
    if form == ROCKETMQ:
        return _decode_binary(data)
    raise ProtocolError(f"header form {form} is not known")


# ------------------------------------------------------------------------------------------------------------- JSON


def _refuse(constant: str) -> None:
    raise ProtocolError(f"{constant} in a header")


_value = JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse).raw_decode


def _decode_json(data: bytes) -> Header:
    try:
        text = data.decode()
        members, raw = {}, "null"
        for name, value, written in _object(text):
            members[name] = value
            raw = written if name == "extFields" else raw
        fields = _fields(raw)
    except (UnicodeDecodeError, JSONDecodeError, RecursionError) as error:
        raise ProtocolError(f"header is no JSON: {error}") from error
    if members.get("code") is None:
        raise ProtocolError("header without a code")
    return Header(
        _int32(members, "code"),
        members.get("language") or "JAVA",
        _int32(members, "version"),
        _int32(members, "opaque"),
        _int32(members, "flag"),
        members.get("remark"),
        fields,
    )


def _fields(raw: str) -> dict[str, str]:
    if raw == "null":
        return {}
    fields = {name: value for name, value, _ in _object(raw)}
    return {name: value for name, value in fields.items() if value is not None}


def _object(text: str) -> Iterator[tuple[str, str | None, str]]:
    """The members of the object that `text` is: name, value and how it is written. A string's value is what it says,
    null's is None, anything else's its JSON text."""
    at = _expect(text, 0, "{")
    if text[at : at + 1] != "}":
        while True:
            name, at = scanstring(text, _expect(text, at, '"'), True)
            start = _expect(text, at, ":")
            value, at = _value(text, start)
            yield name, _as_text(value, text[start:at]), text[start:at]
            at = _blank(text, at).end()  # type: ignore[union-attr]
            if text[at : at + 1] != ",":
                break
            at = _blank(text, at + 1).end()  # type: ignore[union-attr]
    if _expect(text, at, "}") != len(text):
        raise ProtocolError(f"more after the header's end at {at}")


def _expect(text: str, at: int, mark: str) -> int:
    """Step over blanks, `mark` and blanks (not after a quote)."""
    at = _blank(text, at).end()  # type: ignore[union-attr]
    if text[at : at + 1] != mark:
        raise ProtocolError(f"{mark!r} wanted at {at} of the header")
    return at + 1 if mark == '"' else _blank(text, at + 1).end()  # type: ignore[union-attr]


def _as_text(value: Any, raw: str) -> str | None:
    if value is None or (isinstance(value, str) and raw.startswith('"')):
        return value
    if isinstance(value, (dict, list)) and _depth(value) > DEEPEST:
        raise ProtocolError("header nested too deeply")
    return raw


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max((_depth(one) for one in inner if isinstance(one, (dict, list))), default=0)


def _int32(members: dict[str, str | None], name: str) -> int:
    text = members.get(name)
    if text is None:
        return 0
    if not _small(text) or not -(2**31) <= int(text) < 2**31:
        raise ProtocolError(f"header's {name} is no 32-bit integer")
    return int(text)


def encode_json(header: Header, fields: Mapping[str, str] | None) -> bytes:
    """Keys in alphabetical order and null members left out, as the Java writer does."""
    parts = [f'{{"code":{header.code}']
    if fields is not None:
        inner = ",".join(f"{encode_basestring(name)}:{encode_basestring(value)}" for name, value in fields.items())
        parts.append(f'"extFields":{{{inner}}}')
    parts.append(f'"flag":{header.flag},"language":{encode_basestring(header.language)},"opaque":{header.opaque}')
    if header.remark is not None:
        parts.append(f'"remark":{encode_basestring(header.remark)}')
    parts.append(f'"serializeTypeCurrentRPC":"JSON","version":{header.version}}}')
    return utf8(",".join(parts))


# ----------------------------------------------------------------------------------------------------------- binary


def _decode_binary(data: bytes) -> Header:
    cursor = Cursor(data, 0, len(data))
    code = cursor.i16()
    language = cursor.u8()
    version = cursor.i16()
    opaque = cursor.i32()
    flag = cursor.i32()
    try:
        remark = cursor.take(cursor.i32()).decode()
        fields = _binary_fields(cursor)
    except UnicodeDecodeError as error:
        raise ProtocolError(f"header is not UTF-8: {error}") from error
    name = LANGUAGES[language] if language < len(LANGUAGES) else "OTHER"
    return Header(code, name, version, opaque, flag, remark or None, fields)


def _binary_fields(cursor: Cursor) -> dict[str, str]:
    size = cursor.i32()
    start = cursor.skip(size)
    entries = Cursor(cursor.data, start, start + size)
    fields: dict[str, str] = {}
    while entries.at < entries.end:
        name = entries.take(entries.i16()).decode()
        fields[name] = entries.take(entries.i32()).decode()
    return {name: value for name, value in fields.items() if name and value}


def encode_binary(header: Header, fields: Mapping[str, str] | None) -> bytes:
    if not -(2**15) <= header.code < 2**15 or not -(2**15) <= header.version < 2**15:
        raise ConfigError(f"code {header.code} or version {header.version} does not fit the binary header")
    language = LANGUAGES.index(header.language) if header.language in LANGUAGES else LANGUAGES.index("OTHER")
    remark = utf8(header.remark or "")
    ext = b"".join(_binary_field(utf8(name), utf8(value)) for name, value in (fields or {}).items())
    fixed = pack(">hBhii", header.code, language, header.version, header.opaque, header.flag)
    return b"".join((fixed, pack(">i", len(remark)), remark, pack(">i", len(ext)), ext))


def _binary_field(name: bytes, value: bytes) -> bytes:
    if len(name) >= 2**15:
        raise ConfigError("name of a header field longer than 32767 bytes")
    return b"".join((pack(">h", len(name)), name, pack(">i", len(value)), value))


def utf8(text: str) -> bytes:
    """UTF-8; ConfigError where the text has half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"text that is no Unicode: {error.reason} at {error.start}") from error

"""Owns a small HTTP/1.1 server connection: requests in order, answers by a function, everything bounded."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

log = logging.getLogger("mqclient.broker")

MAX_HEAD: Final = 64 << 10
MAX_BODY: Final = 8 << 20
IDLE: Final = 60.0
"""Seconds in which a request must be complete."""


@dataclass(slots=True)
class Request:
    """One request; header names are in lower case, the parts of the path are decoded."""

    method: str
    path: tuple[str, ...]
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class Answer:
    """A status, and what is told: bytes as they are, None: nothing, anything else as JSON."""

    status: int = 204
    content: Any = None
    headers: dict[str, str] = field(default_factory=dict)


class BadRequest(Exception):
    """The bytes are no request that we read; the connection ends after the answer."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Parser:
    """Requests out of bytes.

    >>> parser = Parser()
    >>> parser.feed(b"GET /admin/v2/clusters?a=1 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\nPOST /x")
    >>> request = parser.next()
    >>> request.method, request.path, request.query, parser.next()
    ('GET', ('admin', 'v2', 'clusters'), {'a': '1'}, None)
    """

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        self._bytes += data

    def next(self) -> Request | None:
        """The next complete request, if there is one."""
        end = self._bytes.find(b"\r\n\r\n", 0, MAX_HEAD + 4)
        if end < 0:
            if len(self._bytes) > MAX_HEAD:
                raise BadRequest(431, "the headers are too long")
            return None
        lines = self._bytes[:end].decode("latin-1").split("\r\n")
        headers = _headers(lines[1:])
        length = _length(headers)
        start = end + 4
        if len(self._bytes) < start + length:
            return None
        body = bytes(self._bytes[start : start + length])
        del self._bytes[: start + length]
        return _request(lines[0], headers, body)


def _headers(lines: list[str]) -> dict[str, str]:
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, colon, value in pairs if colon}


def _length(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise BadRequest(411, "the length of the body must be given")
    text = headers.get("content-length", "0")
    if not text.isdecimal() or not text.isascii():
        raise BadRequest(400, f"Content-Length {text[:20]!r} is no number")
    if len(text) > 10 or int(text) > MAX_BODY:
        raise BadRequest(413, f"a body may have {MAX_BODY} bytes")
    return int(text)


def _request(line: str, headers: Mapping[str, str], body: bytes) -> Request:
    method, _, rest = line.partition(" ")
    target, _, version = rest.rpartition(" ")
    if not target.startswith("/") or not version.startswith("HTTP/1."):
        raise BadRequest(400, "this is no HTTP/1 request")
    try:
        split = urlsplit(target)
        query = dict(parse_qsl(split.query, keep_blank_values=True, max_num_fields=100))
    except ValueError as error:
        raise BadRequest(400, f"the address cannot be read: {error}") from None
    path = tuple(unquote(part) for part in split.path.strip("/").split("/"))
    return Request(method, path, query, headers, body)


def encode(answer: Answer, *, head_only: bool = False, close: bool = False) -> bytes:
    """The bytes of an answer."""
    content, kind = answer.content, "application/json"
    if isinstance(content, bytes):
        body, kind = content, "application/octet-stream"
    else:
        body = b"" if content is None else json.dumps(content, separators=(",", ":")).encode()
    headers = {"Content-Length": str(len(body)), "Connection": "close" if close else "keep-alive"}
    if body:
        headers["Content-Type"] = kind
    headers |= answer.headers
    if answer.status == HTTPStatus.NO_CONTENT:
        del headers["Content-Length"]
    lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (b"" if head_only else body)


class HttpSession(asyncio.Protocol):
    """One visitor: kept alive between requests, gone when idle."""

    def __init__(self, answer: Callable[[Request], Answer], visitors: set[HttpSession]) -> None:
        self._answer = answer
        self._visitors = visitors
        self._parser = Parser()
        self._transport: asyncio.Transport | None = None
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._visitors.add(self)
        self._wait()

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        try:
            while (request := self._parser.next()) is not None:
                self._serve(request)
                self._wait()
        except BadRequest as bad:
            self._write(encode(Answer(bad.status, {"reason": str(bad)}), close=True))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._visitors.discard(self)
        if self._idle is not None:
            self._idle.cancel()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _serve(self, request: Request) -> None:
        try:
            answer = self._answer(request)
        except Exception:
            # One request must not end the others' broker; the visitor hears of it, and the log has the trace.
            log.exception("REST %s /%s failed", request.method, "/".join(request.path))
            answer = Answer(500, {"reason": "the embedded broker failed: see its log"})
        close = request.headers.get("connection", "").lower() == "close"
        self._write(encode(answer, head_only=request.method == "HEAD", close=close))
        if close:
            self.close()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _wait(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = asyncio.get_running_loop().call_later(IDLE, self.close)

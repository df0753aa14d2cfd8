"""The small HTTP server: requests out of any slices, bounds, answers."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.broker.pulsar import http
from mqclient.broker.pulsar.http import Answer, BadRequest, HttpSession, Parser, Request, encode

BOTH = b"PUT /a%2Fb/c?x=1&y= HTTP/1.1\r\nContent-Length: 3\r\nX: y\r\n\r\n123GET / HTTP/1.0\r\n\r\n"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_requests_in_slices(size: int) -> None:
    parser = Parser()
    found: list[Request] = []
    for start in range(0, len(BOTH), size):
        parser.feed(BOTH[start : start + size])
        while (request := parser.next()) is not None:
            found.append(request)
    assert [(request.method, request.path, request.body) for request in found] == [
        ("PUT", ("a/b", "c"), b"123"),
        ("GET", ("",), b""),
    ]
    assert (found[0].query, found[0].headers["x"]) == ({"x": "1", "y": ""}, "y")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"x" * (http.MAX_HEAD + 10), 431),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
        (b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", 413),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET http://[ HTTP/1.1\r\n\r\n", 400),
        (b"GET //[ HTTP/1.1\r\n\r\n", 400),
    ],
)
def test_what_is_no_request(data: bytes, status: int) -> None:
    parser = Parser()
    parser.feed(data)
    with pytest.raises(BadRequest) as refused:
        parser.next()
    assert refused.value.status == status


def test_answers() -> None:
    head, _, body = encode(Answer(200, {"a": [1]})).partition(b"\r\n\r\n")
    assert (head.split(b"\r\n")[0], body) == (b"HTTP/1.1 200 OK", b'{"a":[1]}')
    assert b"Content-Type: application/json" in head
    assert b"Content-Length: 9" in head
    assert encode(Answer(200, b"OK"), head_only=True).endswith(b"\r\n\r\n")
    assert b"Content-Length" not in encode(Answer())
    assert b"Connection: close" in encode(Answer(), close=True)


async def _talk(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    try:
        return await reader.read()
    finally:
        writer.close()


def test_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: Request) -> Answer:
        if request.path == ("fail",):
            raise ZeroDivisionError
        return Answer(200, request.body)

    async def run() -> None:
        visitors: set[HttpSession] = set()
        server = await asyncio.get_running_loop().create_server(lambda: HttpSession(answer, visitors), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        two = b"PUT / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi" * 2
        told = await _talk(port, two + b"GET /fail HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert told.count(b"HTTP/1.1 200 OK") == 2
        assert b"HTTP/1.1 500" in told
        assert b"HTTP/1.1 400" in await _talk(port, b"nonsense\r\n\r\n")
        monkeypatch.setattr(http, "IDLE", 0.01)
        assert await _talk(port, b"GET /") == b""
        server.close()

    asyncio.run(run())


def test_over_real_sockets() -> None:
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as broker:
        with urllib.request.urlopen(f"{broker.pulsar_rest}/admin/v2/clusters", timeout=10) as reply:
            assert reply.read() == b'["standalone"]'
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{broker.pulsar_rest}/admin/v2/worker/cluster", timeout=10)
        assert refused.value.code == 501
        refused.value.close()

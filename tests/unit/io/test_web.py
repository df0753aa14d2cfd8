"""One GET against a server of our own: answers, refusals, redirects, and what is no web service."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mqclient.errors import LinkError, ProtocolError
from mqclient.io.web import Reply, Web


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        status, content, where = self.server.answers[self.path]
        self.send_response(status)
        if where:
            self.send_header("Location", where)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Not to the terminal."""


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str | None]] = []
        self.answers: dict[str, tuple[int, bytes, str]] = {
            "/good": (200, b'{"partitions": 3}', ""),
            "/moved": (307, b"", "/good"),
            "/reason": (404, b'{"reason": "no such topic"}', ""),
            "/text": (503, b"not now", ""),
            "/silent": (500, b"", ""),
            "/number": (401, b"7", ""),
            "/nonsense": (200, b"<html>", ""),
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture(name="server", scope="module")
def server_fixture() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_answer(server: Server) -> None:
    assert Web(None, 5).get(f"{server.url}/good", {"Authorization": "Bearer x"}) == Reply(200, {"partitions": 3})
    assert server.seen[-1] == ("/good", "Bearer x")


def test_a_redirect_keeps_the_credentials(server: Server) -> None:
    assert Web(None, 5).ask(f"{server.url}/moved", {"Authorization": "Bearer x"}).content == {"partitions": 3}
    assert server.seen[-1] == ("/good", "Bearer x")


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("reason", Reply(404, "no such topic")),
        ("text", Reply(503, "not now")),
        ("silent", Reply(500, "Internal Server Error")),
        ("number", Reply(401, "7")),
    ],
)
def test_refusals(server: Server, path: str, wanted: Reply) -> None:
    assert Web(None, 5).ask(f"{server.url}/{path}", {}) == wanted


def test_no_json(server: Server) -> None:
    with pytest.raises(ProtocolError, match="/nonsense answered no JSON"):
        Web(None, 5).ask(f"{server.url}/nonsense", {})


def test_under_asyncio_it_is_awaited(server: Server) -> None:
    async def ask() -> Any:
        found: Any = Web(None, 5).get(f"{server.url}/good", {})
        return await found

    assert asyncio.run(ask()).content == {"partitions": 3}


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as place:
        port = place.getsockname()[1]
    with pytest.raises(LinkError, match=rf"127.0.0.1:{port}.*refused"):
        Web(None, 5).ask(f"http://127.0.0.1:{port}/x", {})


def test_somebody_who_speaks_otherwise() -> None:
    with socket.create_server(("127.0.0.1", 0)) as place:

        def answer() -> None:
            with place.accept()[0] as taken:
                taken.recv(1000)
                taken.sendall(b"\0\0\0\5nonsense\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(LinkError, match="no web service answers there"):
            Web(None, 5).ask(f"http://127.0.0.1:{place.getsockname()[1]}/x", {})
        thread.join()

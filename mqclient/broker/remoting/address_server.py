"""Owns the HTTP address at which clients without a configured name server ask for one: `GET /rocketmq/nsaddr`.

Java's clients look there by `-Drocketmq.namesrv.domain=host:port`; a unit's name comes as `/rocketmq/nsaddr-unit`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

PATH: Final = "/rocketmq/nsaddr"
MOST: Final = 8192
SECONDS: Final = 10.0


class AddressServer:
    """Answers one request a connection, whatever the client asks besides."""

    def __init__(self, addresses: Callable[[], str]) -> None:
        self._addresses = addresses
        self._server: asyncio.Server | None = None
        self.address = ""

    async def start(self, host: str) -> None:
        self._server = await asyncio.start_server(self._serve, host, 0, limit=MOST)
        host, port = self._server.sockets[0].getsockname()[:2]
        self.address = f"http://{host}:{port}{PATH}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), SECONDS)
            writer.write(self._answer(head.split(b"\r\n", 1)[0].decode("latin-1")))
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.TimeoutError, ConnectionError):
            pass  # no request in time and measure: there is nothing to answer
        finally:
            writer.close()

    def _answer(self, line: str) -> bytes:
        method, _, rest = line.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        found = method == "GET" and (path == PATH or path.startswith(f"{PATH}-"))
        body = f"{self._addresses()}\n".encode() if found else b""
        status = "200 OK" if found else "404 Not Found"
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body

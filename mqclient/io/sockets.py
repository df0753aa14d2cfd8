"""Owns how our sockets are set up, and where a loop reads to."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

GATHER = 1000
"""Buffers of one gathering write; systems allow 1024."""
_READ_SIZE = 128 * 1024


def tune(sock: socket.socket) -> None:
    """No delay for small frames; a peer that vanished without a word is noticed within a minute or two."""
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 30),
        ("TCP_KEEPINTVL", 10),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 60_000),
    ):
        number = getattr(socket, option, None)  # not every system has all four
        if number is not None:
            sock.setsockopt(socket.IPPROTO_TCP, number, value)


def reading_into(reader: Any) -> tuple[Callable[[], memoryview], Callable[[int], list[Any]]]:
    """Where the next bytes are received, and what takes note that so many came: the frames that are now complete."""
    if hasattr(reader, "vacancy"):
        return reader.vacancy, reader.filled
    room = memoryview(bytearray(_READ_SIZE))
    return lambda: room, lambda count: reader.feed(room[:count])


def name_of(address: object) -> str:
    """`getsockname()` or `getpeername()` as host:port."""
    if isinstance(address, tuple) and len(address) >= 2:
        host, port = address[0], address[1]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    return str(address)

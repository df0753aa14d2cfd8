"""Owns how our sockets are set up, and what is left of a list of buffers after a partial write."""

from __future__ import annotations

import socket
from collections.abc import Sequence

Buffer = bytes | bytearray | memoryview

GATHER = 1000
"""Buffers of one gathering write; systems allow 1024."""


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


def name_of(address: object) -> str:
    """`getsockname()` or `getpeername()` as host:port."""
    if isinstance(address, tuple) and len(address) >= 2:
        host, port = address[0], address[1]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    return str(address)


def unsent(buffers: Sequence[Buffer], sent: int) -> list[Buffer]:
    """What remains of the buffers after so many bytes went out.

    >>> [bytes(part) for part in unsent([b"abc", b"de"], 2)]
    [b'c', b'de']
    """
    for index, buffer in enumerate(buffers):
        if sent < len(buffer):
            head = memoryview(buffer)[sent:] if sent else buffer
            return [head, *buffers[index + 1 :]]
        sent -= len(buffer)
    return []

"""What a turn says reaches the transport in order, small parts together, large ones as they are."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.broker.outgoing import LARGE, WORTH, write_parts


class Taking:
    def __init__(self) -> None:
        self.taken: list[Any] = []

    def write(self, data: Any) -> None:
        self.taken.append(data)

    def writelines(self, parts: Any) -> None:
        self.taken.append(b"".join(parts))


def test_small_parts_go_together_and_large_ones_as_they_are() -> None:
    transport: Any = Taking()
    large, view = b"x" * LARGE, memoryview(b"y" * LARGE)
    write_parts(transport, [b"a", bytearray(b"b"), large, view, memoryview(b"c"), b"d"])
    assert transport.taken[0] == b"ab"
    assert transport.taken[1] is large
    assert transport.taken[2] is view
    assert transport.taken[3:] == [b"cd"]


def test_nothing_writes_nothing() -> None:
    transport: Any = Taking()
    write_parts(transport, [])
    assert transport.taken == []


class Socket(Taking):
    """A transport of a socket that takes bytes only as they are read."""

    def __init__(self, sock: socket.socket, waiting: int = 0, **more: Any) -> None:
        super().__init__()
        self.waiting = waiting
        self.told = {"socket": sock, **more}

    def get_extra_info(self, name: str) -> Any:
        return self.told.get(name)

    def get_write_buffer_size(self) -> int:
        return self.waiting


def received(sock: socket.socket) -> bytes:
    found = b""
    sock.setblocking(False)
    try:
        while part := sock.recv(1 << 20):
            found += part
    except BlockingIOError:
        return found
    return found


@pytest.mark.parametrize("count", [3, 500])
def test_a_plain_socket_takes_them_from_where_they_lie(codec: Impl, count: int) -> None:
    ours, theirs = socket.socketpair()
    parts = [b"%07d" % number * (WORTH // count) for number in range(count)]
    with ours, theirs:
        ours.setblocking(False)
        transport: Any = Socket(ours)
        write_parts(transport, map(memoryview, parts), codec.pulsar.send_now)
        got = received(theirs)
        assert got
        assert got + b"".join(transport.taken) == b"".join(parts)


def test_what_does_not_go_at_once_is_the_transports(codec: Impl) -> None:
    ours, theirs = socket.socketpair()
    parts = [bytes([number]) * WORTH for number in range(200)]
    with ours, theirs:
        ours.setblocking(False)
        transport: Any = Socket(ours)
        write_parts(transport, parts, codec.pulsar.send_now)
        got = received(theirs)
        assert 0 < len(got) < 200 * WORTH
        assert got + b"".join(transport.taken) == b"".join(parts)
        theirs.close()
        transport.taken.clear()
        write_parts(transport, parts, codec.pulsar.send_now)  # the transport meets the error
        assert b"".join(transport.taken) == b"".join(parts)


@pytest.mark.parametrize("how", [{"waiting": 1}, {"sslcontext": "one"}, {"socket": None}, {"few": True}])
def test_others_write_by_themselves(codec: Impl, how: dict[str, Any]) -> None:
    ours, theirs = socket.socketpair()
    size = 10 if "few" in how else WORTH
    rest = {name: value for name, value in how.items() if name not in ("few", "socket")}
    with ours, theirs:
        transport: Any = Socket(how.get("socket", ours), **rest)
        write_parts(transport, [b"x" * size], codec.pulsar.send_now)
        assert transport.taken == [b"x" * size]
        assert received(theirs) == b""

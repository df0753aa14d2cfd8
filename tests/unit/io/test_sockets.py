"""Socket options, and what is left after a partial write."""

from __future__ import annotations

import socket

import pytest

from mqclient.io.sockets import Buffer, name_of, tune, unsent

PARTS: list[Buffer] = [b"abc", bytearray(b"d"), memoryview(b""), b"efgh"]


@pytest.mark.parametrize("sent", range(9))
def test_what_is_left_after_any_number_of_bytes(sent: int) -> None:
    rest = unsent(PARTS, sent)
    assert b"".join(rest) == b"abcdefgh"[sent:]
    assert all(len(part) for part in rest[:1]), "no empty buffer in front"


def test_small_frames_are_not_delayed_and_silent_peers_are_noticed() -> None:
    with socket.socket() as sock:
        tune(sock)
        assert not sock.getblocking()
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


@pytest.mark.parametrize(
    ("address", "name"),
    [(("1.2.3.4", 5), "1.2.3.4:5"), (("::1", 5, 0, 0), "[::1]:5"), ("/path", "/path"), (None, "None")],
)
def test_addresses_print_as_people_write_them(address: object, name: str) -> None:
    assert name_of(address) == name

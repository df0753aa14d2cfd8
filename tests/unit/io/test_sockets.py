"""Socket options, and where a loop reads to."""

from __future__ import annotations

import socket

import pytest

from mqclient.io.sockets import name_of, reading_into, tune
from tests.support.echo import EchoReader, frame


def test_a_reader_without_room_is_fed() -> None:
    vacancy, filled = reading_into(EchoReader())
    first = frame(1, b"x")
    vacancy()[: len(first)] = first
    assert filled(len(first)) == [(1, b"x")]
    assert filled(len(first) - 1) == []


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

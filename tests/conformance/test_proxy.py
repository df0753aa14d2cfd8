"""The proxy that tests put before any broker, embedded or real: slow, narrow, and changing bytes by a seed."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.support.proxy import CuttingProxy


@pytest.fixture(name="echo")
def echo_fixture() -> Iterator[tuple[str, int]]:
    """A server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    sock, _ = server.accept()
                except OSError:
                    return
                with sock:
                    while data := sock.recv(65536):
                        sock.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()
        server.shutdown(socket.SHUT_RDWR)
    thread.join(20)


def echoed(proxy: CuttingProxy, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", proxy.port)) as sock:
        sock.settimeout(20)
        sock.sendall(data)
        found = b""
        while len(found) < len(data):
            found += sock.recv(65536)
    return found


def test_a_slow_way(echo: tuple[str, int]) -> None:
    with CuttingProxy(echo) as proxy:
        proxy.latency = 0.05
        began = time.monotonic()
        assert echoed(proxy, b"x") == b"x"
        assert time.monotonic() - began >= 0.1, "there and back"
        proxy.latency, proxy.bandwidth, proxy.piece = 0.0, 100_000, 1000
        began = time.monotonic()
        assert echoed(proxy, bytes(10_000)) == bytes(10_000)
        assert time.monotonic() - began >= 0.1


def test_what_is_corrupted_is_so_by_the_seed_however_it_comes(echo: tuple[str, int]) -> None:
    found = []
    for seed, piece in ((1, None), (1, 7), (2, None)):
        with CuttingProxy(echo, seed=seed) as proxy:
            proxy.corrupt, proxy.piece = 0.05, piece
            found.append([echoed(proxy, bytes(2000)) for _ in range(2)])
    assert found[0] == found[1] != found[2]
    assert found[0][0] != found[0][1], "each connection is changed in its own way"
    assert all(100 < sum(byte != 0 for byte in one) < 300 for pair in found for one in pair)

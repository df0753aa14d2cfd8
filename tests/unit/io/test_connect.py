"""The way to an open socket: names, several addresses, deadlines."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mqclient.config import TLS
from mqclient.core.driver import Address
from mqclient.errors import LinkError
from mqclient.io.threads import ThreadsDriver
from mqclient.io.tls import encrypted
from tests.support.certificates import make
from tests.support.echo import EchoEngine, EchoServer

NOWHERE = "192.0.2.1"  # reserved for documentation: nobody answers, or the system says so at once


def candidates(*targets: tuple[str, int]) -> Any:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", target) for target in targets]
    return lambda *_arguments, **_options: found


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def ask(address: Address, body: bytes = b"x", timeout: float = 20) -> bytes:
    driver = ThreadsDriver("test")
    try:
        engine = EchoEngine(driver, address)
        return driver.wait(engine.submit(body, timeout), driver.deadline(timeout))
    finally:
        driver.close()


def test_names_are_looked_up() -> None:
    with EchoServer() as server:
        assert ask(Address("localhost", server.port)) == b"x"


def test_all_addresses_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    with EchoServer() as server:
        refused = ("127.0.0.1", free_port())
        monkeypatch.setattr(socket, "getaddrinfo", candidates(refused, refused, ("127.0.0.1", server.port)))
        assert ask(Address("somewhere", 1)) == b"x"


def test_an_address_that_does_not_answer_takes_its_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with EchoServer() as server, socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        # A listener whose queue is full: the system drops what comes, as a firewall does.
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
            fillers.append(filler)
        monkeypatch.setattr(socket, "getaddrinfo", candidates(full.getsockname(), ("127.0.0.1", server.port)))
        start = time.monotonic()
        assert ask(Address("somewhere", 1)) == b"x"
        assert time.monotonic() - start > 2, "it had half of the five seconds"
        for filler in fillers:
            filler.close()


def test_a_name_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: Any, **_options: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with pytest.raises(LinkError, match="Name or service not known"):
        ask(Address("no-such-host", 1))


@pytest.mark.parametrize("host", ["", "x" * 300, "a..b"])
def test_a_name_that_cannot_be_one(host: str) -> None:
    with pytest.raises(LinkError, match="could not connect"):
        ask(Address(host, 1))


def test_a_slow_lookup_holds_up_nobody_else_and_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    real = socket.getaddrinfo

    def slow(*arguments: Any, **options: Any) -> Any:
        release.wait(20)
        return real(*arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    driver = ThreadsDriver("test")
    with EchoServer() as server:
        waiting = EchoEngine(driver, Address("localhost", server.port))
        slot = waiting.submit(b"slow", 20)
        quick = EchoEngine(driver, server.address)
        assert driver.wait(quick.submit(b"quick", 20), driver.deadline(20)) == b"quick"
        with driver.enter() as now:
            waiting.link.close()
            waiting.link.connect(now.mono + 0.1)
        late = waiting.submit(b"later", 20)
        with pytest.raises(LinkError, match="no connection in time"):
            driver.wait(late, driver.deadline(20))
        assert slot.done
        release.set()
        driver.close()


def test_a_numeric_host_needs_no_lookup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", None)
    with EchoServer() as server:
        assert ask(server.address) == b"x"


def test_ipv6() -> None:
    try:
        listener = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with listener:
        accepted = threading.Event()

        def accept() -> None:
            listener.accept()[0].close()
            accepted.set()

        threading.Thread(target=accept, daemon=True).start()
        with pytest.raises(LinkError, match=r"\[::1\]:"):
            ask(Address("::1", listener.getsockname()[1]))
        assert accepted.wait(5)


def test_closing_while_connecting_leaves_no_socket() -> None:
    driver = ThreadsDriver("test")
    engine = EchoEngine(driver, Address(NOWHERE, 9))
    engine.close()
    start = time.monotonic()
    driver.close()
    assert time.monotonic() - start < 2


def test_the_handshake_is_part_of_it(tmp_path: Path) -> None:
    certificates = make(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.certificate, certificates.key)
    tls = encrypted(TLS(trust=certificates.authority))
    with EchoServer(tls=context) as server:
        assert ask(server.address._replace(tls=tls), b"L" * 100_000) == b"L" * 100_000
    untrusted = encrypted(TLS())
    with EchoServer(tls=context) as server, pytest.raises(LinkError, match="CERTIFICATE_VERIFY_FAILED"):
        ask(server.address._replace(tls=untrusted))


def test_a_handshake_that_is_not_answered_ends_at_the_deadline() -> None:
    driver = ThreadsDriver("test")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address("127.0.0.1", silent.getsockname()[1], tls=encrypted(TLS()))
        engine = EchoEngine(driver, address)
        with driver.enter() as now:
            engine.link.close()
            engine.link.connect(now.mono + 0.2)
        with pytest.raises(LinkError, match="no connection in time"):
            driver.wait(engine.submit(b"x", 20), driver.deadline(20))
    driver.close()


def test_a_name_without_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", candidates())
    with pytest.raises(LinkError, match="has no address"):
        ask(Address("somewhere", 1))


def test_an_address_that_cannot_be_reached_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    # The system refuses at once, without a connection that is in progress.
    monkeypatch.setattr(socket, "getaddrinfo", candidates(("255.255.255.255", 1)))
    with pytest.raises(LinkError, match="could not connect"):
        ask(Address("somewhere", 1))

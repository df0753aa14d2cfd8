"""Who knows no name server asks by HTTP."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.broker.remoting import address_server


@pytest.fixture(name="broker", scope="module")
def broker_fixture() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["rocketmq"], impl="pure", address_server=True) as broker:
        yield broker


def get(url: str, method: str = "GET") -> str:
    request = urllib.request.Request(url, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=5) as answer:
        return str(answer.read().decode())


@pytest.mark.parametrize("more", ["", "-unit?nofix=1", "?x=1"])
def test_the_name_server_is_told(broker: EmbeddedBroker, more: str) -> None:
    url = broker.addresses()["address_server"]
    assert url.endswith("/rocketmq/nsaddr")
    assert get(url + more) == broker.name_server + "\n"


@pytest.mark.parametrize(("more", "method"), [("x", "GET"), ("/../other", "GET"), ("", "POST")])
def test_nothing_else_is(broker: EmbeddedBroker, more: str, method: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(broker.addresses()["address_server"] + more, method)


@pytest.mark.parametrize("sent", [b"", b"GET /rocketmq", b"x" * 100_000])
def test_what_is_no_request_ends(broker: EmbeddedBroker, sent: bytes) -> None:
    host, _, port = broker.addresses()["address_server"].split("/")[2].partition(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(100) == b""
        except ConnectionError:
            pass  # too much was sent: it was closed before all of it was there
    assert get(broker.addresses()["address_server"])


def test_who_says_nothing_is_not_waited_for(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address_server, "SECONDS", 0.05)
    host, _, port = broker.addresses()["address_server"].split("/")[2].partition(":")
    with socket.create_connection((host, int(port)), 5) as connection:
        assert connection.recv(100) == b""


def test_it_is_there_only_when_asked_for(codec: Any) -> None:
    with EmbeddedBroker(doors=["rocketmq"], impl=codec) as broker:
        assert "address_server" not in broker.addresses()

"""Bytes that leave one at a time, doors that are shut."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from tests.differential.raw_pulsar import RawPulsar
from tests.unit.broker.remoting.raw import Raw


@pytest.fixture(name="broker")
def broker_fixture(codec: Impl) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(impl=codec) as broker:
        yield broker


def place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition("/")[2].rpartition(":")
    return host, int(port)


def test_bytes_leave_one_at_a_time(broker: EmbeddedBroker, codec: Impl) -> None:
    with Raw(codec.remoting, broker.addresses()["broker-a"]) as raw:
        fault = broker.control.trickle("GET_MAX_OFFSET", 0.001)
        opaque = raw.tell(Request.GET_MAX_OFFSET, topic="TBW102", queueId=0)
        sizes = []
        while not raw._frames:
            data = raw._socket.recv(65536)
            sizes.append(len(data))
            raw._frames += raw._reader.feed(data)
        assert raw.answer(opaque).code == 0
        assert len(sizes) > 50
        assert raw.ask(9999).code == 3, "and so does what comes after"
        assert fault.left == 0
    with RawPulsar(codec.pulsar, broker.pulsar_url) as other:
        broker.control.trickle("LOOKUP")
        fields: dict[str, Any] = {"topic": "t", "authoritative": False}
        assert other.ask("LOOKUP", **fields)[0] == other.ask("LOOKUP", **fields)[0] == "LOOKUP_RESPONSE"


def test_a_trickling_connection_that_is_closed_says_the_rest(broker: EmbeddedBroker, codec: Impl) -> None:
    with Raw(codec.remoting, broker.addresses()["broker-a"]) as raw:
        broker.control.trickle("GET_BROKER_CONFIG")
        opaque = raw.tell(Request.GET_BROKER_CONFIG)
        raw._socket.sendall(b"\xff" * 8)  # bad bytes: the broker closes, with the answer before
        assert raw.answer(opaque).code == 0
        assert raw._socket.recv(1) == b""


def test_a_trickling_connection_may_be_cut(broker: EmbeddedBroker, codec: Impl) -> None:
    with Raw(codec.remoting, broker.addresses()["broker-a"]) as raw:
        broker.control.trickle("GET_MAX_OFFSET", 0.05)
        broker.control.cut("GET_MIN_OFFSET")
        raw.tell(Request.GET_MAX_OFFSET, topic="TBW102", queueId=0)
        raw.tell(Request.GET_MIN_OFFSET, topic="TBW102", queueId=0)
        raw._socket.settimeout(20)
        came = 0
        while not _ended(raw._socket):
            came += 1
        assert came < 50, "the answer has more"


def test_nobody_new_is_let_in(broker: EmbeddedBroker, codec: Impl) -> None:
    with Raw(codec.remoting, broker.addresses()["broker-a"]) as known:
        assert known.ask(Request.GET_BROKER_CONFIG).code == 0
        with broker.control.refuse():
            for address in broker.addresses().values():
                with socket.create_connection(place(address)) as sock:
                    sock.settimeout(20)
                    assert _ended(sock)
            assert known.ask(Request.GET_BROKER_CONFIG).code == 0
        with Raw(codec.remoting, broker.addresses()["broker-a"]) as again:
            assert again.ask(Request.GET_BROKER_CONFIG).code == 0


def _ended(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True

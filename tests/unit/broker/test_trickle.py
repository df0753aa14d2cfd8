"""Bytes that leave one at a time, doors that are shut."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mqclient._impl import Impl
from mqclient.broker import EmbeddedBroker
from mqclient.broker.trickle import Trickle
from mqclient.rocketmq.codes import Request
from tests.differential.raw_pulsar import RawPulsar
from tests.unit.broker.remoting.raw import Raw


@pytest.fixture(name="broker")
def broker_fixture(codec: Impl) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(impl=codec) as broker:
        yield broker


class Wire(asyncio.Transport):
    """Notes what reaches it."""

    def __init__(self) -> None:
        super().__init__({"peername": "somebody", "socket": "one"})
        self.told: list[object] = []

    def write(self, data: Any) -> None:
        self.told.append(bytes(data))

    def close(self) -> None:
        self.told.append("close")

    abort = close

    def is_closing(self) -> bool:
        return "close" in self.told

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self) -> None:
        self.told.append("resume")

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.told.append((high, low))


def trickled(do: Callable[[Trickle], None]) -> list[object]:
    """What reaches the wire of what is done, in more rounds of the loop than it takes."""
    wire = Wire()

    async def main() -> None:
        do(Trickle(wire, 0))
        for _ in range(20):
            await asyncio.sleep(0)

    asyncio.run(main())
    return wire.told


def test_all_that_is_written_leaves_in_its_order() -> None:
    def some(trickle: Trickle) -> None:
        trickle.writelines((b"ab", b"", memoryview(b"c")))
        trickle.write(b"d")
        assert not trickle.is_closing()
        trickle.close()
        assert trickle.is_closing()
        trickle.write(b"too late")

    assert trickled(some) == [b"a", b"b", b"c", b"d", "close"]
    assert trickled(Trickle.close) == ["close"], "at once, as nothing waits"


def test_an_end_that_is_abrupt_drops_the_rest() -> None:
    def aborted(trickle: Trickle) -> None:
        trickle.write(b"ab")
        trickle.abort()

    def lost(trickle: Trickle) -> None:
        trickle.write(b"ab")
        trickle._transport.close()  # by the peer

    assert trickled(aborted) == trickled(lost) == [b"a", "close"]


def test_the_rest_is_the_transport_s() -> None:
    def reading(trickle: Trickle) -> None:
        trickle.pause_reading()
        trickle.resume_reading()
        trickle.set_write_buffer_limits(high=7)
        assert trickle.get_extra_info("peername") == "somebody"
        assert trickle.get_extra_info("cipher", "none") == "none"
        assert trickle.get_extra_info("socket") is None, "nobody writes past it"

    assert trickled(reading) == ["pause", "resume", (7, None)]


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

"""The embedded broker's side of a send and a pull, per message: in this process against its pure twin, and as a process
of its own under floor/load.c, kernel included.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from benchmarks.load import BrokerLoad, BrokerProcess, Request, broker, pulsar_receive, pulsar_send, rocketmq_batch
from benchmarks.load import rocketmq_pull as pull
from benchmarks.support import Compare, Contender
from mqclient.broker import EmbeddedBroker
from mqclient.broker.pulsar.door import PulsarDoor
from mqclient.broker.pulsar.session import Session
from mqclient.broker.remoting.door import RemotingDoor
from mqclient.broker.remoting.server import Peer

BODY = b"x" * 100


class Sink(asyncio.Transport):
    """Where answers go when nobody is there."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """It is never full."""

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        """Nobody writes."""

    def resume_reading(self) -> None:
        """Nobody writes."""

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """As a transport does it."""
        b"".join(list_of_data)


def inside(impl: str, request: Request, before: Request | None = None) -> Contender:
    """The request through a connection of a broker that does not run, after filling its queue."""
    door = EmbeddedBroker(doors=["rocketmq"], impl=impl)._doors[0]
    assert isinstance(door, RemotingDoor)
    (service,) = door.services
    service.server.loop = asyncio.new_event_loop()
    peer = Peer(service.server)
    peer.connection_made(Sink())
    if before is not None:
        peer.data_received(before.frame)

    def run() -> None:
        peer.data_received(request.frame)
        for topic in service.broker.topics.values():
            for queue in topic.queues.values():
                if before is None:
                    queue.log.trim(queue.log.next)
        service.server.loop._ready.clear()  # type: ignore[attr-defined]

    return Contender(run)


@pytest.fixture(scope="module")
def process(pytestconfig: pytest.Config) -> Iterator[BrokerProcess | None]:
    """None in the short form: bounds hold native against pure."""
    if pytestconfig.getoption("--short"):
        yield None
        return
    with broker() as running:
        yield running


def outside(running: BrokerProcess | None, total: int, /, **requests: Request) -> dict[str, Any]:
    """The requests on the broker of its own process, as further contenders."""
    if running is None:
        return {}
    return {name: BrokerLoad("load", (), (), running, request, total) for name, request in requests.items()}


@pytest.mark.parametrize("count", [32, 1000])
def bench_rocketmq_in(compare: Compare, process: BrokerProcess | None, count: int) -> None:
    request = rocketmq_batch(f"in{count}", count, 100)
    compare(
        f"broker.rocketmq_in.{count}",
        per=count,
        native=inside("native", request),
        pure=inside("pure", request),
        asked=">= 500,000/s: <= 2,000 ns",
        **outside(process, 200_000 // count, process=request),
    )


def bench_rocketmq_out(compare: Compare, process: BrokerProcess | None) -> None:
    fill, request = rocketmq_batch("out", 1024, 128), pull("out", 1024)
    if process is not None:
        process.run(fill, 1)
    compare(
        "broker.rocketmq_out.1024",
        per=1024,
        native=inside("native", request, fill),
        pure=inside("pure", request, fill),
        asked=">= 2,000,000/s at <= 400 ns",
        **outside(process, 1000, process=request),
    )


def told(session: Session, data: bytes) -> None:
    """Received as asyncio does it."""
    while data:
        room = session.get_buffer(-1)
        part, data = data[: len(room)], data[len(room) :]
        room[: len(part)] = part
        session.buffer_updated(len(part))


def readers(impl: str, fill: Request, request: Request) -> Contender:
    """A reader of its own for each run, from the start of a topic that was filled before."""
    door = EmbeddedBroker(doors=["pulsar"], impl=impl)._doors[0]
    assert isinstance(door, PulsarDoor)
    loop = asyncio.new_event_loop()

    async def once(what: Request) -> None:
        session = Session(door)
        session.connection_made(Sink())
        told(session, what.greeting + what.frame)
        await asyncio.sleep(0)  # dispatched
        await asyncio.sleep(0)  # written
        session.connection_lost(None)

    for _ in range(4):
        loop.run_until_complete(once(fill))
    return Contender(lambda: loop.run_until_complete(once(request)))


def bench_pulsar_out(compare: Compare, process: BrokerProcess | None) -> None:
    fill, request = pulsar_send("entries", [BODY] * 1000), pulsar_receive("entries", 1000, 4)
    if process is not None:
        process.run(fill, 400)
    compare(
        "broker.pulsar_out.1000",
        per=request.messages,
        native=readers("native", fill, request),
        pure=readers("pure", fill, request),
        asked=">= 2,000,000/s at <= 400 ns; in: >= 500,000/s",
        **outside(process, 100, process=request, filling=pulsar_send("more", [BODY] * 1000)),
    )

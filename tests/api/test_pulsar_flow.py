"""FLOW as it goes over the wire, counted by a proxy: the whole queue first, then at least halves, in all what was
taken and one queue.
"""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from mqclient import _impl
from mqclient.core.driver import Address
from mqclient.pulsar import sync
from mqclient.pulsar.client import ClientEngine
from tests.support.proxy import CuttingProxy
from tests.support.pulsar_cluster import PulsarCluster


class Wire:
    """What one connection's client said."""

    def __init__(self, impl: str) -> None:
        self._codec: Any = _impl.select(impl).pulsar
        self._reader = self._codec.FrameReader()
        self.flows: dict[int, list[int]] = defaultdict(list)

    def tap(self, data: bytes) -> None:
        for event in self._reader.feed(data):
            if event[0] == self._codec.FLOW:
                self.flows[event[1]].append(event[2])


@pytest.mark.parametrize("queue", [1, 10, 1000])
@pytest.mark.parametrize("kind", ["one topic", "partitions", "in parts"])
def test_what_is_granted(
    pulsar: PulsarCluster, topic: str, impl: str, monkeypatch: pytest.MonkeyPatch, kind: str, queue: int
) -> None:
    host, port = pulsar.url.removeprefix("pulsar://").split(":")
    with CuttingProxy((host, int(port))) as proxy:
        # The broker names itself in its answers to lookups; all ways have to lead through the proxy.
        by_proxy = Address("127.0.0.1", proxy.port, "proxy")
        monkeypatch.setattr(ClientEngine, "broker_address", lambda self, url: by_proxy)
        wire = Wire(impl)
        proxy.tap = wire.tap
        if kind == "partitions":
            pulsar.partition(topic, 3)
        with sync.Client(f"pulsar://127.0.0.1:{proxy.port}", impl=impl) as client:
            with client.consumer(topic, "billing", receiver_queue=queue) as consumer:
                send(pulsar, impl, topic, chunked=kind == "in parts")
                for _ in range(600):
                    consumer.ack(consumer.receive(20))
                accounts = consumer.diagnose()
        assert proxy.accepted == 1
    children = accounts.get("children", [accounts])
    assert len(wire.flows) == len(children)
    for flows, account in zip(wire.flows.values(), children, strict=True):
        permits = account["permits"]
        assert flows[0] == queue
        assert all(flow >= max(queue // 2, 1) for flow in flows[1:])
        left = permits["released"] + account["untold"]  # taken, and not yet half a queue
        assert sum(flows) == permits["arrived"] - permits["here"] + account["untold"] + queue - left


def send(pulsar: PulsarCluster, impl: str, topic: str, *, chunked: bool) -> None:
    """By a client of its own, past the proxy's account: 600 messages."""
    options: dict[str, Any] = {"batching": False, "chunking": True, "chunk_size": 200} if chunked else {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientEngine, "broker_address", _plain)
        with sync.Client(pulsar.url, impl=impl) as client, client.producer(topic, **options) as producer:
            body = bytes(300) if chunked else b"x"
            assert all(outcome.ok for outcome in producer.send_many([body] * 600))


_plain = ClientEngine.broker_address

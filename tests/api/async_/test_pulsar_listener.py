"""Listeners, events and adaptive queues, on the embedded and the real broker."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import pytest

from mqclient.core.slot import Wake
from mqclient.errors import ConfigError
from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


class Seen:
    """What a listener got; `enough` is done when that many messages came."""

    def __init__(self, client: aio.Client, wanted: int) -> None:
        self.bodies: list[bytes] = []
        self.wanted = wanted
        self.driver: Any = client._driver
        self._wake = Wake()

    def add(self, message: Any) -> None:
        self.bodies.append(message.body)
        if len(self.bodies) >= self.wanted:
            with self.driver.enter():
                self._wake.complete(None)

    async def enough(self) -> list[bytes]:
        await self.driver.wait(self._wake, self.driver.deadline(30))
        return self.bodies


async def test_returning_acknowledges(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        seen = Seen(client, 1000)
        async with client.consumer(topic, "billing", listener=seen.add) as consumer:
            sent = [b"%d" % number for number in range(1000)]
            await producer.send_many(sent)
            assert await seen.enough() == sent
            with pytest.raises(ConfigError, match="messages go to the listener"):
                await consumer.receive(1)
        async with client.consumer(topic, "billing") as consumer:
            assert await consumer.receive_many(1, timeout=0.3) == []


async def test_raising_refuses(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=False) as producer:
        seen = Seen(client, 5)

        def handle(message: Any) -> None:
            if message.body == b"1" and not message.redeliveries:
                raise ValueError("not yet")
            seen.add(message)

        async with client.consumer(topic, "billing", type="shared", listener=handle, nack_delay=0.1) as consumer:
            await producer.send_many([b"%d" % number for number in range(5)])
            assert sorted(await seen.enough()) == [b"0", b"1", b"2", b"3", b"4"]
            shown = consumer.diagnose()["listener"]
            assert shown["failed"] == 1


async def test_coroutines_many_at_once_in_the_order_of_keys(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        seen = Seen(client, 300)

        async def handle(message: Any) -> None:
            await producer.send(b"x", timeout=10)
            seen.add(message)

        async with client.consumer(topic, "billing", type="key_shared", listener=handle, threads=5):
            async with client.producer(f"{topic}-2", batching=False) as other:
                await other.send(b"unrelated")
            async with client.consumer(f"{topic}-2", "s", listener=handle, threads=5, receiver_queue=20):
                async with client.producer(f"{topic}-2", batching=False) as keyed:
                    await keyed.send_many([(b"%d" % number, f"key-{number % 10}") for number in range(200)])
                    await seen.enough()
        numbers = [int(body) for body in seen.bodies if body not in (b"x", b"unrelated")]
        for key in range(10):
            of_one = [number for number in numbers if number % 10 == key]
            assert of_one == sorted(of_one)


async def test_serving_until_closed(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        handled: list[bytes] = []

        async def handle(message: Any) -> None:
            handled.append(message.body)
            if len(handled) == 5:
                await consumer.close()

        consumer = await client.consumer(topic, "billing", type="shared", listener=handle)
        await producer.send_many([b"%d" % number for number in range(10)])
        report = await consumer.run(grace=10)
        assert (report.handled, report.failed, report.unfinished) == (5, 0, 0)
        async with client.consumer(topic, "billing", type="shared") as other:
            again = await other.receive_many(10, timeout=10)  # and the one whose handler closed before it returned
            assert [message.body for message in again] == [b"%d" % number for number in range(4, 10)]


async def test_a_queue_of_none_with_a_listener(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=False) as producer:
        seen = Seen(client, 20)
        async with client.consumer(topic, "billing", type="shared", receiver_queue=0, listener=seen.add):
            await producer.send_many([b"%d" % number for number in range(20)])
            assert len(await seen.enough()) == 20


async def test_an_adaptive_queue(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=False) as producer:
        async with client.consumer(topic, "billing", receiver_queue=500, queue_memory=1 << 20) as consumer:
            assert consumer.diagnose()["permits"]["window"] == 1
            await producer.send_many([b"x"] * 2000)
            for _ in range(2000):
                await consumer.receive(60)
            assert consumer.diagnose()["permits"]["window"] > 1


async def test_who_is_active(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        wake = Wake()
        driver: Any = client._driver

        def told(name: str, active: bool) -> None:
            if active and name.endswith(topic):
                with driver.enter():
                    wake.complete(None)

        async with client.consumer(topic, "billing", type="failover", on_active=told):
            await driver.wait(wake, driver.deadline(20))


async def test_handlers_see_the_creator_s_context(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    tenants: set[str] = set()
    token = TENANT.set("north")
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        TENANT.reset(token)
        seen = Seen(client, 10)

        def handle(message: Any) -> None:
            tenants.add(TENANT.get())
            seen.add(message)

        async with client.consumer(topic, "s", type="shared", listener=handle, threads=2):
            await producer.send_many([b"x"] * 10)
            await seen.enough()
    assert tenants == {"north"}

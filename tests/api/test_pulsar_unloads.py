"""A topic that is unloaded under load: no consumer is stuck, nothing is lost, the account balances.

By every way to take: awaited, received by a thread, given to a listener.
"""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from mqclient.errors import ClosedError, DeadlineError
from mqclient.pulsar import aio, sync
from tests.support.pulsar_cluster import PulsarCluster

UNLOADS = {"test": 1, "ci": 4, "soak": 28}
"""For each of 36 combinations."""
PATIENCE = 30.0


class Load:
    """One producer that sends all the time, one consumer that acknowledges all it gets."""

    def __init__(self, producer: aio.Producer, consumer: aio.Consumer) -> None:
        self.producer = producer
        self.consumer = consumer
        self.sent = 0
        self.seen: set[bytes] = set()
        self.stopping = False
        self.all_sent = False

    async def send(self) -> None:
        while not self.stopping:
            many = [b"%d" % number for number in range(self.sent, self.sent + 20)]
            outcomes = await self.producer.send_many(many, timeout=60)
            assert not any(isinstance(outcome, Exception) for outcome in outcomes)
            self.sent += 20
            await asyncio.sleep(0.002)
        self.all_sent = True

    async def receive(self) -> None:
        idle = 0
        while not self.all_sent or len(self.seen) < self.sent:
            try:
                message = await self.consumer.receive(0.5)
            except DeadlineError:
                idle += 1
                assert idle < 40, self.consumer.diagnose()
                continue
            idle = 0
            self.seen.add(message.body)
            await self.consumer.ack(message)


@pytest.mark.parametrize("queue", [0, 1, 1000])
@pytest.mark.parametrize("kind", ["exclusive", "shared", "failover", "key_shared"])
async def test_unloads_under_load(
    pulsar: PulsarCluster, topic: str, impl: str, scale: str, kind: str, queue: int
) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "s", type=kind, receiver_queue=queue) as consumer:
            async with client.producer(topic) as producer:
                load = Load(producer, consumer)
                tasks = [asyncio.create_task(load.send()), asyncio.create_task(load.receive())]
                for _ in range(UNLOADS[scale]):
                    await asyncio.sleep(0.1)
                    await asyncio.get_running_loop().run_in_executor(None, pulsar.unload, topic)
                await asyncio.sleep(0.3)
                load.stopping = True
                await asyncio.gather(*tasks)
                assert load.seen == {b"%d" % number for number in range(load.sent)}
                balances(consumer.diagnose())


def balances(shown: dict[str, Any]) -> None:
    assert shown["epoch"] > 1
    permits = shown["permits"]
    assert permits["window"] == permits["at_broker"] + permits["here"] + permits["released"] - permits["debt"]
    assert permits["excess"] == 0


class Seen:
    """The bodies, and when the last new one came."""

    def __init__(self) -> None:
        self.bodies: set[bytes] = set()
        self.last = time.monotonic()

    def __call__(self, message: Any) -> None:
        self.bodies.add(message.body)
        self.last = time.monotonic()

    def all_of(self, consumer: sync.Consumer) -> None:
        """In a thread of its own, until the consumer is closed."""
        while True:
            try:
                message = consumer.receive()
            except ClosedError:
                return
            self(message)
            consumer.ack(message)

    def wait_for(self, bodies: set[bytes], consumer: sync.Consumer) -> None:
        self.last = time.monotonic()
        while not self.bodies >= bodies:
            assert time.monotonic() < self.last + PATIENCE, (len(bodies - self.bodies), consumer.diagnose())
            time.sleep(0.01)


@pytest.mark.parametrize("queue", [0, 1, 1000])
@pytest.mark.parametrize("kind", ["exclusive", "shared", "failover", "key_shared"])
@pytest.mark.parametrize("by", ["receive", "listener"])
def test_unloads_under_load_of_threads(
    pulsar: PulsarCluster, topic: str, impl: str, scale: str, by: str, kind: str, queue: int
) -> None:
    seen = Seen()
    with sync.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        options: dict[str, Any] = {"listener": seen} if by == "listener" else {}
        with client.consumer(topic, "s", type=kind, receiver_queue=queue, **options) as consumer:
            if by == "receive":
                threading.Thread(target=seen.all_of, args=(consumer,), daemon=True).start()
            sent: set[bytes] = set()
            for number in range(UNLOADS[scale]):
                before = [b"%d before %d" % (number, place) for place in range(30)]
                after = [b"%d after %d" % (number, place) for place in range(30)]
                assert all(outcome.ok for outcome in producer.send_many(before, timeout=60))
                pulsar.unload(topic)
                assert all(outcome.ok for outcome in producer.send_many(after, timeout=60))
                sent.update(before, after)
            seen.wait_for(sent, consumer)
            assert seen.bodies == sent
            balances(consumer.diagnose())

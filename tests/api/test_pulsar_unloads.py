"""A topic that is unloaded under load: no consumer is stuck, nothing is lost, the account balances."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import asyncio

import pytest

from mqclient.errors import DeadlineError
from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster

UNLOADS = {"test": 4, "ci": 10, "soak": 85}
"""For each of twelve combinations."""


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
                assert consumer.diagnose()["epoch"] > 1
                shown = consumer.diagnose()["permits"]
                assert shown["window"] == shown["at_broker"] + shown["here"] + shown["released"] - shown["debt"]
                assert shown["excess"] == 0

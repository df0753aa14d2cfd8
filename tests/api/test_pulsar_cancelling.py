"""Tasks that are cancelled while they wait: only asyncio has them, so there is no sync twin."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.errors import DeadlineError
from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster


async def test_ten_thousand_cancelled_receives(pulsar: PulsarCluster, topic: str, impl: str, scale: str) -> None:
    wanted = 2_000 if scale == "test" else 10_000
    seen: Counter[bytes] = Counter()
    cancelled = 0
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing", type="shared", receiver_queue=50) as consumer:

            async def receive() -> None:
                message = await consumer.receive(10)
                seen[message.body] += 1
                await consumer.ack(message)

            sent = 0
            while cancelled < wanted:
                tasks = [asyncio.create_task(receive()) for _ in range(20)]
                await asyncio.sleep(0)
                sends = [producer.send(b"%d" % number) for number in range(sent, sent + 10)]
                sent += 10
                for task in tasks[::2]:
                    task.cancel()
                await asyncio.gather(*sends)
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
                cancelled += sum(isinstance(one, asyncio.CancelledError) for one in ended)
            while len(seen) < sent:
                await receive()
            assert set(seen.values()) == {1}
            assert set(seen) == {b"%d" % number for number in range(sent)}
            shown = consumer.diagnose()["permits"]
            assert shown["window"] == 50 == shown["at_broker"] + shown["here"] + shown["released"]


@pytest.mark.parametrize("queue", [0, 50])
async def test_ten_thousand_receives_that_ran_out_of_time(
    pulsar: PulsarCluster, topic: str, impl: str, scale: str, queue: int
) -> None:
    """`wait_for` cancels what takes longer than a millisecond, while messages come one at a time."""
    wanted = 500 if scale == "test" else 10_000
    seen: list[bytes] = []
    redelivered = late = sent = 0
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=False) as producer:
        async with client.consumer(topic, "billing", type="shared", receiver_queue=queue) as consumer:

            async def receive(seconds: float) -> bool:
                nonlocal redelivered
                try:
                    message = await asyncio.wait_for(consumer.receive(), seconds)
                except asyncio.TimeoutError:
                    return False
                seen.append(message.body)
                redelivered += message.redeliveries
                await consumer.ack(message)
                return True

            while late < wanted:
                if late % 5 == 0:
                    task = asyncio.create_task(producer.send(b"%d" % sent))
                    sent += 1
                    late += 1 - await receive(0.001)
                    await task
                late += 1 - await receive(0.001)
            while len(seen) < sent and await receive(10):
                pass
            assert sorted(seen) == sorted(b"%d" % number for number in range(sent))
            assert redelivered == 0
            assert consumer.diagnose()["permits"]["excess"] == 0


async def test_a_cancelled_send_only_stops_waiting(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing") as consumer:
            task = asyncio.create_task(producer.send(b"sent all the same"))
            await asyncio.sleep(0)
            task.cancel()
            assert isinstance((await asyncio.gather(task, return_exceptions=True))[0], asyncio.CancelledError)
            assert (await consumer.receive(5)).body == b"sent all the same"
            assert await producer.send(b"and it goes on", timeout=30)


async def test_a_receive_that_times_out_hurries_no_timer(impl: str) -> None:
    """Keep-alive, acknowledgements and deadlines come at their own time, however often somebody gives up."""
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as broker:
        async with aio.Client(broker.pulsar_url, impl=impl) as client, client.consumer("t", "s") as consumer:
            for _ in range(20):
                with pytest.raises(DeadlineError):
                    await consumer.receive(0.002)
            assert broker.control.count("PING") == 0

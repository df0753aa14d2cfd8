"""Messages in parts, from our producer to our consumers, on the embedded and the real broker."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import random

from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster


async def test_larger_than_a_message_may_be(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    body = random.Random(1).randbytes(6 << 20)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, batching=False, chunking=True, compression="zlib") as producer:
            async with client.consumer(topic, "billing", receiver_queue=2) as consumer:
                sent = await producer.send(body, key="k")
                message = await consumer.receive(30)
                assert (message.body == body, message.key) == (True, "k")
                assert message.message_id == sent
                await consumer.ack_confirmed(message, timeout=10)
            async with client.consumer(topic, "billing") as consumer:
                assert await consumer.receive_many(1, timeout=0.3) == []


async def test_many_with_all_their_permits(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, batching=False, chunking=True, chunk_size=200) as producer:
            async with client.consumer(topic, "billing", type="shared", receiver_queue=3, nack_delay=0.1) as consumer:
                bodies = [b"%d" % number * 500 for number in range(20)]
                await producer.send_many(bodies)
                for body in bodies:
                    message = await consumer.receive(10)
                    assert message.body == body
                    await consumer.ack(message)
                await producer.send(bodies[0])
                consumer.nack(await consumer.receive(10))
                again = await consumer.receive(10)
                assert (again.body, again.redeliveries) == (bodies[0], 1)
                await consumer.ack(again)
                shown = consumer.diagnose()["permits"]
                assert shown["window"] == 3 == shown["at_broker"] + shown["here"] + shown["released"]
                assert shown["discarded"] == shown["skipped"] == 0
                assert shown["chunk"] > 20


async def test_positions(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, batching=False, chunking=True, chunk_size=200) as producer:
            ids = await producer.send_many([b"%d" % number * 500 for number in range(3)])
            async with client.reader(topic, start="earliest") as reader:
                assert (await reader.receive(10)).message_id == ids[0]
                await reader.seek(ids[1], timeout=20)
                assert (await reader.receive(10)).message_id == ids[2]
            async with client.reader(topic, start=ids[1], start_inclusive=True) as reader:
                assert (await reader.receive(10)).message_id == ids[1]

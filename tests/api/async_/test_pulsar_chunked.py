"""Messages in parts, from our producer to our consumers, on the embedded and the real broker."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import random
from typing import Any

from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster


async def test_larger_than_a_message_may_be(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    body = random.Random(1).randbytes(6 << 20)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, batching=False, chunking=True, compression="zlib") as producer:
            async with client.consumer(topic, "billing", receiver_queue=2) as consumer:
                sent = await producer.send(body, key="k")
                message = await consumer.receive(60)
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
                    message = await consumer.receive(60)
                    assert message.body == body
                    await consumer.ack(message)
                await producer.send(bodies[0])
                consumer.nack(await consumer.receive(60))
                again = await consumer.receive(60)
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
                assert (await reader.receive(60)).message_id == ids[0]
                await reader.seek(ids[1], timeout=20)
                assert (await reader.receive(60)).message_id == ids[2]
            async with client.reader(topic, start=ids[1], start_inclusive=True) as reader:
                assert (await reader.receive(60)).message_id == ids[1]


async def test_what_is_never_complete_is_given_up(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """Its permits come back, and it does not come again."""
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic) as producer:
            options: dict[str, Any] = {"type": "shared", "receiver_queue": 3, "chunk_expiry": 0.5}
            async with client.consumer(topic, "s", **options) as consumer:
                for number in range(8):
                    begin_a_message(client, producer, f"lost-{number}")
                await producer.send(b"whole")
                message = await consumer.receive(60)
                assert message.body == b"whole"
                await consumer.ack_confirmed(message)
                assert await consumer.receive_many(1, timeout=1.5) == []
            async with client.consumer(topic, "s", type="shared", chunk_expiry=0) as consumer:
                await producer.send(b"after")
                assert (await consumer.receive(60)).body == b"after"
                assert consumer.diagnose()["permits"]["arrived"] == 1  # none of the parts


def begin_a_message(client: aio.Client, producer: aio.Producer, name: str) -> None:
    """The first of two parts, whose producer then goes away."""
    engine: Any = producer._engine
    codec: Any = client._engine.impl.pulsar
    with client._driver.enter():
        now = client._driver.now.wall_ms
        metadata = codec.encode_metadata(engine.name, 0, now, uuid=name, num_chunks=2, chunk_id=0, total_chunk_size=2)
        engine.attachment.connection.write(codec.encode_send(engine.producer_id, 0, metadata, b"x", is_chunk=True))

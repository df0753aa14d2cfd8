"""Consumers and readers of many topics and of partitions, on the embedded and the real broker."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError
from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster


def bodies(messages: list[Any]) -> list[bytes]:
    return sorted(message.body for message in messages)


async def receive(consumer: aio.Consumer | aio.Reader, count: int) -> list[Any]:
    """That many messages, or what came until nothing did for a minute."""
    messages: list[Any] = []
    while len(messages) < count:
        more = await consumer.receive_many(count - len(messages), timeout=60)
        if not more:
            break
        messages += more
    return messages


async def fill(client: aio.Client, topic: str, partitions: int, each: int) -> dict[bytes, Any]:
    """`each` messages into every partition; body -> id."""
    ids: dict[bytes, Any] = {}
    for number in range(partitions):
        async with client.producer(f"{topic}-partition-{number}") as producer:
            sent = [b"%d-%d" % (number, index) for index in range(each)]
            ids |= dict(zip(sent, await producer.send_many(sent), strict=True))
    return ids


async def test_a_partitioned_topic_is_one_topic(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(topic, 3)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing", receiver_queue=10) as consumer:
            assert [name.rpartition("-")[2] for name in consumer.topics] == ["0", "1", "2"]
            ids = await fill(client, topic, 3, 50)
            messages = await receive(consumer, 150)
            assert {message.body: message.message_id for message in messages} == ids
            for number in range(3):
                of_one = [message.body for message in messages if message.message_id.partition == number]
                assert of_one == [b"%d-%d" % (number, index) for index in range(50)]
            await consumer.ack(messages[:70])
            await consumer.ack_confirmed([message.message_id for message in messages[70:]], timeout=10)
            shown = consumer.diagnose()["permits"]
            assert shown["window"] == 30 == shown["at_broker"] + shown["here"] + shown["released"]
        async with client.consumer(topic, "billing") as consumer:
            assert await consumer.receive_many(1, timeout=0.2) == []


async def test_cumulative_is_by_partition(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(topic, 2)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing") as consumer:
            await fill(client, topic, 2, 5)
            by_body = {message.body: message for message in await receive(consumer, 10)}
            await consumer.ack_cumulative(by_body[b"0-2"])
            await consumer.ack_cumulative(by_body[b"1-4"])
        async with client.consumer(topic, "billing") as consumer:
            assert bodies(await receive(consumer, 2)) == [b"0-3", b"0-4"]


async def test_several_topics(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(f"{topic}-parts", 2)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(
            [topic, f"{topic}-parts"], "billing", type="shared", nack_delay=0.1, total_receiver_queue=30
        ) as consumer:
            assert len(consumer.topics) == 3
            assert consumer.diagnose()["permits"]["window"] == 30
            async with client.producer(topic) as producer:
                await producer.send(b"plain")
            await fill(client, f"{topic}-parts", 2, 1)
            messages = await receive(consumer, 3)
            assert bodies(messages) == [b"0-0", b"1-0", b"plain"]
            consumer.nack(messages[1:])
            again = await receive(consumer, 2)
            assert bodies(again) == bodies(messages[1:])
            assert [message.redeliveries for message in again] == [1, 1]
            await consumer.ack([messages[0], *again])
            consumer.redeliver()
            assert await consumer.receive_many(1, timeout=0.3) == []


async def test_seeking_in_partitions(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(topic, 2)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing") as consumer:
            ids = await fill(client, topic, 2, 3)
            assert len(await receive(consumer, 6)) == 6
            await consumer.seek(0, timeout=20)
            assert len(await receive(consumer, 6)) == 6
            await consumer.seek(ids[b"1-0"], timeout=20)
            assert bodies(await receive(consumer, 2)) == [b"1-1", b"1-2"]
            first, second = consumer.topics
            await consumer.seek({first: ids[b"0-1"], second: 0}, timeout=20)
            assert bodies(await receive(consumer, 4)) == [b"0-2", b"1-0", b"1-1", b"1-2"]
            await consumer.seek(lambda name: ids[b"0-0"] if name == first else None, timeout=20)
            assert bodies(await receive(consumer, 2)) == [b"0-1", b"0-2"]
            assert await consumer.last_message_ids(10) == {first: ids[b"0-2"], second: ids[b"1-2"]}


async def test_a_topic_grows(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(topic, 1)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing", partition_refresh=0.2) as consumer:
            pulsar.partition(topic, 3)
            await fill(client, topic, 3, 2)
            assert bodies(await receive(consumer, 6)) == [b"0-0", b"0-1", b"1-0", b"1-1", b"2-0", b"2-1"]
            assert len(consumer.topics) == 3


async def test_readers_of_many(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(topic, 2)
    async with aio.Client(pulsar.url, impl=impl) as client:
        ids = await fill(client, topic, 2, 3)
        async with client.reader(topic, start="earliest") as reader:
            messages = []
            while await reader.has_message_available(10):
                messages += await reader.receive_many()
            assert {message.body: message.message_id for message in messages} == ids
            await reader.seek(ids[b"0-1"], timeout=20)
            assert (await reader.receive(60)).body == b"0-2"
        async with client.reader([topic, f"{topic}-other"], start="latest") as reader:
            assert not await reader.has_message_available(10)
            async with client.producer(f"{topic}-other") as producer:
                await producer.send(b"new")
            assert (await reader.receive(60)).body == b"new"
        with pytest.raises(ConfigError, match="then seek"):
            await client.reader(topic, start=ids[b"0-0"])


async def test_partitions_move(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(topic, 2)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing", type="shared", receiver_queue=5) as consumer:
            for _ in range(3):
                pulsar.unload(f"{topic}-partition-1")
                await fill(client, topic, 2, 20)
                seen: set[bytes] = set()
                while len(seen) < 40:
                    messages = await receive(consumer, 1)
                    assert messages, f"stuck after {len(seen)}: {consumer.diagnose()}"
                    seen |= {message.body for message in messages}
                    await consumer.ack_confirmed(messages, timeout=10)

"""Pulsar producers over the embedded broker and the real one: partitions, routing, what a message can say."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster


def parted(pulsar: PulsarCluster, topic: str, count: int, method: str = "PUT") -> None:
    pulsar.rest(method, f"persistent/public/default/{topic}/partitions", count)


async def receive(consumer: aio.Consumer | aio.Reader, count: int) -> list[Any]:
    """That many messages, or what came until nothing did for five seconds."""
    messages: list[Any] = []
    while len(messages) < count:
        more = await consumer.receive_many(count - len(messages), timeout=5)
        if not more:
            break
        messages += more
    return messages


async def test_messages_without_key_go_round(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    parted(pulsar, topic, 3)
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        ids = [await producer.send(b"%d" % number) for number in range(6)]
        assert Counter(at.partition for at in ids) == {0: 2, 1: 2, 2: 2}
        assert producer.topic == f"persistent://public/default/{topic}"


async def test_a_single_partition(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    parted(pulsar, topic, 4)
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, routing="single") as producer:
        assert len({(await producer.send(b"x")).partition for _ in range(5)}) == 1


@pytest.mark.parametrize("hashing", ["java", "murmur3", "boost"])
async def test_keys_have_their_partitions(pulsar: PulsarCluster, topic: str, impl: str, hashing: str) -> None:
    parted(pulsar, topic, 4)
    keys = [f"key-{number % 9}" for number in range(200)]
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, hashing=hashing) as producer:
            ids = await producer.send_many([(b"%d" % number, key) for number, key in enumerate(keys)])
        assert len({(key, at.partition) for key, at in zip(keys, ids, strict=True)}) == 9
        for partition in {at.partition for at in ids}:
            wanted = [number for number, at in enumerate(ids) if at.partition == partition]
            async with client.reader(f"{topic}-partition-{partition}", start="earliest") as reader:
                got = await receive(reader, len(wanted))
                assert [int(message.body) for message in got] == wanted
                assert [message.message_id for message in got] == [ids[number] for number in wanted]


async def test_the_user_s_own_routing(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    parted(pulsar, topic, 3)

    def by_shop(key: str | None, properties: Any, partitions: int) -> int:
        return int(properties["shop"]) % partitions

    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, routing=by_shop) as producer:
        many = await producer.send_many([{"body": b"x", "properties": {"shop": str(shop)}} for shop in range(6)])
        assert [at.partition for at in many] == [0, 1, 2, 0, 1, 2]


async def test_a_topic_that_grows(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    parted(pulsar, topic, 1)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, partition_refresh=0.2) as producer:
            assert (await producer.send(b"x")).partition == 0
            parted(pulsar, topic, 3, "POST")
            found: set[int] = set()
            for _ in range(2000):
                found.add((await producer.send(b"x", timeout=30)).partition)
                if found == {0, 1, 2}:
                    break
            assert found == {0, 1, 2}


async def test_back_pressure_by_count(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    parted(pulsar, topic, 2)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, max_pending=10, batching=False) as producer:
            ids = await producer.send_many([b"%d" % number for number in range(300)])
            assert len(set(ids)) == 300
            assert producer.diagnose()["pending"] == 0

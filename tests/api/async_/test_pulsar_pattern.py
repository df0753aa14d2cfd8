"""Pattern subscriptions on the embedded and the real broker."""

from __future__ import annotations

import re
import time

import pytest

from mqclient.errors import ConfigError, DeadlineError
from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster


async def send(client: aio.Client, topic: str, body: bytes) -> None:
    async with client.producer(topic) as producer:
        await producer.send(body)


async def test_topics_that_match_now_and_later(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(f"{topic}-parts", 2)
    async with aio.Client(pulsar.url, impl=impl) as client:
        await send(client, f"{topic}-1", b"1")
        await send(client, f"not-{topic}", b"not ours")
        async with client.consumer(
            re.compile(f"public/default/{topic}-.*"), "billing", start="earliest", pattern_period=1
        ) as consumer:
            assert len(consumer.topics) == 3
            message = await consumer.receive(60)
            assert (message.body, message.topic) == (b"1", f"persistent://public/default/{topic}-1")
            await consumer.ack(message)
            await send(client, f"{topic}-parts-partition-1", b"part")
            assert (await consumer.receive(60)).body == b"part"
            await send(client, f"{topic}-late", b"late")
            assert (await consumer.receive(60)).body == b"late"
            with pytest.raises(DeadlineError):
                await consumer.receive(0.1)


async def test_a_topic_seen_by_the_brokers_word(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """Within the period at the latest; far sooner by a watcher."""
    async with (
        aio.Client(pulsar.url, impl=impl) as client,
        client.consumer(re.compile(f"{topic}-.*"), "billing", pattern_period=60) as consumer,
    ):
        assert consumer.topics == []
        await send(client, f"{topic}-new", b"new")
        assert (await consumer.receive(60)).body == b"new"


@pytest.mark.parametrize("mode", ["persistent", "non_persistent", "all"])
async def test_modes(pulsar: PulsarCluster, topic: str, impl: str, mode: str) -> None:
    """What is kept, what is not, or both: now, and what comes later."""
    kept, fleeting = f"persistent://public/default/{topic}-kept", f"non-persistent://public/default/{topic}-fleeting"
    names = {"persistent": [kept], "non_persistent": [fleeting], "all": [kept, fleeting]}[mode]
    async with (
        aio.Client(pulsar.url, impl=impl) as client,
        client.producer(kept) as one,
        client.producer(fleeting) as other,
        client.consumer(re.compile(f"{topic}-.*"), "s", pattern_mode=mode, pattern_period=1) as consumer,
    ):
        assert sorted(consumer.topics, reverse=True) == names
        await one.send(b"kept")
        await other.send(b"fleeting")
        got = {(message.topic, message.body) for message in [await consumer.receive(60) for _ in names]}
        assert got == {(name, name.rpartition("-")[2].encode()) for name in names}
        later = f"{names[-1]}-later"
        async with client.producer(later) as third:
            limit = time.monotonic() + 20
            while later not in consumer.topics:
                assert time.monotonic() < limit
                await third.send(b"later")


async def test_what_the_java_client_refuses(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        with pytest.raises(ConfigError, match="stands alone"):
            await client.consumer([topic, re.compile(topic)], "billing")  # type: ignore[list-item]
        with pytest.raises(ConfigError, match="only the last part"):
            await client.consumer(re.compile("public/.*/orders"), "billing")


async def test_names_of_topics(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(f"{topic}-parts", 2)
    async with aio.Client(pulsar.url, impl=impl) as client:
        await send(client, f"{topic}-1", b"1")
        await send(client, f"not-{topic}", b"not ours")
        expected = [f"persistent://public/default/{topic}-1", f"persistent://public/default/{topic}-parts"]
        assert await client.topics(f"public/default/{topic}-.*") == expected
        assert await client.topics(f"{topic}-[0-9]") == expected[:1]

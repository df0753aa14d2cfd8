"""What a subscription can be told, over both brokers: who gets which keys, and in what order."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

from typing import Any

import pytest

from mqclient._impl import default
from mqclient.errors import ConfigError, DeadlineError
from mqclient.pulsar import aio
from mqclient.pulsar.codes import BrokerError, ServerError
from tests.support.pulsar_cluster import PulsarCluster

KEYS = [f"key-{number}" for number in range(40)]


def slot(key: str) -> int:
    """Where a key stands among the 65,536 hashes."""
    return (int(default.digest.murmur3_32(key.encode())) & 0x7FFFFFFF) % 65536 or 1


async def all_of(pulsar: PulsarCluster, consumer: aio.Consumer) -> list[Any]:
    found: list[Any] = []
    while more := await consumer.receive_many(100, timeout=pulsar.quiet):
        found += more
    return found


async def test_sticky_ranges(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        options: dict[str, Any] = {"type": "key_shared", "start": "earliest"}
        low = await client.consumer(topic, "s", key_ranges=[(0, 20000), (40000, 50000)], **options)
        high = await client.consumer(topic, "s", key_ranges=[(20001, 39999), (50001, 65535)], **options)
        async with client.producer(topic, batching="key") as producer:
            await producer.send_many([(b"%d" % number, key) for number, key in enumerate(KEYS * 3)])
        wanted = {key for key in KEYS if slot(key) <= 20000 or 40000 <= slot(key) <= 50000}
        here, there = await all_of(pulsar, low), await all_of(pulsar, high)
        assert {message.key for message in here} == wanted
        assert {message.key for message in there} == set(KEYS) - wanted
        for messages in (here, there):
            for key in {message.key for message in messages}:
                numbers = [int(message.body) for message in messages if message.key == key]
                assert numbers == sorted(numbers)
        with pytest.raises(BrokerError) as refused:
            await client.consumer(topic, "s", key_ranges=[(50000, 50000)], **options)
        assert refused.value.code == ServerError.ConsumerAssignError


async def test_out_of_order(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """Whoever comes later gets keys whose messages another one has not acknowledged."""
    async with aio.Client(pulsar.url, impl=impl) as client:
        options: dict[str, Any] = {"type": "key_shared", "start": "earliest", "out_of_order": True}
        first = await client.consumer(topic, "s", **options)
        async with client.producer(topic, batching="key") as producer:
            await producer.send_many([(b"1", key) for key in KEYS])
            assert len(await all_of(pulsar, first)) == len(KEYS)
            second = await client.consumer(topic, "s", **options)
            await producer.send_many([(b"2", key) for key in KEYS])
        theirs, ours = await all_of(pulsar, second), await all_of(pulsar, first)
        assert len(theirs) + len(ours) == len(KEYS)
        assert theirs


async def test_properties_of_the_subscription(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "s", subscription_properties={"team": "north"}, replicated=False):
            stats = pulsar.rest("GET", f"persistent/public/default/{topic}/stats")
            assert stats["subscriptions"]["s"].get("subscriptionProperties", {"team": "north"}) == {"team": "north"}


async def test_priority_levels(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """While the first has room nobody behind it gets anything."""
    async with aio.Client(pulsar.url, impl=impl) as client:
        late = await client.consumer(topic, "s", type="shared", priority=1, receiver_queue=100)
        early = await client.consumer(topic, "s", type="shared", priority=0, receiver_queue=20)
        async with client.producer(topic, batching=False) as producer:
            for number in range(50):
                await producer.send(b"%d" % number)
        assert [int(message.body) for message in await all_of(pulsar, late)] == list(range(20, 50))
        assert [int(message.body) for message in await all_of(pulsar, early)] == list(range(20))


async def test_the_failover_consumer_of_higher_priority_is_active(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        options: dict[str, Any] = {"type": "failover", "start": "earliest"}
        low = await client.consumer(topic, "s", priority=2, name="a", **options)
        high = await client.consumer(topic, "s", priority=1, name="b", **options)
        async with client.producer(topic) as producer:
            await producer.send(b"x")
        assert (await high.receive(60)).body == b"x"
        with pytest.raises(DeadlineError):
            await low.receive(0.3)


async def test_a_position_is_included_if_that_is_asked_for(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic) as producer:
            ids = await producer.send_many([b"%d" % number for number in range(6)])
        for inclusive, first in ((True, b"2"), (False, b"3")):
            async with client.reader(topic, start=ids[2], start_inclusive=inclusive) as reader:
                assert (await reader.receive(60)).body == first
            async with client.consumer(topic, f"s{inclusive}", start="earliest", start_inclusive=inclusive) as consumer:
                await consumer.receive(60)
                await consumer.seek(ids[2])
                assert (await consumer.receive(60)).body == first


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"type": "shared", "key_ranges": [(0, 1)]}, "need a key_shared subscription, not shared"),
    ({"out_of_order": True}, "need a key_shared subscription, not exclusive"),
    ({"type": "key_shared", "key_ranges": [(0, 70000)]}, "from 0 to 65535"),
    ({"type": "key_shared", "key_ranges": [(5, 4)]}, "from 0 to 65535"),
    ({"type": "key_shared", "key_ranges": [(5, 10), (0, 5)]}, "hashes in common"),
    ({"type": "shared", "read_compacted": True}, "read_compacted needs an exclusive or failover"),
    ({"on_active": print}, "on_active needs a failover"),
    ({"type": "failover", "retry": True}, "need a shared or key_shared"),
    ({"priority": -1}, "not negative"),
    ({"start": default.pulsar.EARLIEST}, "a durable subscription starts at"),
]


@pytest.mark.parametrize(("options", "why"), REFUSED, ids=[why for _, why in REFUSED])
async def test_what_java_refuses_is_refused(
    pulsar: PulsarCluster, topic: str, impl: str, options: dict[str, Any], why: str
) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        with pytest.raises(ConfigError, match=why):
            await client.consumer(topic, "s", **options)
        with pytest.raises(ConfigError, match="needs persistent topics"):
            await client.consumer(f"non-persistent://public/default/{topic}", "s", read_compacted=True)
        with pytest.raises(ConfigError, match="a subscription has a name"):
            await client.consumer(topic, "")

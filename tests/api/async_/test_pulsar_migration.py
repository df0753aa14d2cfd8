"""A topic goes to another cluster while it is used (blue-green): nothing is lost, nobody has to do anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.pulsar import aio

Clusters = tuple[EmbeddedBroker, EmbeddedBroker]


@pytest.fixture(name="clusters", scope="module")
def clusters_fixture() -> Iterator[Clusters]:
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as blue, EmbeddedBroker(doors=["pulsar"], impl="pure") as green:
        yield blue, green


@pytest.mark.parametrize("kind", ["exclusive", "shared", "failover", "key_shared"])
async def test_producers_and_consumers_follow(clusters: Clusters, impl: str, topic: str, kind: str) -> None:
    blue, green = clusters
    async with aio.Client(blue.pulsar_url, impl=impl) as client, client.producer(topic) as producer:
        consumer = await client.consumer(topic, "s", type=kind, start="earliest")
        before = [b"%d" % number for number in range(50)]
        assert all(one.ok for one in await producer.send_many(before))
        blue.control.migrate(f"public/default/{topic}", green.pulsar_url)
        after = [b"%d" % number for number in range(50, 100)]
        assert all(one.ok for one in await producer.send_many(after))
        seen: list[bytes] = []
        while len(seen) < 100:
            message = await consumer.receive(60)
            seen.append(message.body)
            await consumer.ack(message)
        assert seen == before + after
        await consumer.close()
        async with client.reader(topic, start="earliest") as reader:  # a new one is sent on, too
            assert [(await reader.receive(60)).body for _ in after] == after
    assert green.control.count("SEND") > 0

"""Finding brokers, over the embedded one and the real one: by HTTP, by the second of two clusters, by several hosts."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import re
import socket
import time

import pytest

from mqclient.pulsar import Failover, aio
from tests.support.proxy import CuttingProxy
from tests.support.pulsar_cluster import PulsarCluster


async def until_at(client: aio.Client, url: str) -> None:
    """A client that moves is there soon."""
    limit = time.monotonic() + 30
    while client.diagnose()["url"] != url:
        assert time.monotonic() < limit
        await client.partitions("any")


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as place:
        return int(place.getsockname()[1])


async def test_lookups_over_http(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(f"{topic}-parted", 2)
    async with aio.Client(pulsar.web, impl=impl) as client:
        assert await client.ping()
        assert len(await client.partitions(f"{topic}-parted")) == 2
        pattern = re.compile(f"public/default/{topic}.*")
        async with client.producer(topic) as producer, client.producer(f"{topic}-parted") as parted:
            await producer.send(b"1")
            await parted.send(b"2")
            async with client.consumer(pattern, "s", start="earliest") as consumer:
                assert {(await consumer.receive(15)).body for _ in range(2)} == {b"1", b"2"}
            async with client.transaction() as txn:
                await producer.send(b"3", txn=txn)
        async with client.reader(topic, start="earliest") as reader:
            assert [(await reader.receive(15)).body for _ in range(2)] == [b"1", b"3"]


async def test_one_of_several_hosts_is_enough(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    for url in (pulsar.url, pulsar.web):
        scheme, _, place = url.partition("://")
        urls = f"{scheme}://127.0.0.1:{closed_port()},{place}"
        async with aio.Client(urls, impl=impl) as client, client.producer(topic) as producer:
            assert (await producer.send(b"x")).entry >= 0


@pytest.mark.parametrize("by_web", [False, True])
async def test_failover(pulsar: PulsarCluster, topic: str, impl: str, by_web: bool) -> None:
    url = pulsar.web if by_web else pulsar.url
    host, _, port = url.partition("://")[2].partition(":")
    times = {"check_interval": 0.1, "failover_delay": 0.2, "switch_back_delay": 0.2}
    with CuttingProxy((host, int(port))) as proxy:
        primary = f"{url.partition(':')[0]}://127.0.0.1:{proxy.port}"
        async with aio.Client(Failover(primary, [url], **times), impl=impl) as client:
            async with client.producer(topic) as producer, client.consumer(topic, "s", start="earliest") as consumer:
                await producer.send(b"1")
                await until_at(client, primary)
                proxy.refuse = True
                proxy.cut()
                await until_at(client, url)
                await producer.send(b"2")
                proxy.refuse = False
                await until_at(client, primary)
                await producer.send(b"3")
                got: set[bytes] = set()
                while len(got) < 3:
                    message = await consumer.receive(15)
                    await consumer.ack(message)
                    got.add(message.body)

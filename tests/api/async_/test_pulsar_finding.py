"""Finding brokers, over the embedded one and the real one: by HTTP, by the second of two clusters, by several hosts."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import re
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.config import TLS
from mqclient.errors import LinkError
from mqclient.pulsar import Cluster, Failover, aio, basic
from tests.support.certificates import Certificates, make
from tests.support.proxy import CuttingProxy
from tests.support.pulsar_cluster import PulsarCluster
from tests.support.pulsar_proxy import INSIDE, PulsarProxy


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
                assert {(await consumer.receive(60)).body for _ in range(2)} == {b"1", b"2"}
            async with client.transaction() as txn:
                await producer.send(b"3", txn=txn)
        async with client.reader(topic, start="earliest") as reader:
            assert [(await reader.receive(60)).body for _ in range(2)] == [b"1", b"3"]


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
                    message = await consumer.receive(60)
                    await consumer.ack(message)
                    got.add(message.body)


def served(certificates: Certificates, **settings: Any) -> EmbeddedBroker:
    """A cluster that asks for a credential, on encrypted connections."""
    files: dict[str, Any] = {"tlsCertificateFilePath": certificates.certificate, "tlsKeyFilePath": certificates.key}
    return EmbeddedBroker(doors=["pulsar"], impl="pure", **files, **settings)


async def test_each_cluster_has_its_own_authority_and_credential(tmp_path: Path, impl: str) -> None:
    """Two clusters that trust nobody of the other's."""
    folders = [tmp_path / "home", tmp_path / "away"]
    for folder in folders:
        folder.mkdir()
    home, away = map(make, folders)
    times: dict[str, Any] = {"check_interval": 0.1, "failover_delay": 0.2, "switch_back_delay": 60.0}
    with served(home, pulsar_basic={"a": "1"}) as first, served(away, pulsar_basic={"b": "2"}) as second:
        there = Cluster(second.pulsar_tls_url, auth=basic("b", "2"), tls=TLS(trust=away.authority))
        urls = Failover(first.pulsar_tls_url, [there], **times)
        async with aio.Client(urls, auth=basic("a", "1"), tls=TLS(trust=home.authority), impl=impl) as client:
            async with client.producer("orders") as producer:
                await producer.send(b"1")
                first.stop()
                await producer.send(b"2", timeout=30)
                assert client.diagnose()["url"] == second.pulsar_tls_url
                assert client.ready()


async def test_several_connections_to_a_broker(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(topic, 4)
    async with aio.Client(pulsar.url, impl=impl, connections_per_broker=4) as client:
        assert not client.ready()
        async with client.producer(topic, batching=False) as producer, client.consumer(topic, "s") as consumer:
            assert client.ready()
            shown = [(one["producers"], one["consumers"]) for one in client.diagnose()["connections"]]
            assert [one for one in shown if one != (0, 0)] == [(1, 1)] * 4  # lookups may need one of their own
            assert all(result.ok for result in await producer.send_many([b"%d" % number for number in range(40)]))
            got = {(await consumer.receive(60)).body for _ in range(40)}
            assert got == {b"%d" % number for number in range(40)}


async def test_where_the_environment_says(
    pulsar: PulsarCluster, topic: str, impl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULSAR_SERVICE_URL", pulsar.url)
    async with aio.Client(impl=impl) as client, client.producer(topic) as producer:
        assert (await producer.send(b"x")).entry >= 0


async def test_brokers_that_only_a_proxy_reaches(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    host, _, port = pulsar.url.partition("://")[2].partition(":")
    with PulsarProxy(host, int(port)) as proxy:
        async with aio.Client(proxy.url, impl=impl) as client:
            async with client.producer(topic) as producer, client.consumer(topic, "s") as consumer:
                await producer.send(b"1")
                assert (await consumer.receive(60)).body == b"1"
                pulsar.unload(topic)
                await producer.send(b"2", timeout=30)
                assert (await consumer.receive(60)).body in (b"1", b"2")
                [_, led] = client.diagnose()["connections"]
                assert (led["producers"], led["consumers"]) == (1, 1)
        assert set(proxy.proxied) == {INSIDE.partition("://")[2]}


async def test_the_address_that_a_listener_has(topic: str, impl: str) -> None:
    """Brokers of several networks have an address for each. Real ones: tests/real/test_pulsar_auth.py."""
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as broker:
        port = broker.pulsar_url.rpartition(":")[2]
        names = f"inside:pulsar://broker-inside.invalid:6650,outside:pulsar://localhost:{port}"
        broker.control.call(broker.house.settings.__setitem__, "advertisedListeners", names)
        async with (
            aio.Client(broker.pulsar_url, impl=impl, listener="outside") as client,
            client.producer(topic) as producer,
        ):
            assert (await producer.send(b"x")).entry == 0
            assert f"localhost:{port}" in {one["address"] for one in client.diagnose()["connections"]}
        async with aio.Client(broker.pulsar_url, impl=impl, listener="inside", connect_timeout=2) as client:
            with pytest.raises(LinkError, match=r"broker-inside\.invalid"):
                await client.producer(topic, timeout=3)

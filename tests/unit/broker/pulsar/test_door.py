"""The entrance over real sockets: its address, its end, topics that move."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from tests.differential.raw_pulsar import RawPulsar
from tests.support import certificates
from tests.support.pulsar_world import PulsarWorld, RawClient


def test_a_free_port_that_is_closed_in_the_end() -> None:
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as broker:
        scheme, _, rest = broker.pulsar_url.partition("://")
        host, _, port = rest.partition(":")
        assert (scheme, host) == ("pulsar", "127.0.0.1")
        with socket.create_connection((host, int(port)), 5) as peer:
            peer.sendall(b"\xff" * 8)
            assert peer.recv(1) == b""
        left = socket.create_connection((host, int(port)), 5)
    with left:
        assert left.recv(1) == b""


def test_who_is_there_when_the_broker_stops(codec: Any, tmp_path: Path) -> None:
    """Told, over and noted: clients and callers of the administration, and what these have decided."""
    with EmbeddedBroker(doors=["pulsar"], impl=codec, data=tmp_path) as broker:
        host, _, port = broker.pulsar_rest.partition("://")[2].partition(":")
        call = f"{broker.pulsar_rest}/admin/v2/persistent/public/default/kept/partitions"
        request = urllib.request.Request(call, b"3", {"Content-Type": "application/json"}, method="PUT")
        urllib.request.urlopen(request, timeout=20).close()
        client = RawPulsar(codec.pulsar, broker.pulsar_url)
        caller = socket.create_connection((host, int(port)), 20)
        caller.sendall(b"GET /admin/v2/clusters HTTP/1.1\r\nHost: x\r\n\r\n")
        assert caller.recv(100).startswith(b"HTTP/1.1 200")
    with client, caller:
        while caller.recv(1000):
            pass
        with pytest.raises((EOFError, ConnectionError)):
            client.ask("LOOKUP", topic="kept", authoritative=False)
    with EmbeddedBroker(doors=["pulsar"], impl=codec, data=tmp_path) as broker:
        call = f"{broker.pulsar_rest}/admin/v2/persistent/public/default/kept/partitions"
        with urllib.request.urlopen(call, timeout=20) as reply:
            assert json.load(reply)["partitions"] == 3


def test_a_port_that_was_asked_for() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with EmbeddedBroker(doors=["pulsar"], impl="pure", pulsar_port=port) as broker:
        assert broker.pulsar_url == f"pulsar://127.0.0.1:{port}"


def test_unloading_tells_everybody(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    producer = world.producer(client, "t", name="mine")
    consumer = world.consumer(client, "t", "s", type="shared")
    world.door.unload("t")
    world.world.run()
    topic = world.door.topics.make("t")
    assert (topic.producers, topic.subscriptions["s"].consumers) == ({}, [])
    world.world.advance(5)
    assert [list(topic.producers), len(topic.subscriptions["s"].consumers)] == [["mine"], 1]
    assert (producer.attachment.epoch, consumer.attachment.epoch) == (2, 2)


def test_by_tls(tmp_path: Path) -> None:
    made = certificates.make(tmp_path)
    given: dict[str, Any] = {"tlsCertificateFilePath": made.certificate, "tlsKeyFilePath": made.key}
    trusted = ssl.create_default_context(cafile=made.authority)
    with EmbeddedBroker(doors=["pulsar"], impl="pure", **given) as broker:
        assert sorted(broker.addresses()) == ["pulsar_rest", "pulsar_tls_rest", "pulsar_tls_url", "pulsar_url"]
        url = broker.addresses()["pulsar_tls_rest"]
        with urllib.request.urlopen(f"{url}/admin/v2/clusters", timeout=10, context=trusted) as reply:
            assert reply.read() == b'["standalone"]'
        host, _, port = broker.pulsar_tls_url.partition("://")[2].partition(":")
        with (
            socket.create_connection((host, int(port)), 10) as bare,
            trusted.wrap_socket(bare, server_hostname=host) as peer,
        ):
            peer.sendall(b"\xff" * 8)
            assert peer.recv(1) == b""


def test_everybody_is_asked(codec: Any) -> None:
    world = PulsarWorld(codec)
    raw, silent = RawClient(world, connect=False), RawClient(world, connect=False)
    raw.tell("CONNECT", client_version="raw", feature_flags={"supports_auth_refresh": True})
    raw.events.clear()
    world.door.ask_for_credentials()
    world.world.run()
    assert [name for name, _ in raw.events] == ["AUTH_CHALLENGE"]
    assert silent.events == []


def test_watchers_hear_of_topics(codec: Any) -> None:
    world = PulsarWorld(codec)
    raw = RawClient(world)
    raw.ask("WATCH_TOPIC_LIST", namespace="public/default", topics_pattern="public/default/.*", watcher_id=1)
    raw.events.clear()
    world.door.topics.make("t")
    world.world.run()
    assert [name for name, _ in raw.events] == ["WATCH_TOPIC_UPDATE"]


def test_what_is_there_is_told(codec: Any) -> None:
    world = PulsarWorld(codec)
    world.send(world.producer(world.client(), "t"), b"one", b"two")
    (row,) = world.door.overview()
    ((log, _),) = world.door.logs()
    assert row[:3] == ("pulsar", "t", 2)
    assert log is world.door.topics.make("t").log


def test_a_topic_that_goes_to_another_cluster(codec: Any) -> None:
    world = PulsarWorld(codec)
    raw = RawClient(world)
    raw.ask("PRODUCER", topic="t", producer_id=1, producer_name="mine")
    raw.events.clear()
    world.door.migrate("t", "pulsar://green:6650", "")
    world.world.run()
    name, told = raw.events[0]
    assert (name, told.brokerServiceUrl) == ("TOPIC_MIGRATED", "pulsar://green:6650")

"""The entrance over real sockets: its address, its end, topics that move."""

from __future__ import annotations

import socket
from typing import Any

from mqclient.broker import EmbeddedBroker
from tests.support.pulsar_world import PulsarWorld


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

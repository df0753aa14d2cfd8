"""Lookups against a scripted broker: redirects, proxies, wrong answers; and the pool."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient import _schema
from mqclient.core.steps import run_steps
from mqclient.errors import ClosedError, LinkError, ProtocolError
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.codes import BrokerError
from mqclient.pulsar.connection import Connection
from mqclient.pulsar.names import TopicName
from tests.support.fake_driver import Script, Wire, World
from tests.support.pulsar_world import PulsarWorld

TOPIC = TopicName.parse("t")


class Lookup:
    """Brokers by address, each with its answers to LOOKUP."""

    def __init__(self, codec: Any) -> None:
        self.codec = codec
        self.world = World()
        self.seen: list[tuple[str, Any]] = []
        self.answers: dict[str, list[dict[str, Any]]] = {}

    def listen(self, host: str, *answers: dict[str, Any]) -> None:
        self.answers[host] = list(answers)
        readers: dict[Wire, Any] = {}

        def answer(wire: Wire, data: bytes) -> None:
            for event in readers.setdefault(wire, self.codec.pulsar.FrameReader()).feed(data):
                request = _schema.read_command(*event)
                self.seen.append((host, request))
                if event[0] == 2:
                    wire.send(self.frame(3, "CommandConnected", server_version=host, protocol_version=21))
                else:
                    reply = self.answers[host].pop(0)
                    wire.send(self.frame(24, "CommandLookupTopicResponse", request_id=request.request_id, **reply))

        self.world.listen((host, 6650), Script(answer))

    def frame(self, kind: int, name: str, **fields: Any) -> bytes:
        frame: bytes = self.codec.pulsar.encode_command(kind, _schema.message(name)(**fields).SerializeToString())
        return frame

    def run(self) -> Connection:
        driver = self.world.driver()
        client = ClientEngine(driver, self.codec, "pulsar://a")
        with driver.enter():
            driver.attach(client)
            slot = run_steps(client.lookup_steps(TOPIC, client.deadline()))
        return self.world.result(slot)


def test_served_there(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 1, "brokerServiceUrl": "pulsar://b:6650"})
    lookup.listen("b")
    assert lookup.run().server == "b"


def test_redirects_are_followed_with_their_authority(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 0, "brokerServiceUrl": "pulsar://b:6650", "authoritative": True})
    lookup.listen("b", {"response": 1, "brokerServiceUrl": "pulsar://b:6650"})
    assert lookup.run().server == "b"
    assert [(host, request.authoritative) for host, request in lookup.seen if hasattr(request, "authoritative")] == [
        ("a", False),
        ("b", True),
    ]


def test_redirects_without_end(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", *[{"response": 0, "brokerServiceUrl": "pulsar://a:6650"}] * 30)
    with pytest.raises(LinkError, match="redirects"):
        lookup.run()


def test_through_a_proxy(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 1, "brokerServiceUrl": "pulsar://b:6650", "proxy_through_service_url": True})
    assert lookup.run().server == "a"
    connects = [request for _, request in lookup.seen if hasattr(request, "client_version")]
    assert [request.proxy_to_broker_url for request in connects] == ["", "b:6650"]


def test_a_standalone_broker_that_names_itself_needs_no_second_connection(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 1, "brokerServiceUrl": "pulsar://a:6650", "proxy_through_service_url": True})
    assert lookup.run().server == "a"
    assert len([request for _, request in lookup.seen if hasattr(request, "client_version")]) == 1


def test_wrong_answers(codec: Any) -> None:
    lookup = Lookup(codec)
    lookup.listen("a", {"response": 1, "brokerServiceUrl": "nonsense"})
    with pytest.raises(ProtocolError, match="no usable broker"):
        lookup.run()
    lookup.listen("a", {"response": 2, "error": 11, "message": "none such"})
    with pytest.raises(BrokerError, match="none such"):
        lookup.run()


def test_the_pool_replaces_what_is_gone(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    world.steps(client, lambda: client.ping_steps(client.deadline()))
    world.cut()
    world.world.run()
    assert client.diagnose()["connections"] == []
    assert "mqclient" in world.steps(client, lambda: client.ping_steps(client.deadline()))


def test_a_broker_named_by_the_last_one(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    connection = world.steps(client, lambda: client.connect_to_steps("pulsar://broker:6650", client.deadline()))
    assert connection.ready


def test_closing_closes_members_first(codec: Any) -> None:
    world = PulsarWorld(codec)
    client = world.client()
    producer = world.producer(client, "t")
    consumer = world.consumer(client, "t", "s")
    with client.driver.enter():
        future = producer.submit((b"x", None, None, 0, None, -1, False))
    world.steps(client, client.close_steps)
    world.steps(client, client.close_steps)
    assert future is not None
    assert future.result().entry == 0
    assert (producer.diagnose()["state"], consumer.diagnose()["state"]) == ("closed", "closed")
    world.world.run()
    assert not world.door.sessions
    for make in (lambda: world.producer(client, "t"), lambda: world.consumer(client, "t", "s")):
        with pytest.raises(ClosedError):
            make()

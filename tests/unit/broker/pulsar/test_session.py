"""One connection at the broker: keep-alive, bad bytes, unsupported commands, scripted faults."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from mqclient import _schema
from mqclient.broker import EmbeddedBroker
from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


@pytest.fixture
def raw(world: PulsarWorld) -> RawClient:
    return RawClient(world)


def test_who_does_not_connect_is_closed(world: PulsarWorld) -> None:
    raw = RawClient(world, connect=False)
    raw.session._keep_alive()
    assert not raw.open


def test_keep_alive(world: PulsarWorld, codec: Any) -> None:
    client = world.client(keep_alive=0)
    world.steps(client, lambda: client.ping_steps(client.deadline()))
    world.world.advance(65)
    assert client.diagnose()["connections"]  # the client answers PING
    [session] = world.door.sessions
    session.write = lambda frame: None  # type: ignore[method-assign]
    world.world.advance(65)
    assert client.diagnose()["connections"] == []


@pytest.mark.parametrize("data", [b"\xff" * 8, b"\x00\x00\x00\x06\x00\x00\x00\x02\xff\xff"])
def test_bad_bytes_end_the_connection(raw: RawClient, data: bytes) -> None:
    raw.write(data)
    assert not raw.open
    raw.write(data)


def test_a_command_that_cannot_be_read(raw: RawClient) -> None:
    raw.write(raw.codec.encode_command(23, b"\xff\xff"))
    assert not raw.open


def test_what_is_not_supported_says_so(raw: RawClient) -> None:
    commands: dict[str, dict[str, Any]] = {
        "GET_SCHEMA": {"topic": "t"},
        "NEW_TXN": {},
        "TC_CLIENT_CONNECT_REQUEST": {"tc_id": 0},
        "WATCH_TOPIC_LIST": {"watcher_id": 1, "namespace": "public/default", "topics_pattern": ".*"},
    }
    for kind, fields in commands.items():
        name, told = raw.ask(kind, **fields)
        assert (name, told.error) == ("ERROR", ServerError.NotAllowedError)
        assert kind in told.message
    raw.write(raw.codec.encode_command(99, b"unknown"))
    assert raw.open


def test_scripted_faults(world: PulsarWorld, raw: RawClient) -> None:
    world.control.drop("LOOKUP")
    assert raw.ask("LOOKUP", topic="t") is None
    world.control.answer("LOOKUP", ServerError.MetadataError, "as told")
    assert raw.ask("LOOKUP", topic="t")[1].message == "as told"
    world.control.delay("LOOKUP", 2.0)
    assert raw.ask("LOOKUP", topic="t") is None
    world.world.advance(3)
    assert raw.events[-1][0] == "LOOKUP_RESPONSE"
    world.control.cut("LOOKUP", after=True)
    assert raw.ask("LOOKUP", topic="t") is None
    assert not raw.open
    other = RawClient(world)
    world.control.cut("PRODUCER")
    assert other.ask("PRODUCER", topic="t", producer_id=1) is None
    assert not other.open
    assert world.door.topics.get("t") is None


def test_an_answer_to_what_has_none_is_nothing(world: PulsarWorld, raw: RawClient) -> None:
    raw.subscribe()
    world.control.answer("FLOW", 0, "x")
    assert raw.flow(5) == []
    assert raw.consumer.permits == 0


def test_after_the_end_nothing_is_written(raw: RawClient) -> None:
    raw.lose()
    raw.session.write(b"x")
    raw.session.close("again")
    assert raw.session._out == []


def test_over_a_socket(codec: Any) -> None:
    with EmbeddedBroker(doors=["pulsar"], impl=codec) as broker:
        host, _, port = broker.pulsar_url.removeprefix("pulsar://").partition(":")
        with socket.create_connection((host, int(port)), 5) as peer:
            reader = codec.pulsar.FrameReader()
            connect = _schema.message("CommandConnect")(client_version="raw", protocol_version=21)
            peer.sendall(codec.pulsar.encode_command(2, connect.SerializeToString()) + codec.pulsar.PING_FRAME)
            kinds: list[int] = []
            while len(kinds) < 2:
                kinds += [event[0] for event in reader.feed(peer.recv(4096))]
            assert kinds == [3, codec.pulsar.PONG]

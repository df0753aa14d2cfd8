"""One connection at the broker: keep-alive, bad bytes, unsupported commands, scripted faults."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from mqclient import _schema
from mqclient import broker as package
from mqclient.broker import EmbeddedBroker
from mqclient.broker.pulsar.session import HANDLERS, NAMES
from mqclient.pulsar.codes import ServerError
from tests.support.pulsar_world import PulsarWorld, RawClient

SKIPPED = Path(package.__file__).with_name("SKIPPED.md").read_text(encoding="utf-8").partition("## Pulsar")[2]


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


def test_what_is_left_out_is_listed() -> None:
    answers = ("_RESPONSE", "SUCCESS", "ERROR", "_UPDATE", "_CHANGE", "_RECEIPT", "_MIGRATED")
    for number, name in NAMES.items():
        wanted = _schema.command(number)
        if wanted is not None and "request_id" in wanted.DESCRIPTOR.fields_by_name and not name.endswith(answers):
            assert number in HANDLERS or name in SKIPPED, name


def test_what_is_not_supported_says_so(raw: RawClient) -> None:
    commands: dict[str, dict[str, Any]] = {
        "END_TXN_ON_PARTITION": {"topic": "t"},
        "END_TXN_ON_SUBSCRIPTION": {},
    }
    for kind, fields in commands.items():
        name, told = raw.ask(kind, **fields)
        assert (name, told.error) == ("ERROR", ServerError.NotAllowedError)
        assert kind in told.message
        assert kind in SKIPPED
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


def test_asking_whether_the_client_is_there(world: PulsarWorld, raw: RawClient) -> None:
    answers: list[bool] = []
    raw.session.alive(answers.append)
    raw.write(raw.codec.PONG_FRAME)
    world.world.advance(1)
    assert answers == [True]
    raw.session.alive(answers.append)
    world.world.advance(6)
    assert (answers, raw.open) == ([True, False], False)
    raw.session.alive(answers.append)
    world.world.advance(1)
    assert answers == [True, False, False]


def test_who_reads_slowly_is_given_nothing_until_it_has_read(world: PulsarWorld, raw: RawClient) -> None:
    raw.subscribe()
    raw.flow(10)
    raw.session.pause_writing()
    raw.produce([b"x"])
    world.control.delay("SUBSCRIBE", 5.0)
    raw.subscribe(1)  # one that is still being made has nothing to be poked
    assert raw.entries() == []
    raw.session.resume_writing()
    world.world.run()
    assert len(raw.entries()) == 1


def test_what_lived_here_goes_with_it(world: PulsarWorld, raw: RawClient) -> None:
    raw.subscribe()
    raw.ask("PRODUCER", topic="t", producer_id=5, producer_name="mine")
    topic = world.door.topics.make("t")
    raw.session.close("as told")
    assert (topic.producers, topic.subscriptions["s"].consumers, world.door.sessions) == ({}, [], set())


def test_a_delayed_command_of_a_closed_connection_is_not_handled(world: PulsarWorld, raw: RawClient) -> None:
    world.control.delay("PARTITIONED_METADATA", 1.0)
    raw.ask("PARTITIONED_METADATA", topic="t")
    raw.lose()
    world.world.advance(2)
    assert world.door.topics.get("t") is None


def test_a_scripted_error_to_a_send_is_its_own_kind(world: PulsarWorld, raw: RawClient) -> None:
    raw.ask("PRODUCER", topic="t", producer_id=1)
    world.control.answer("SEND", ServerError.PersistenceError, "full")
    raw.events.clear()
    raw.write(raw.codec.encode_send(1, 4, raw.codec.encode_metadata("p", 4, 1), b"x"))
    assert [(name, told.sequence_id, told.error) for name, told in raw.events] == [("SEND_ERROR", 4, 2)]


def test_a_slow_opening_can_be_overtaken(world: PulsarWorld, raw: RawClient) -> None:
    world.control.delay("SUBSCRIBE", 1.0)
    raw.subscribe()
    assert raw.ask("CLOSE_CONSUMER", consumer_id=0)[0] == "SUCCESS"


def test_an_active_consumer_is_told(raw: RawClient) -> None:
    raw.subscribe(subType=2)
    raw.events.clear()
    raw.session.active_consumer_change(0, False)
    raw.world.world.run()
    [(name, told)] = raw.events
    assert (name, told.is_active) == ("ACTIVE_CONSUMER_CHANGE", False)


def test_an_embedded_broker_that_stops_says_what_it_had_to_say() -> None:
    broker = EmbeddedBroker(doors=["pulsar"], impl="pure").start()
    host, _, port = broker.pulsar_url.removeprefix("pulsar://").partition(":")
    with socket.create_connection((host, int(port)), 5) as peer:
        broker.stop()
        assert peer.recv(1) == b""

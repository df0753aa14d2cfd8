"""What was sealed is opened in its turn, once asked for its key; what cannot be read leaves no permit behind."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from mqclient import _schema
from mqclient.core.steps import run_steps
from mqclient.pulsar import unsealing
from mqclient.pulsar.consumer_options import DeadLetter
from mqclient.pulsar.encryption import Decryption, Encryption
from mqclient.pulsar.schema import STRING
from tests.support.keys import pair
from tests.support.pulsar_world import PulsarWorld

FOR_A = Encryption(["a"], {"a": pair("a").public})
FOR_BOTH = Encryption(["a", "b"], {name: pair(name).public for name in "ab"})
BY_A = Decryption({"a": pair("a").private})


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def send(world: PulsarWorld, *bodies: Any, encrypt: Encryption | None = FOR_A, **options: Any) -> None:
    world.sender(world.producer(world.client(), "t", encrypt=encrypt, **options)).send_many(list(bodies))


def consumer(world: PulsarWorld, decrypt: Decryption | None = BY_A, **options: Any) -> Any:
    return world.consumer(world.client(), "t", "s", start="earliest", decrypt=decrypt, **options)


def bodies(world: PulsarWorld, made: Any, count: int) -> list[bytes]:
    face = world.face(made)
    return [face.receive(60).body for _ in range(count)]


@pytest.mark.parametrize("options", [{}, {"batching": False}, {"compression": "zlib", "compress_above": 10}])
@pytest.mark.parametrize("taking", [{}, {"ack_timeout": 10.0}, {"receiver_queue": 0}, {"receiver_queue": 1}])
def test_it_is_opened(world: PulsarWorld, options: dict[str, Any], taking: dict[str, Any]) -> None:
    wanted = [b"%d" % number * 20 for number in range(5)]
    send(world, *wanted, **options)
    made = consumer(world, **taking)
    assert bodies(world, made, 5) == wanted
    world.settled(made)


def test_messages_in_parts(world: PulsarWorld) -> None:
    body = bytes(range(250)) * 20
    send(world, body, b"next", batching=False, chunking=True, chunk_size=1000)
    made = consumer(world)
    assert bodies(world, made, 2) == [body, b"next"]
    world.settled(made)


def test_values_of_a_schema(world: PulsarWorld) -> None:
    send(world, "text", schema=STRING)
    assert world.face(consumer(world, schema=STRING)).receive(5).value == "text"


def test_the_reader_is_asked_once_and_what_follows_waits(world: PulsarWorld) -> None:
    asked: list[tuple[str, Mapping[str, str]]] = []
    answers: list[Any] = []

    async def later(name: str, metadata: Mapping[str, str]) -> bytes:
        asked.append((name, metadata))
        return pair("a").private

    send(world, b"one", b"two", batching=False)
    send(world, b"three", encrypt=None)
    made = consumer(world, Decryption(later))
    assert bodies(world, made, 3) == [b"one", b"two", b"three"]
    assert asked == [("a", {})]
    assert not answers
    world.settled(made)


def test_of_several_keys_one_is_enough(world: PulsarWorld) -> None:
    send(world, b"x", encrypt=FOR_BOTH)
    assert bodies(world, consumer(world, Decryption({"b": pair("b").private})), 1) == [b"x"]


@pytest.mark.parametrize(
    "decrypt", [None, Decryption({}), Decryption({"a": pair("b").private}), Decryption({"a": b"?"})]
)
@pytest.mark.parametrize("queue", [0, 1, 1000])
def test_what_cannot_be_read_is_not_given_out(
    world: PulsarWorld, decrypt: Decryption | None, queue: int, caplog: pytest.LogCaptureFixture
) -> None:
    send(world, *[b"x"] * 20, batching=False)
    send(world, *[b"y"] * 20)
    send(world, b"plain", encrypt=None)
    made = consumer(world, decrypt, type="shared", receiver_queue=queue)
    with caplog.at_level(logging.ERROR):
        assert bodies(world, made, 1) == [b"plain"]
    assert sum("cannot be read" in record.message for record in caplog.records) == 1  # not one for each
    assert made.diagnose()["unread"] == 21
    world.settled(made)


def test_it_comes_again_with_an_ack_timeout(world: PulsarWorld) -> None:
    found: dict[str, bytes] = {}
    send(world, b"x")
    made = consumer(world, Decryption(found), type="shared", ack_timeout=10.0)
    world.world.advance(5)
    found["a"] = pair("a").private
    message = world.face(made).receive(60)
    assert (message.body, message.redeliveries) == (b"x", 1)


def test_discarded(world: PulsarWorld) -> None:
    send(world, b"x", b"y")
    send(world, b"plain", encrypt=None)
    made = consumer(world, Decryption({}, on_failure="discard"))
    world.face(made).ack(world.face(made).receive(60))
    world.world.advance(1)
    world.settled(made)
    world.do(made.client, lambda: run_steps(made.close_steps()))
    again = consumer(world, BY_A)
    send(world, b"later", encrypt=None)
    assert bodies(world, again, 1) == [b"later"]


@pytest.mark.parametrize("taking", [{}, {"ack_timeout": 10.0}, {"receiver_queue": 1}])
def test_consumed_as_it_is(world: PulsarWorld, taking: dict[str, Any]) -> None:
    send(world, b"secret-words", b"y", b"z")
    made = consumer(world, Decryption({}, on_failure="consume"), **taking)
    message = world.face(made).receive(60)
    assert message.encrypted
    assert b"secret-words" not in message.body
    world.settled(made)
    send(world, bytes(3000), batching=False, chunking=True, chunk_size=1000)
    part = world.face(made).receive(60)
    assert (part.encrypted, part.entry.chunk_id) == (True, 0)


def test_a_payload_that_was_changed(world: PulsarWorld) -> None:
    codec = world.impl.pulsar
    send(world, b"good", batching=False)
    made = consumer(world)
    assert bodies(world, made, 1) == [b"good"]
    [wrapped] = made.unsealer._known
    key: Any = _schema.message("EncryptionKeys")
    metadata = codec.encode_metadata(
        "p", 9, 1, encryption_keys=[key(key="a", value=wrapped).SerializeToString()], encryption_param=b"0" * 12
    )
    raw(world, metadata, b"changed" * 5)
    raw(world, codec.encode_metadata("p", 10, 1, encryption_param=b"0" * 12), b"for nobody")
    send(world, b"next", batching=False)
    assert bodies(world, made, 1) == [b"next"]
    assert made.diagnose()["unread"] == 2
    world.settled(made)


def raw(world: PulsarWorld, metadata: bytes, payload: bytes) -> None:
    producer = world.producer(world.client(), "t")
    assert producer.attachment.connection is not None
    with producer.client.driver.enter():
        producer.attachment.connection.write(world.impl.pulsar.encode_send(producer.producer_id, 0, metadata, payload))
    world.world.run()


def test_a_lost_connection_while_the_reader_is_asked(world: PulsarWorld) -> None:
    send(world, b"x", b"y", batching=False)
    lost: list[None] = []

    def look(name: str, metadata: Mapping[str, str]) -> bytes:
        if not lost:
            lost.append(None)
            world.cut()
        return pair("a").private

    made = consumer(world, Decryption(look))
    assert lost
    world.world.advance(5)
    assert made.attachment.epoch == 2
    assert bodies(world, made, 2) == [b"x", b"y"]
    world.settled(made)


def test_a_redelivery_while_it_waits(world: PulsarWorld) -> None:
    made = consumer(world, BY_A)
    made.unsealer._asking = True  # the reader thinks about it
    send(world, b"x", b"y", batching=False)
    world.world.run()
    assert len(made.unsealer) == 2
    with made.client.driver.enter():
        made.unsealer._asking = False
        made.redeliver()
    assert bodies(world, made, 2) == [b"x", b"y"]
    world.settled(made)


def test_keys_that_are_not_used_are_forgotten(world: PulsarWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unsealing, "MOST", 2)
    made = consumer(world)
    for number in range(4):
        send(world, b"%d" % number)
        assert bodies(world, made, 1) == [b"%d" % number]
    assert len(made.unsealer._known) == 2


def test_letters_are_encrypted_if_that_is_wanted(world: PulsarWorld) -> None:
    send(world, b"bad")
    policy = DeadLetter(max_redeliveries=1, initial_subscription="people", encrypt=FOR_BOTH)
    made = consumer(world, type="shared", dead_letter=policy, nack_delay=0.1)
    face = world.face(made)
    for _ in range(2):
        face.nack(face.receive(60))
    world.world.advance(5)
    grave = world.consumer(world.client(), "t-s-DLQ", "people", decrypt=Decryption({"b": pair("b").private}))
    assert bodies(world, grave, 1) == [b"bad"]

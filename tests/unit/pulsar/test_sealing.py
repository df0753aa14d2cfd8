"""A producer's data key: before it opens, renewed, and what happens without."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mqclient import _schema
from mqclient.errors import ClosedError, CryptoError
from mqclient.pulsar.crypto import Cipher, unwrap
from mqclient.pulsar.encryption import Decryption, Encryption, Key
from mqclient.pulsar.sealing import AGAIN
from tests.support.keys import pair
from tests.support.pulsar_world import PulsarWorld

KEYS = {"a": pair("a").public, "b": pair("b").public}


@pytest.fixture
def world(codec: Any) -> PulsarWorld:
    return PulsarWorld(codec)


def stored(world: PulsarWorld, topic: str = "t") -> list[Any]:
    """The entries of a topic, as the broker keeps them."""
    reader = world.reader(world.client(), topic, "earliest", decrypt=Decryption({}, on_failure="consume"))
    world.world.run()
    return [message.entry for message in world.face(reader).receive_many(100, 5)]


def opened(entry: Any, name: str) -> bytes:
    metadata: Any = _schema.message("MessageMetadata").FromString(entry.metadata)
    [wrapped] = [key.value for key in metadata.encryption_keys if key.key == name]
    return Cipher(unwrap(name, pair(name).private, wrapped)).open(metadata.encryption_param, entry.payload)


def wrapped(entry: Any) -> set[bytes]:
    metadata: Any = _schema.message("MessageMetadata").FromString(entry.metadata)
    return {key.value for key in metadata.encryption_keys}


def test_each_key_opens_it(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching=False, encrypt=Encryption(["a", "b"], KEYS))
    sender = world.sender(producer)
    sender.send(b"one")
    sender.send(b"two")
    one, two = stored(world)
    assert [opened(one, name) for name in "ab"] == [b"one", b"one"]
    assert opened(two, "a") == b"two"
    assert wrapped(one) == wrapped(two)  # one data key, each message its own start value
    assert one.metadata != two.metadata


def test_parts_are_sealed_one_by_one(world: PulsarWorld) -> None:
    options: dict[str, Any] = {"batching": False, "chunking": True, "encrypt": Encryption(["a"], KEYS)}
    producer = world.producer(world.client(), "t", chunk_size=1500, **options)
    body = bytes(range(250)) * 20
    world.sender(producer).send(body)
    parts = stored(world)
    assert len(parts) > 3
    assert all(len(part.payload) + len(part.metadata) <= 1600 for part in parts)
    assert b"".join(opened(part, "a") for part in parts) == body


def test_the_data_key_is_renewed(world: PulsarWorld) -> None:
    producer = world.producer(world.client(), "t", batching=False, encrypt=Encryption(["a"], KEYS, renew=100))
    sender = world.sender(producer)
    sender.send(b"one")
    world.world.advance(101)
    sender.send(b"two")
    one, two = stored(world)
    assert not wrapped(one) & wrapped(two)
    assert (opened(one, "a"), opened(two, "a")) == (b"one", b"two")


def test_metadata_travels_with_the_key(world: PulsarWorld) -> None:
    encrypt = Encryption(["a"], lambda name, metadata: Key(pair("a").public, {"version": "7"}))
    world.sender(world.producer(world.client(), "t", encrypt=encrypt)).send(b"x")
    [entry] = stored(world)
    metadata: Any = _schema.message("MessageMetadata").FromString(entry.metadata)
    [key] = metadata.encryption_keys
    assert [(pair.key, pair.value) for pair in key.metadata] == [("version", "7")]


def test_without_the_key_the_producer_does_not_open(world: PulsarWorld) -> None:
    client = world.client()
    with pytest.raises(CryptoError, match="no key 'c'"):
        world.producer(client, "t", encrypt=Encryption(["c"], KEYS))
    with pytest.raises(CryptoError, match=r"reader of encryption key 'c' failed: ZeroDivisionError"):
        world.producer(client, "t", encrypt=Encryption(["c"], lambda name, metadata: 1 // 0))  # type: ignore[arg-type, return-value]


def test_in_the_clear_if_that_is_wanted(world: PulsarWorld, caplog: pytest.LogCaptureFixture) -> None:
    found: dict[str, bytes] = {}
    encrypt = Encryption(["a"], found, on_failure="send")
    with caplog.at_level(logging.WARNING):
        producer = world.producer(world.client(), "t", batching=False, encrypt=encrypt)
    assert "leave unencrypted" in caplog.text
    world.sender(producer).send(b"open")
    found["a"] = pair("a").public
    world.world.advance(AGAIN + 1)
    world.sender(producer).send(b"secret")
    reader = world.reader(world.client(), "t", "earliest")
    assert world.face(reader).receive(5).body == b"open"
    assert reader.diagnose()["unread"] == 1


def test_a_renewal_that_fails_leaves_the_old_key(world: PulsarWorld, caplog: pytest.LogCaptureFixture) -> None:
    found = {"a": pair("a").public}
    producer = world.producer(world.client(), "t", batching=False, encrypt=Encryption(["a"], found, renew=100))
    sender = world.sender(producer)
    sender.send(b"one")
    del found["a"]
    with caplog.at_level(logging.WARNING):
        world.world.advance(101)
    assert "was not renewed" in caplog.text
    sender.send(b"two")
    found["a"] = pair("a").public
    world.world.advance(AGAIN + 1)
    sender.send(b"three")
    one, two, three = stored(world)
    assert wrapped(one) == wrapped(two) != wrapped(three)


def test_closed_while_the_key_is_looked_for(world: PulsarWorld) -> None:
    client = world.client()
    engines: list[Any] = []

    def look(name: str, metadata: Any) -> bytes:
        with client.driver.enter():
            for member in list(client._members):
                engines.append(member)
                member.abandon(ClosedError("gone"))
        return pair("a").public

    with pytest.raises(ClosedError, match="gone"):
        world.producer(client, "t", encrypt=Encryption(["a"], look))
    assert engines[0].framer.sealer._timer is None

"""End-to-end encryption over the embedded broker and the real one: who has the key reads, nobody else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mqclient.errors import CryptoError, DeadlineError
from mqclient.pulsar import Decryption, Encryption, Key, aio
from tests.support.keys import curve, pair
from tests.support.pulsar_cluster import PulsarCluster


def keys(folder: Path) -> tuple[str, str]:
    """Files with the keys of a, b and, on an elliptic curve, c, as paths for all names."""
    for name, made in (("a", pair("a")), ("b", pair("b")), ("c", curve())):
        (folder / f"{name}.pub").write_bytes(made.public)
        (folder / f"{name}.key").write_bytes(made.private)
    return f"{folder}/{{name}}.pub", f"{folder}/{{name}}.key"


@pytest.mark.parametrize("options", [{}, {"batching": "key"}, {"compression": "zlib"}])
async def test_batches_parts_and_partitions(
    pulsar: PulsarCluster, topic: str, impl: str, options: dict[str, Any], tmp_path: Path
) -> None:
    public, private = keys(tmp_path)
    pulsar.partition(topic, 2)
    encrypt = Encryption(["a", "c"], public)
    bodies = [b"%d" % number * 500 for number in range(50)]
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, encrypt=encrypt, **options) as producer:
            many = await producer.send_many([(body, body[:2].decode()) for body in bodies])
            assert all(one.ok for one in many)
        for name in "ac":  # each of them reads it alone
            own = Decryption({name: private.replace("{name}", name)})
            async with client.consumer(topic, name, start="earliest", decrypt=own) as consumer:
                got = [await consumer.receive(60) for _ in bodies]
                assert sorted(message.body for message in got) == sorted(bodies)
                await consumer.ack_confirmed(got)


async def test_a_large_message(pulsar: PulsarCluster, topic: str, impl: str, tmp_path: Path) -> None:
    public, private = keys(tmp_path)
    body = bytes(range(256)) * 48000  # parts as large as the broker takes, with what encryption adds
    async with aio.Client(pulsar.url, impl=impl) as client:
        options: dict[str, Any] = {"batching": False, "chunking": True, "encrypt": Encryption(["a"], public)}
        async with client.producer(topic, **options) as producer:
            await producer.send(body)
        async with client.reader(topic, start="earliest", decrypt=Decryption(private)) as reader:
            assert (await reader.receive(60)).body == body


async def test_a_reader_that_is_awaited_for(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    async def find(name: str, metadata: Mapping[str, str]) -> bytes:
        asked.append((name, dict(metadata)))
        return pair(name).private

    encrypt = Encryption(["a"], lambda name, metadata: Key(pair(name).public, {"version": "3"}))
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, encrypt=encrypt, batching=False) as producer:
            await producer.send(b"one")
            await producer.send(b"two")
        async with client.table_view(topic, decrypt=Decryption(find)):
            pass
        async with client.consumer(topic, "s", start="earliest", decrypt=Decryption(find)) as consumer:
            assert [(await consumer.receive(60)).body for _ in range(2)] == [b"one", b"two"]
    assert asked == [("a", {"version": "3"})] * 2


@pytest.mark.parametrize("action", ["fail", "discard", "consume"])
async def test_without_the_key(pulsar: PulsarCluster, topic: str, impl: str, action: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, encrypt=Encryption(["a"], {"a": pair("a").public})) as producer:
            await producer.send_many([b"secret-words"] * 10)
        options: dict[str, Any] = {"type": "shared", "start": "earliest"}
        decrypt = Decryption({"a": pair("b").private}, on_failure=action)
        async with client.consumer(topic, "s", decrypt=decrypt, receiver_queue=5, **options) as consumer:
            if action == "consume":
                message = await consumer.receive(60)
                assert message.encrypted
                assert b"secret-words" not in message.body
                return
            with pytest.raises(DeadlineError):
                await consumer.receive(0.5)
            async with client.producer(topic) as plain:
                await plain.send(b"plain")
            assert (await consumer.receive(60)).body == b"plain"
        # What was left unacknowledged comes to who can read it, what was discarded to nobody.
        async with client.consumer(topic, "s", decrypt=Decryption({"a": pair("a").private}), **options) as consumer:
            got = [(await consumer.receive(60)).body for _ in range(1 if action == "discard" else 11)]
            assert b"plain" in got


async def test_a_producer_without_the_key(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        with pytest.raises(CryptoError, match="no key 'a'"):
            await client.producer(topic, encrypt=Encryption(["a"], {}))
        async with client.producer(topic, encrypt=Encryption(["a"], {}, on_failure="send")) as producer:
            await producer.send(b"in the clear")
        async with client.reader(topic, start="earliest") as reader:
            assert (await reader.receive(60)).body == b"in the clear"

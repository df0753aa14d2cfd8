"""Encrypted messages go to and fro between us and the official Python client, over both brokers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.pulsar import Client, Decryption, Encryption
from tests.real.fixtures import ON_PULSAR
from tests.support.keys import pair

pytestmark = pytest.mark.skipif(find_spec("_pulsar") is None, reason="pulsar-client is not installed")

OFFICIAL = """
import sys, pulsar
way, url, topic, folder, chunked = sys.argv[1:]
keys = pulsar.CryptoKeyReader(folder + "/a.pub", folder + "/a.key")
client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
bodies = [bytes([65 + number]) * (3_000_000 if chunked == "yes" else 100) for number in range(4)]
if way == "send":
    packed = {"batching_enabled": True, "compression_type": pulsar.CompressionType.ZLib}
    options = {"chunking_enabled": True} if chunked == "yes" else packed
    producer = client.create_producer(topic, encryption_key="a", crypto_key_reader=keys, **options)
    for body in bodies:
        producer.send_async(body, lambda result, id: None)
    producer.flush()
else:
    earliest = pulsar.InitialPosition.Earliest
    consumer = client.subscribe(topic, "official", crypto_key_reader=keys, initial_position=earliest)
    for body in bodies:
        message = consumer.receive(20000)
        assert message.data() == body, (len(message.data()), message.data()[:20])
        consumer.acknowledge(message)
client.close()
print("done")
"""


@pytest.fixture(name="url", scope="module", params=["embedded", pytest.param("real", marks=ON_PULSAR)])
def url_fixture(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "real":
        if "pulsar" not in str(request.config.getoption("--real", "")).split(","):
            pytest.skip("needs a real broker: run `make real`")
        yield request.getfixturevalue("real_pulsar").url
    else:
        with EmbeddedBroker(doors=["pulsar"], impl="pure") as embedded:
            yield embedded.pulsar_url


def official(way: str, url: str, topic: str, folder: Path, chunked: bool) -> None:
    """In a process of its own: the C++ library shares nothing with us."""
    for name, content in (("a.pub", pair("a").public), ("a.key", pair("a").private)):
        (folder / name).write_bytes(content)
    command = [sys.executable, "-c", OFFICIAL, way, url, topic, str(folder), "yes" if chunked else "no"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr


@pytest.mark.parametrize("chunked", [False, True])
def test_they_read_what_we_seal(url: str, chunked: bool, tmp_path: Path) -> None:
    topic = f"to-official-{chunked}"
    bodies = [bytes([65 + number]) * (3_000_000 if chunked else 100) for number in range(4)]
    encrypt = Encryption(["b", "a"], {name: pair(name).public for name in "ab"})
    with Client(url) as client:
        options = {"batching": False, "chunking": True} if chunked else {"compression": "zlib", "compress_above": 10}
        with client.producer(topic, encrypt=encrypt, **options) as producer:
            assert all(sent.ok for sent in producer.send_many(bodies))
    official("receive", url, topic, tmp_path, chunked)


@pytest.mark.parametrize("chunked", [False, True])
def test_we_read_what_they_seal(url: str, chunked: bool, tmp_path: Path) -> None:
    topic = f"from-official-{chunked}"
    official("send", url, topic, tmp_path, chunked)
    decrypt = Decryption({"a": pair("a").private})
    with Client(url) as client, client.consumer(topic, "ours", start="earliest", decrypt=decrypt) as consumer:
        got = [consumer.receive(60).body for _ in range(4)]
    assert got == [bytes([65 + number]) * (3_000_000 if chunked else 100) for number in range(4)]

"""Bodies that only the owner of a key can read: the broker keeps ciphertext. Both faces.

pip install 'mqclient[crypto]'
python examples/pulsar_encryption.py [SERVICE_URL]

Keys are RSA in PEM files: openssl genrsa -out a.key 2048; openssl rsa -in a.key -pubout -out a.pub
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.pulsar import aio


def make_keys(folder: str, name: str) -> None:
    """What openssl would do."""
    private = rsa.generate_private_key(65537, 2048)
    none, kind = serialization.NoEncryption(), serialization.PrivateFormat.PKCS8
    Path(folder, f"{name}.key").write_bytes(private.private_bytes(serialization.Encoding.PEM, kind, none))
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    Path(folder, f"{name}.pub").write_bytes(private.public_key().public_bytes(serialization.Encoding.PEM, public))


def main(url: str, folder: str) -> None:
    encrypt = pulsar.Encryption(["audit", "backup"], f"{folder}/{{name}}.pub")
    decrypt = pulsar.Decryption(f"{folder}/{{name}}.key")
    with pulsar.Client(url) as client:
        with client.producer("payroll", encrypt=encrypt, compression="zlib") as producer:
            producer.send_many([b"salary of %d" % number for number in range(100)])
        with client.consumer("payroll", "audit", start="earliest", decrypt=decrypt) as consumer:
            messages = consumer.receive_many(100, timeout=10)
            print(f"with the key: {messages[0].body!r} and {len(messages) - 1} others")
        blind = pulsar.Decryption({}, on_failure="consume")
        with client.reader("payroll", start="earliest", decrypt=blind) as reader:
            message = reader.receive(timeout=10)
            print(f"without it: {len(message.body)} bytes, encrypted: {message.encrypted}")


async def amain(url: str, folder: str) -> None:
    async def find(name: str, metadata: object) -> bytes:
        """As a key service would be asked."""
        return await asyncio.to_thread(Path(folder, f"{name}.key").read_bytes)

    decrypt = pulsar.Decryption(find)
    async with aio.Client(url) as client, client.reader("payroll", start="earliest", decrypt=decrypt) as reader:
        print(f"asyncio: {(await reader.receive(timeout=10)).body!r}")


def run(url: str) -> None:
    with TemporaryDirectory() as folder:
        make_keys(folder, "audit")
        make_keys(folder, "backup")
        main(url, folder)
        asyncio.run(amain(url, folder))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["pulsar"]) as broker:
            run(broker.pulsar_url)

"""Several consumers share a subscription, and messages of one key stay in order, with one of them. Both faces.

python examples/pulsar_key_shared.py [SERVICE_URL]
"""

from __future__ import annotations

import asyncio
import sys

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.pulsar import aio

CUSTOMERS = [f"customer-{number}" for number in range(8)]


def main(url: str) -> None:
    with pulsar.Client(url) as client:
        first = client.consumer("orders", "shipping", type="key_shared")
        second = client.consumer("orders", "shipping", type="key_shared")
        # Entries go to one consumer as a whole, so each holds messages of one key only.
        with client.producer("orders", batching="key") as producer:
            producer.send_many([(b"%d" % number, key) for number in range(3) for key in CUSTOMERS])
        for name, consumer in (("first", first), ("second", second)):
            while messages := consumer.receive_many(100, timeout=0.5):
                consumer.ack(messages)
                keys = sorted({str(message.key) for message in messages})
                print(f"{name}: {len(messages)} messages of {', '.join(keys)}")


async def amain(url: str) -> None:
    async with aio.Client(url) as client:
        low = await client.consumer("parcels", "s", type="key_shared", key_ranges=[(0, 32767)])
        high = await client.consumer("parcels", "s", type="key_shared", key_ranges=[(32768, 65535)])
        async with client.producer("parcels", batching="key") as producer:
            await producer.send_many([(b"x", key) for key in CUSTOMERS])
        counts = [len(await consumer.receive_many(100, timeout=2)) for consumer in (low, high)]
        print(f"asyncio, by ranges of hashes: {counts[0]} and {counts[1]}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
        asyncio.run(amain(sys.argv[1]))
    else:
        with EmbeddedBroker(doors=["pulsar"]) as broker:
            main(broker.pulsar_url)
            asyncio.run(amain(broker.pulsar_url))

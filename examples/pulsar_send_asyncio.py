"""Send from many tasks, later, and in parts; entries of one key each; asyncio.

python examples/pulsar_send_asyncio.py [SERVICE_URL]
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta

from mqclient.broker import EmbeddedBroker
from mqclient.pulsar import aio


async def main(url: str) -> None:
    async with aio.Client(url) as client:
        async with client.producer("orders", batching="key", max_pending=1000) as producer:
            ids = await asyncio.gather(*[producer.send(b"paid", key=f"shop-{number % 5}") for number in range(100)])
            print(f"{len(ids)} messages in {len({(at.ledger, at.entry) for at in ids})} entries")
            later = await producer.send(b"remind", deliver_after=timedelta(minutes=5))
            print(f"in five minutes: {later}")
        async with client.producer("scans", batching=False, chunking=True, compression="zlib") as producer:
            print(f"large: {await producer.send(os.urandom(8 << 20))}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(sys.argv[1]))
    else:
        with EmbeddedBroker(doors=["pulsar"]) as broker:
            asyncio.run(main(broker.pulsar_url))

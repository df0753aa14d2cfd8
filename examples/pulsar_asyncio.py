"""The same under asyncio: a thousand sends at once, then everything received.

python examples/pulsar_asyncio.py [SERVICE_URL]
"""

from __future__ import annotations

import asyncio
import sys

from mqclient.broker import EmbeddedBroker
from mqclient.pulsar import aio

COUNT = 1000


async def main(url: str) -> None:
    async with (
        aio.Client(url) as client,
        client.consumer("orders", "billing") as consumer,
        client.producer("orders") as producer,
    ):
        ids = await asyncio.gather(*[producer.send(b"%d" % number) for number in range(COUNT)])
        print(f"{len(ids)} sent in {len({message_id.entry for message_id in ids})} entries")
        got = 0
        async for message in consumer:
            await consumer.ack(message)
            got += 1
            if got == COUNT:
                break
        print(f"{got} received")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(sys.argv[1]))
    else:
        with EmbeddedBroker(doors=["pulsar"]) as broker:
            asyncio.run(main(broker.pulsar_url))

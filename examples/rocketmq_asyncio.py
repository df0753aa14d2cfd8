"""The same under asyncio: a thousand sends at once, then everything received.

python examples/rocketmq_asyncio.py [NAME_SERVER]
"""

from __future__ import annotations

import asyncio
import sys

from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq import aio

COUNT = 1000


async def main(name_server: str) -> None:
    async with aio.Client(name_server) as client:
        async with client.admin() as admin:
            await admin.create_topic("orders", queues=4)
        async with client.producer("order-service") as producer:
            sends = [producer.send(aio.Message("orders", b"%d" % number)) for number in range(COUNT)]
            receipts = await asyncio.gather(*sends)
            print(f"{len(receipts)} sent to {len({receipt.queue for receipt in receipts})} queues")
        async with client.pull_consumer("report", "orders", start="first") as consumer:
            got = 0
            async for message in consumer:
                got += len(message.body) > 0
                if got == COUNT:
                    break
            print(f"{got} received")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(sys.argv[1]))
    else:
        with EmbeddedBroker(doors=["rocketmq"]) as broker:
            asyncio.run(main(broker.name_server))

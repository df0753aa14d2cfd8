"""What operators ask: brokers, groups, lag, messages by key; a reset that is looked at before it is done.

python examples/rocketmq_admin.py [NAME_SERVER]
"""

from __future__ import annotations

import asyncio
import sys

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq import aio


def main(name_server: str) -> None:
    with rocketmq.Client(name_server) as client, client.admin() as admin:
        for broker in admin.cluster():
            print(broker.name, broker.version)
        admin.create_topic("invoices", queues=2)
        with client.producer("billing") as producer:
            for number in range(10):
                producer.send(rocketmq.Message("invoices", b"%d euros" % number, keys=[f"invoice-{number}"]))
        with client.pull_consumer("archive", "invoices", start="first") as consumer:
            while sum(consumer.lag().values()):
                consumer.receive_many(10, timeout=5)
                consumer.commit()
        print("lag:", sum(progress.lag for progress in admin.progress("archive", "invoices").values()))
        (found,) = admin.messages_by_key("invoices", "invoice-7")
        print("invoice 7:", found.body.decode())


async def main_asyncio(name_server: str) -> None:
    async with aio.Client(name_server) as client, client.admin() as admin:
        plan = await admin.reset_offset("archive", "invoices", "earliest", dry_run=True)
        print("a reset would move", len(plan.offsets), "queues")
        await admin.reset_offset("archive", "invoices", "earliest")
        async with client.pull_consumer("archive", "invoices", start="first") as consumer:
            again = 0
            while again < 10:
                again += len(await consumer.receive_many(10, timeout=5))
        print("seen again:", again)


def both(name_server: str) -> None:
    main(name_server)
    asyncio.run(main_asyncio(name_server))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        both(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["rocketmq"]) as broker:
            both(broker.name_server)

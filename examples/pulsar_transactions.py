"""From one topic to another, exactly once: what is sent and acknowledged takes effect as a whole. Both faces.

python examples/pulsar_transactions.py [SERVICE_URL]

Brokers need transactionCoordinatorEnabled=true.
"""

from __future__ import annotations

import asyncio
import sys

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.pulsar import aio


def main(url: str) -> None:
    with pulsar.Client(url) as client:
        orders = client.consumer("orders", "billing", type="shared", start="earliest")
        bills = client.producer("bills")
        client.producer("orders").send_many([b"1", b"2", b"broken", b"4"])
        for _ in range(4):
            message = orders.receive(timeout=10)
            try:
                with client.transaction(ttl=30) as txn:
                    bills.send(b"bill for %d" % int(message.body), txn=txn)
                    orders.ack(message, txn=txn)
            except ValueError:
                print(f"{message.body!r}: aborted, no bill was sent, and it would come again")
                orders.ack(message)
        with client.reader("bills", start="earliest") as reader:
            while reader.has_message_available():
                print(reader.receive(timeout=10).body.decode())


async def amain(url: str) -> None:
    async with aio.Client(url) as client, client.producer("bills") as bills, client.producer("ledger") as ledger:
        async with client.transaction() as txn:
            await asyncio.gather(bills.send(b"bill for 5", txn=txn), ledger.send(b"5 was billed", txn=txn))
        print(f"asyncio: {txn.state}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
        asyncio.run(amain(sys.argv[1]))
    else:
        with EmbeddedBroker(doors=["pulsar"]) as broker:
            main(broker.pulsar_url)
            asyncio.run(amain(broker.pulsar_url))

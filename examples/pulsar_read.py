"""Reading without a subscription: from the beginning, from a message, from a time; and a table of what was said last.

python examples/pulsar_read.py [SERVICE_URL]
"""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime, timedelta, timezone

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.pulsar import aio


def main(url: str) -> None:
    with pulsar.Client(url) as client, client.producer("prices") as producer:
        ids = producer.send_many([(b"10", "tea"), (b"3", "salt"), (b"12", "tea")])
        with client.reader("prices", start="earliest") as reader:
            while reader.has_message_available():
                message = reader.receive(timeout=10)
                print(f"{message.key}: {message.body.decode()}")
            reader.seek(datetime.now(timezone.utc) - timedelta(hours=1))
            print(f"since an hour ago the first was {reader.receive(timeout=10).body.decode()}")
        with client.reader("prices", start=ids[1], start_inclusive=True) as reader:
            print(f"from a message on: {reader.receive(timeout=10).body.decode()}")
        with client.table_view("prices") as table:
            print(f"now: {sorted(table.items())}")


async def amain(url: str) -> None:
    async with aio.Client(url) as client, client.producer("prices") as producer:
        changed = asyncio.Event()
        async with client.table_view("prices") as table:
            table.listen(lambda key, price: changed.set())
            await producer.send(None, key="salt")  # no value: the key goes
            await asyncio.wait_for(changed.wait(), 10)
            print(f"asyncio: {sorted(table.items())}")
        async with client.reader("prices", start="earliest") as reader:
            async for message in reader:
                print(f"asyncio: {message.key} again")
                if message.null_value:
                    break


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
        asyncio.run(amain(sys.argv[1]))
    else:
        with EmbeddedBroker(doors=["pulsar"]) as broker:
            main(broker.pulsar_url)
            asyncio.run(amain(broker.pulsar_url))

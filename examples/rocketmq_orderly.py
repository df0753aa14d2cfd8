"""Each customer's orders in their order: one key, one queue, one call at a time; with threads and with asyncio.

python examples/rocketmq_orderly.py [NAME_SERVER]
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import defaultdict
from typing import Any

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq import aio

CUSTOMERS = ("ada", "bob", "cyd")
STEPS = ("ordered", "paid", "packed", "sent")


class Ledger:
    """What happened to each customer, in the order in which it was handled; one step fails at first."""

    def __init__(self) -> None:
        self.steps: dict[str, list[str]] = defaultdict(list)
        self.done = threading.Event()
        self._failed = False

    def book(self, messages: Any) -> None:
        """Raises once: its queue waits, and goes on with the same message."""
        for message in messages:
            customer, step = message.body.decode().split()
            if step == "paid" and not self._failed:
                self._failed = True
                raise RuntimeError("the bank does not answer")
            self.steps[customer].append(step)
        if sum(map(len, self.steps.values())) == len(CUSTOMERS) * len(STEPS):
            self.done.set()

    def __str__(self) -> str:
        return "; ".join(f"{customer}: {' '.join(steps)}" for customer, steps in sorted(self.steps.items()))


def main(name_server: str) -> None:
    ledger = Ledger()
    with rocketmq.Client(name_server) as client:
        with client.admin() as admin:
            admin.create_topic("steps", queues=4)
        with client.producer("shop") as producer:
            for step in STEPS:
                for customer in CUSTOMERS:
                    producer.send(rocketmq.Message("steps", f"{customer} {step}".encode()), key=customer)
        with client.push_consumer("ledger", "steps", ledger.book, orderly=True, start="first", batch=1, suspend=0.1):
            ledger.done.wait(20)
    print("threads:", ledger)


async def main_asyncio(name_server: str) -> None:
    ledger = Ledger()

    async def book(messages: Any) -> None:
        ledger.book(messages)

    async with (
        aio.Client(name_server) as client,
        client.push_consumer("ledger-asyncio", "steps", book, orderly=True, start="first", batch=1, suspend=0.1),
    ):
        await asyncio.to_thread(ledger.done.wait, 20)
    print("asyncio:", ledger)


def both(name_server: str) -> None:
    main(name_server)
    asyncio.run(main_asyncio(name_server))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        both(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["rocketmq"]) as broker:
            both(broker.name_server)

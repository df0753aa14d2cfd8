"""A RocketMQ transaction: the message is delivered if, and only if, the order was stored.

python examples/rocketmq_transaction.py [NAME_SERVER]
"""

from __future__ import annotations

import asyncio
import sys

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq import TransactionState, aio

ORDERS: dict[str, bytes] = {}
"""Stands for the database, whose transactions are the truth."""


def on_check(message: object) -> TransactionState:
    """The broker did not hear how it ended, perhaps of a process that is gone: look it up."""
    known = getattr(message, "message_id", "") in ORDERS
    return TransactionState.COMMIT if known else TransactionState.ROLLBACK


def main(name_server: str) -> None:
    with rocketmq.Client(name_server) as client:
        with client.admin() as admin:
            admin.create_topic("paid", queues=1)
        with client.transactional_producer("payments", check=on_check) as producer:

            def pay(receipt: rocketmq.Receipt) -> TransactionState:
                ORDERS[receipt.message_id] = b"paid"
                return TransactionState.COMMIT

            producer.send_in_transaction(rocketmq.Message("paid", b"order 1"), pay)

            with producer.begin(rocketmq.Message("paid", b"order 2")) as transaction:
                ORDERS[transaction.receipt.message_id] = b"paid"  # leaving the block commits, an exception rolls back

            producer.begin(rocketmq.Message("paid", b"order 3")).rollback()
        with client.pull_consumer("shipping", "paid", start="first") as consumer:
            print("to be shipped:", sorted(consumer.receive(timeout=5).body.decode() for _ in range(2)))


async def main_asyncio(name_server: str) -> None:
    async with aio.Client(name_server) as client:
        async with (
            client.transactional_producer("payments", check=on_check) as producer,
            producer.begin(aio.Message("paid", b"order 4")) as transaction,
        ):
            ORDERS[transaction.receipt.message_id] = b"paid"
        async with client.pull_consumer("accounting", "paid", start="first") as consumer:
            paid = [(await consumer.receive(timeout=5)).body.decode() for _ in range(3)]
    print("paid:", sorted(paid))


def both(name_server: str) -> None:
    main(name_server)
    asyncio.run(main_asyncio(name_server))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        both(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["rocketmq"]) as broker:
            both(broker.name_server)

"""Consume from RocketMQ: a handler that is called, and batches that are asked for.

python examples/rocketmq_consume.py [NAME_SERVER]
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker

COUNT = 100


def main(name_server: str) -> None:
    done = threading.Event()
    seen: list[bytes] = []

    def handle(messages: Any) -> None:
        """Returns: acknowledged. Raises: the messages come again later."""
        seen.extend(message.body for message in messages)
        if len(seen) >= COUNT:
            done.set()

    with rocketmq.Client(name_server) as client:
        with client.admin() as admin:
            admin.create_topic("orders", queues=4)
        with client.producer("order-service") as producer:
            producer.send_many([rocketmq.Message("orders", b"%d" % number, tag="paid") for number in range(COUNT)])
        with client.push_consumer("billing", {"orders": "paid || void"}, handle, start="first", threads=4):
            done.wait(10)
        print(f"the handler saw {len(seen)} messages")

        got = 0
        with client.pull_consumer("report", "orders", start="first") as consumer:
            for batch in consumer.batches(max_messages=1024):
                got += len(batch)
                print(f"a batch of {len(batch)} from {batch.queue.broker_name} queue {batch.queue.queue_id}")
                if got == COUNT:
                    break


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["rocketmq"]) as broker:
            main(broker.name_server)

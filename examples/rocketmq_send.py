"""Send to RocketMQ: one message, many in batches, with a key, and without waiting.

python examples/rocketmq_send.py [NAME_SERVER]
"""

from __future__ import annotations

import sys

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker


def main(name_server: str) -> None:
    with rocketmq.Client(name_server) as client:
        with client.admin() as admin:
            admin.create_topic("orders", queues=4)
        with client.producer("order-service") as producer:
            receipt = producer.send(rocketmq.Message("orders", b"one", tag="paid", keys=["42"]))
            print(f"sent to queue {receipt.queue.queue_id} at offset {receipt.offset}: {receipt.message_id}")

            messages = [rocketmq.Message("orders", b"number %d" % number) for number in range(1000)]
            results = producer.send_many(messages)
            print(f"{sum(result.ok for result in results)} of {len(results)} are there")

            queues = {producer.send(rocketmq.Message("orders", b"step"), key="customer-7").queue for _ in range(3)}
            print(f"one key, {len(queues)} queue")

            futures = [producer.submit(rocketmq.Message("orders", b"%d" % number)) for number in range(1000)]
            print(f"submitted, in few requests: {producer.flush(timeout=10).stored} stored so far")
            print(f"the last one: {futures[-1].result().status}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["rocketmq"]) as broker:
            main(broker.name_server)

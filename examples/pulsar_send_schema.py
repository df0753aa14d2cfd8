"""Send records by key, and receive them as records again.

python examples/pulsar_send_schema.py [SERVICE_URL]
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.pulsar.schema import Avro


@dataclass
class Order:
    number: int
    shop: str | None = None


def main(url: str) -> None:
    with pulsar.Client(url) as client:
        orders = Avro(Order)
        consumer = client.consumer("orders-by-shop", "billing", schema=orders)
        with client.producer("orders-by-shop", schema=orders, compression="zlib") as producer:
            producer.send_many([(Order(number, "north"), "north") for number in range(10)])
        for _ in range(10):
            message = consumer.receive(10)
            print(f"{message.key}: {message.value}")
            consumer.ack(message)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["pulsar"]) as broker:
            main(broker.pulsar_url)

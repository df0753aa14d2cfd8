"""A service: a listener with threads, delays that grow, a dead-letter topic; it ends on SIGTERM or Ctrl-C.

python examples/pulsar_consume_service.py [SERVICE_URL]
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker

COUNT = 100


def main(url: str) -> None:
    handled: list[bytes] = []
    enough = threading.Event()

    def handle(message: Any) -> None:  # returning acknowledges, raising has it come again
        if message.body == b"13":
            raise ValueError("nobody can handle 13")
        handled.append(message.body)
        if len(handled) == COUNT - 1:
            enough.set()

    with pulsar.Client(url) as client, client.producer("payments") as producer:
        producer.send_many([b"%d" % number for number in range(COUNT)])
        consumer = client.consumer(
            "payments",
            "billing",
            type="shared",
            start="earliest",
            listener=handle,
            threads=4,
            nack_delay=pulsar.Delays(first=0.05, limit=10),
            dead_letter=pulsar.DeadLetter(max_redeliveries=2),
        )
        with client.reader("payments-billing-DLQ", start="earliest") as grave:
            assert enough.wait(30)
            print(f"{len(handled)} handled; buried: {grave.receive(30).body!r}")
        threading.Timer(0.1, consumer.close).start()  # here a service would wait for SIGTERM
        report = consumer.run(grace=30)
        print(f"{report.handled} handled, {report.failed} refused, {report.unfinished} unfinished")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["pulsar"]) as broker:
            main(broker.pulsar_url)

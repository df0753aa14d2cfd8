"""A shared subscription: acknowledge what was handled, refuse what was not, look at the permits.

python examples/pulsar_consume.py [SERVICE_URL]
"""

from __future__ import annotations

import sys

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker

COUNT = 500


def main(url: str) -> None:
    with pulsar.Client(url) as client, client.producer("orders") as producer:
        with client.consumer("orders", "billing", type="shared", receiver_queue=100, nack_delay=0.1) as consumer:
            producer.send_many([b"%d" % number for number in range(COUNT)])
            handled, refused = 0, 0
            for message in consumer:
                if int(message.body) % 100 == 7 and not message.redeliveries:
                    consumer.nack(message)  # it comes again after nack_delay
                    refused += 1
                    continue
                consumer.ack(message)
                handled += 1
                if handled == COUNT:
                    break
            print(f"{handled} handled, {refused} of them at the second try")
            permits = consumer.diagnose()["permits"]
            print("window {window}: {at_broker} at the broker, {here} here, {released} released".format(**permits))

        with client.reader("orders", start="earliest") as reader:
            read = 0
            while reader.has_message_available():
                read += len(reader.receive_many())
            print(f"{read} read again, without a subscription")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["pulsar"]) as broker:
            main(broker.pulsar_url)

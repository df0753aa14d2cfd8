"""Send in all four manners: one, many, futures, and waiting for all of them.

python examples/pulsar_send.py [SERVICE_URL]
"""

from __future__ import annotations

import sys

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker


def main(url: str) -> None:
    with pulsar.Client(url) as client, client.producer("orders") as producer:
        message_id = producer.send(b"paid", key="42", properties={"shop": "north"})
        print(f"one: {message_id}")

        ids = producer.send_many([b"%d" % number for number in range(1000)])
        print(f"many: {sum(isinstance(one, pulsar.MessageId) for one in ids)} of {len(ids)} sent")

        futures = [producer.submit(b"later", key=str(number)) for number in range(100)]
        producer.flush()
        print(f"futures: the last is {futures[-1].result()}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with EmbeddedBroker(doors=["pulsar"]) as broker:
            main(broker.pulsar_url)

"""Move every member of a broadcasting group back to the beginning: story 3, on a broker of any generation.

python examples/rocketmq_reset.py [NAME_SERVER]
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from typing import Any

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker

COUNT = 20


class Listener:
    """A broadcasting member that counts."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.count = 0

    def __call__(self, messages: Any) -> None:
        with self.lock:
            self.count += len(messages)

    def wait(self, count: int) -> int:
        until = time.monotonic() + 10
        while self.count < count and time.monotonic() < until:
            time.sleep(0.01)
        return self.count


def main(name_server: str, folder: str) -> None:
    listeners = [Listener(), Listener()]
    clients = [rocketmq.Client(name_server, offset_dir=folder) for _ in listeners]
    with clients[0].admin() as admin, clients[0].producer("news-service") as producer:
        admin.create_topic("news", queues=4)
        producer.send_many([rocketmq.Message("news", b"%d" % number) for number in range(COUNT)])
        consumers = [
            client.push_consumer("audit", "news", listener, model="broadcasting", start="first")
            for client, listener in zip(clients, listeners, strict=True)
        ]
        print("each member has seen", [listener.wait(COUNT) for listener in listeners])
        report = admin.reset_offset("audit", "news", "earliest", model="broadcasting")
        print(f"reset moved {len(report.offsets)} queues; of the members: {', '.join(report.members.values())}")
        print("each member has seen", [listener.wait(2 * COUNT) for listener in listeners])
        for consumer in consumers:
            consumer.close()
    for client in clients:
        client.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as offsets:
        if len(sys.argv) > 1:
            main(sys.argv[1], offsets)
        else:
            with EmbeddedBroker(doors=["rocketmq"]) as broker:
                main(broker.name_server, offsets)

"""One way to each protocol, for scenarios that are the same in both: names and arguments that differ are put together
here, and nothing else is."""

from __future__ import annotations

from typing import Any

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker


class RocketMQ:
    """A group is a pop consumer's: messages are lent, and acknowledged one by one."""

    name = "rocketmq"

    def __init__(self, address: str, embedded: EmbeddedBroker | None = None) -> None:
        self.address = address
        self.embedded = embedded

    def client(self, address: str | None = None, **options: Any) -> Any:
        return rocketmq.Client(address or self.address, **options)

    def prepare(self, client: Any, topic: str) -> None:
        """One queue, so that there is an order to speak of."""
        with client.admin() as admin:
            admin.create_topic(topic, 1)

    def producer(self, client: Any, topic: str, **options: Any) -> Any:
        return client.producer(f"p-{topic}", **options)

    def consumer(self, client: Any, topic: str, group: str) -> Any:
        return client.pop_consumer(group, topic, invisible=10.0)

    def message(self, topic: str, body: Any, **properties: str) -> Any:
        """What `send`, `submit` and `send_many` take."""
        return rocketmq.Message(topic, body, properties=properties)

    def send(self, producer: Any, message: Any, how: str = "send") -> Any:
        return getattr(producer, how)(message)

    def comes_again(self) -> None:
        """What is lent to nobody any more is lent again."""
        if self.embedded is not None:
            self.embedded.control.move_clock(11)


class Pulsar:
    """A group is a shared subscription."""

    name = "pulsar"

    def __init__(self, address: str, embedded: EmbeddedBroker | None = None) -> None:
        self.address = address
        self.embedded = embedded

    def client(self, address: str | None = None, **options: Any) -> Any:
        return pulsar.Client(address or self.address, **options)

    def prepare(self, client: Any, topic: str) -> None:
        """The first to come makes it."""

    def producer(self, client: Any, topic: str, **options: Any) -> Any:
        return client.producer(topic, **options)

    def consumer(self, client: Any, topic: str, group: str) -> Any:
        return client.consumer(topic, group, type="shared", start="earliest")

    def message(self, topic: str, body: Any, **properties: str) -> Any:
        return {"body": body, "properties": properties}

    def send(self, producer: Any, message: Any, how: str = "send") -> Any:
        return getattr(producer, how)(**message)

    def comes_again(self) -> None:
        """What a consumer that is gone has not acknowledged comes again at once."""


World = RocketMQ | Pulsar

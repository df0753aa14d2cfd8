"""Owns the Pulsar entrance of the embedded broker: its port, its topics, the sessions of its clients."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mqclient.broker.broker import House
from mqclient.broker.pulsar.session import Session
from mqclient.broker.pulsar.subscribe import send_close
from mqclient.broker.pulsar.topics import Topic, Topics


class PulsarDoor:
    """One listening port; `pulsar_port` of the settings, or a free one."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.topics = Topics(house)
        self.sessions: set[Session] = set()
        self.url = ""
        self._server: asyncio.AbstractServer | None = None

    def addresses(self) -> dict[str, str]:
        return {"pulsar_url": self.url} if self.url else {}

    async def start(self, host: str) -> None:
        port = int(self.house.settings.get("pulsar_port", 0))
        self._server = await asyncio.get_running_loop().create_server(lambda: Session(self), host, port)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"pulsar://{host}:{port}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for session in list(self.sessions):
            session.close("the broker stops")

    def soon(self, call: Callable[[], None]) -> None:
        """When the loop has done what it is doing."""
        asyncio.get_running_loop().call_soon(call)

    def unload(self, name: str) -> None:
        """As when the topic moves: everybody is told to come again."""
        topic = self.topics.make(name)
        _close_producers(topic)
        for subscription in list(topic.subscriptions.values()):
            for consumer in list(subscription.consumers):
                consumer.session.consumers.pop(consumer.consumer_id, None)
                send_close(consumer)
                subscription.remove(consumer, resets=True)


def _close_producers(topic: Topic) -> None:
    for producer in list(topic.producers.values()):
        ids = [number for number, known in producer.session.producers.items() if known is producer]
        for number in ids:
            del producer.session.producers[number]
            producer.session.closed_producers[number] = producer.session.house.clock.mono()
            producer.session.send(15, "CommandCloseProducer", producer_id=number, request_id=2**64 - 1)
        producer.leave()


def make(house: House) -> PulsarDoor:
    return PulsarDoor(house)

"""A RocketMQ cluster in the virtual world: the embedded broker's own handlers, without sockets, loop or real time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

from mqclient.broker.broker import House
from mqclient.broker.control import Alarm, Clock, Control
from mqclient.broker.remoting.door import RemotingDoor, Service
from mqclient.broker.remoting.server import Peer, Server
from mqclient.core.slot import Slot
from mqclient.rocketmq.model import Message, MessageQueue
from mqclient.rocketmq.remoting.client import ClientEngine, Options
from mqclient.rocketmq.remoting.consumer import PushEngine
from mqclient.rocketmq.remoting.member_options import topics_of
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.push_options import push_options
from tests.support.fake_driver import FakeDriver, Wire, World

NAME_SERVER = ("names", 9876)


class VirtualClock(Clock):
    """The broker's time is the world's."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def mono(self) -> float:
        return self._world.mono

    def wall_ms(self) -> int:
        return self._world.wall_ms

    def peers_ms(self) -> int:
        return self._world.wall_ms

    def after(self, seconds: float, call: Callable[[], None]) -> Alarm:
        alarm = Alarm(self.mono() + seconds, call)

        def fire() -> None:
            due, alarm.call = alarm.call, None
            if due is not None:
                due()

        self._world.at(alarm.when, fire)
        return alarm


class Transport(asyncio.Transport):
    """What a broker's connection writes to: a wire."""

    def __init__(self, wire: Wire, peername: tuple[str, int]) -> None:
        super().__init__({"peername": peername})
        self._wire = wire

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """A wire takes everything."""

    def pause_reading(self) -> None:
        """What has been sent arrives."""

    def resume_reading(self) -> None:
        """As above."""

    def is_closing(self) -> bool:
        return not self._wire.open

    def write(self, data: Any) -> None:
        self._wire.send(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self._wire.send(b"".join(list_of_data))

    def close(self) -> None:
        self._wire.lose()

    def abort(self) -> None:
        self._wire.lose()


class Loop:
    """The one thing that a server asks of its loop."""

    def __init__(self, world: World) -> None:
        self.call_soon = world.soon


def seen_as(driver: FakeDriver) -> tuple[str, int]:
    """The address under which brokers see a client."""
    return f"10.0.1.{1 + driver.world.drivers.index(driver)}", 40000


class Listener:
    """The world's side of one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._peers: dict[Wire, Peer] = {}

    def on_open(self, wire: Wire) -> None:
        peer = self._peers[wire] = Peer(self._server)
        peer.connection_made(Transport(wire, seen_as(wire.driver)))

    def on_bytes(self, wire: Wire, data: bytes) -> None:
        self._peers[wire].data_received(data)

    def on_lost(self, wire: Wire) -> None:
        self._peers.pop(wire).connection_lost(None)


class VirtualCluster:
    """A name server and brokers in a world of their own, and clients made for it."""

    def __init__(self, codec: Any, *, brokers: int = 1, **settings: Any) -> None:
        self.world = World()
        self.codec = codec
        clock = VirtualClock(self.world)
        self.control = Control(clock)
        self.door = RemotingDoor(House(codec, clock, self.control, Random(7), brokers, settings))
        self._listen(self.door.name_server, NAME_SERVER)
        for number, service in enumerate(self.door.services):
            self._listen(service.server, (service.broker.name, 10911 + number))
            service.broker.host = ("10.0.0.1", 10911 + number)
            self.world.listen(service.broker.host, Listener(service.server))
            service.broker.soon = self.world.soon
            service.begin()

    def _listen(self, server: Server, address: tuple[str, int]) -> None:
        server.loop = Loop(self.world)  # type: ignore[assignment]
        self.world.listen(address, Listener(server))

    @property
    def broker(self) -> Service:
        return self.door.services[0]

    def client(self, **options: Any) -> VirtualClient:
        return VirtualClient(self, Options(**{"seed": 1, **options}))

    def topic(self, name: str, queues: int = 4) -> None:
        for service in self.door.services:
            service.broker.make_topic(name, queues)

    def fill(self, topic: str, each: int, tag: str = "") -> None:
        """So many messages into each queue of the first broker."""
        from mqclient.broker.remoting.state import Incoming

        broker = self.broker.broker
        properties = b"TAGS\x01%s\x02" % tag.encode() if tag else b""
        for queue_id in range(broker.topics[topic].write_queues):
            for number in range(each):
                broker.store(Incoming(topic, queue_id, b"%d-%d" % (queue_id, number), properties))


class VirtualClient:
    """One client engine on a fake driver of its own."""

    def __init__(self, cluster: VirtualCluster, options: Options) -> None:
        self.cluster = cluster
        self.driver: FakeDriver = cluster.world.driver()
        with self.driver.enter():
            self.engine = ClientEngine(self.driver, cluster.codec, f"{NAME_SERVER[0]}:{NAME_SERVER[1]}", options)
        host, port = seen_as(self.driver)
        self.engine.ever_local.add(f"{host}:{port}")  # the fake driver calls every local end the same

    def push(
        self, group: str, topic: Any, handler: Callable[[Any], Any] = lambda messages: None, **options: Any
    ) -> Push:
        with self.driver.enter():
            engine = PushEngine(self.engine, group, topics_of(topic), handler, *push_options(options))
            slot = engine.start()
        self.cluster.world.run()
        return Push(engine, slot, self.driver)

    def produce(self, *messages: Message, group: str = "producers") -> list[Any]:
        """Send one by one; receipts or errors."""
        with self.driver.enter():
            engine: Any = self.engine.producers.get(group) or ProducerEngine(self.engine, group)
        outcomes = []
        for message in messages:
            prepared = engine.prepare(message)
            with self.driver.enter():
                slot, index = engine.send(prepared, None)
            try:
                outcomes.append(self.driver.wait(slot)[index])
            except Exception as error:
                outcomes.append(error)
        return outcomes


class Push:
    """A push consumer that was started."""

    def __init__(self, engine: PushEngine, started: Slot[None], driver: FakeDriver) -> None:
        self.engine = engine
        self.started = started
        self.driver = driver

    @property
    def member(self) -> Any:
        return self.engine.member

    def queues(self, topic: str) -> list[int]:
        return sorted(queue.queue_id for queue in self.member.queues if queue.topic == topic)

    def next_offsets(self, topic: str) -> dict[MessageQueue, int]:
        return {queue: held.next_offset for queue, held in self.member.queues.items() if queue.topic == topic}

    def close(self) -> None:
        with self.driver.enter():
            slot = self.engine.close(0.0)
        self.driver.wait(slot)

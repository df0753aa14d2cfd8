"""Pulsar clients and the embedded broker's sessions in one virtual world: no sockets, no sleeps, every account checked.

    world = PulsarWorld(codec)
    client = world.client()
    producer = world.producer(client, "orders")
    consumer = world.consumer(client, "orders", "billing")

After each entry of a client's driver the permits of all its consumers are checked; `settled()` compares both sides.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from itertools import count
from types import TracebackType
from typing import Any, TypeVar

from mqclient import _schema
from mqclient.broker.broker import House
from mqclient.broker.control import Alarm, Clock, Control
from mqclient.broker.pulsar.consumer import Consumer as BrokerConsumer
from mqclient.broker.pulsar.door import PulsarDoor
from mqclient.broker.pulsar.http import Request
from mqclient.broker.pulsar.session import NAMES, Session
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.pulsar import producing, subscribing, sync
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.multi import MultiConsumer
from mqclient.pulsar.producer import ProducerEngine
from mqclient.pulsar.subscribing import Engine
from tests.support.fake_driver import FakeDriver, Wire, World

T = TypeVar("T")
ADDRESS = ("broker", 6650)


def command_class(number: int) -> Any:
    return _schema.command(number)


class VirtualClock(Clock):
    """The broker's clock follows the world."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def mono(self) -> float:
        return self._world.mono

    def wall_ms(self) -> int:
        return self._world.wall_ms

    def after(self, seconds: float, call: Callable[[], None]) -> Alarm:
        alarm = Alarm(self.mono() + seconds, call)
        self._world.at(alarm.when, lambda: alarm.call() if alarm.call is not None else None)
        return alarm


class Transport:
    """What a session writes to: the wire."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def set_write_buffer_limits(self, high: int) -> None:
        """There is no limit in memory."""

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return "client", id(self._wire)

    def is_closing(self) -> bool:
        return not self._wire.open

    def write(self, frame: bytes) -> None:
        self._wire.send(frame)

    def writelines(self, frames: Iterable[bytes]) -> None:
        self._wire.send(b"".join(frames))

    def close(self) -> None:
        self._wire.lose()

    abort = close


class CheckedDriver(FakeDriver):
    """Looks at every consumer of its client whenever an entry ends."""

    engine: ClientEngine

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        for member in self.engine._members:
            for consumer in single(member):
                check(consumer)


def single(member: Any) -> list[ConsumerEngine]:
    """A consumer, or the children of one of many topics; of other members nothing."""
    if isinstance(member, MultiConsumer):
        return list(member.children.values())
    return [member] if isinstance(member, ConsumerEngine) else []


def check(consumer: ConsumerEngine) -> None:
    """The invariant of the account, and that what is here is somewhere."""
    account = consumer.permits.diagnose()
    assert account["window"] == account["at_broker"] + account["here"] + account["released"] - account["debt"], account
    assert account["excess"] == 0, account
    assert min(account["here"], account["released"], account["debt"]) >= 0, account
    if consumer.connection is not None:
        shown = consumer.diagnose()  # an entry that is just being opened is here and in neither
        assert account["here"] >= shown["mailbox"] + shown["untold"], shown


def told(session: Session, data: bytes) -> None:
    """As asyncio does it."""
    while data and not session.closed:
        room = session.get_buffer(-1)
        part, data = data[: len(room)], data[len(room) :]
        room[: len(part)] = part
        session.buffer_updated(len(part))


class PulsarWorld:
    """One broker at `pulsar://broker:6650`, and clients that find it; or a further one `at` a name in that world."""

    def __init__(
        self,
        impl: Any,
        *,
        broker_impl: Any = None,
        seed: int = 0,
        per_turn: bool = False,
        beside: World | None = None,
        at: str = ADDRESS[0],
        **settings: Any,
    ) -> None:
        self.impl = impl
        self.world = World(seed) if beside is None else beside
        self.per_turn = per_turn
        clock = VirtualClock(self.world)
        self.house = House(broker_impl or impl, clock, Control(clock), self.world.random, 1, settings)
        self.control = self.house.control
        self.door = PulsarDoor(self.house)
        self.door.soon = self.world.soon  # type: ignore[method-assign]
        self.door.url, self.door.rest_url = f"pulsar://{at}:6650", f"http://{at}:8080"
        self.sessions: dict[Wire, Session] = {}
        self.world.listen((at, 6650), self)

    # ---- the broker's end of wires

    def on_open(self, wire: Wire) -> None:
        session = self.sessions[wire] = Session(self.door)
        transport: Any = Transport(wire)
        # A session is an asyncio protocol; it asks no more of its transport than what is there.
        session._adopt(transport)

    def on_bytes(self, wire: Wire, data: bytes) -> None:
        told(self.sessions[wire], data)

    def on_lost(self, wire: Wire) -> None:
        self.sessions[wire].connection_lost(None)

    def rest(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        """A call of the administration under /admin/v2: the answer's content, or its status if that is an error's."""
        data = b"" if body is None else json.dumps(body).encode()
        place = ("admin", "v2", *path.strip("/").split("/"))
        answer = self.door.rest.answer(Request(method, place, query, body=data))
        self.world.run()
        return answer.content if answer.status < 400 else answer.status

    def cut(self, cause: BaseException | None = None) -> None:
        """Every connection breaks."""
        for wire in self.sessions:
            if wire.open:
                wire.lose(cause)

    # ---- clients

    def client(self, url: Any = None, **options: Any) -> ClientEngine:
        """One of this broker, or of what the URL names."""
        url = self.door.url if url is None else url
        driver = CheckedDriver(self.world, self.per_turn)
        self.world.drivers.append(driver)
        driver.engine = ClientEngine(driver, self.impl, url, **options)
        with driver.enter():
            driver.attach(driver.engine)
        return driver.engine

    def do(self, client: ClientEngine, ask: Callable[[], Slot[T]]) -> T:
        """Ask inside an entry; the outcome, however long it takes."""
        return self.world.result(self.ask(client, ask))

    def ask(self, client: ClientEngine, ask: Callable[[], Slot[T]]) -> Slot[T]:
        with client.driver.enter():
            return ask()

    def steps(self, client: ClientEngine, make: Callable[[], Steps[T]]) -> T:
        return self.do(client, lambda: run_steps(make()))

    def producer(self, client: ClientEngine, topic: str, **options: Any) -> ProducerEngine:
        made: Any = self.do(client, lambda: producing.open_producer(client, topic, options, None))
        return made  # type: ignore[no-any-return]

    def consumer(self, client: ClientEngine, topic: str, subscription: str, **options: Any) -> ConsumerEngine:
        return self.one(self.consumers(client, topic, subscription, **options))

    def reader(self, client: ClientEngine, topic: str, start: Any, **options: Any) -> ConsumerEngine:
        return self.one(self.do(client, lambda: subscribing.open_reader(client, topic, start, options, None)))

    def consumers(self, client: ClientEngine, topics: Any, subscription: str, **options: Any) -> Engine:
        """A consumer of whatever there is: of many topics, of partitions, of one."""
        return self.do(client, lambda: subscribing.open_consumer(client, topics, subscription, options, None))

    def append_compressed(self, bodies: list[bytes], damage: bool = False, kind: int = 2) -> None:
        """An entry as a producer with zlib sends it, straight into topic `t`."""
        codec = self.impl.pulsar
        builder = codec.BatchBuilder()
        for body in bodies:
            builder.add(body)
        payload, count = builder.seal()
        packed = zlib.compress(payload)
        size = len(payload) + damage
        metadata = codec.encode_metadata("zip", 0, 1, compression=kind, uncompressed_size=size, num_messages=count)
        [event] = codec.FrameReader().feed(codec.encode_send(1, 0, metadata, packed, num_messages=count))
        self.door.topics.make("t").append(event[-1])

    def multi(self, client: ClientEngine, topics: Any, subscription: str, **options: Any) -> MultiConsumer:
        engine = self.consumers(client, topics, subscription, **options)
        assert isinstance(engine, MultiConsumer)
        return engine

    def one(self, engine: Engine) -> ConsumerEngine:
        assert isinstance(engine, ConsumerEngine)
        return engine

    def face(self, engine: Engine) -> sync.Consumer:
        """The sync face of a consumer, whose waits drive the world."""
        driver: Any = engine.client.driver
        return sync.Consumer(driver, engine)

    def sender(self, engine: ProducerEngine) -> sync.Producer:
        driver: Any = engine.client.driver
        return sync.Producer(driver, engine)

    def send(self, producer: ProducerEngine, *bodies: bytes) -> list[Any]:
        """Send all in one call; their outcomes."""
        return self.sender(producer).send_many(bodies)

    def take(self, consumer: ConsumerEngine) -> list[bytes]:
        """What is there now."""
        self.world.run()
        return [message.body for message in self.face(consumer)._take_many(100_000)]

    # ---- both sides

    def at_broker(self, consumer: ConsumerEngine) -> BrokerConsumer:
        """The broker's half of a consumer."""
        for session in self.door.sessions:
            place = session.consumers.get(consumer.consumer_id)
            if place is not None and place.consumer is not None and place.consumer.name == consumer.name:
                return place.consumer
        raise AssertionError(f"the broker does not know {consumer.name}")

    def settled(self, consumer: ConsumerEngine) -> None:
        """Nothing is on its way: what the client believes to be at the broker is there."""
        self.world.run()
        check(consumer)
        shown = consumer.diagnose()
        assert shown["permits"]["here"] == shown["mailbox"] + shown["untold"], shown
        there = self.at_broker(consumer)
        assert consumer.permits.diagnose()["at_broker"] == there.permits + there.aside


class RawClient:
    """A client that says what a test tells it, frame by frame, and keeps what the broker answers."""

    def __init__(self, world: PulsarWorld, *, connect: bool = True) -> None:
        self.world = world
        self.codec = world.impl.pulsar
        self.events: list[Any] = []
        self.open = True
        self._reader = self.codec.FrameReader()
        self._request_ids = count(1)
        self.session = Session(world.door)
        pipe: Any = self
        self.session._adopt(pipe)
        if connect:
            self.tell("CONNECT", client_version="raw", protocol_version=21)
            self.events.clear()

    # ---- as the session's transport

    def set_write_buffer_limits(self, high: int) -> None:
        """There is no limit in memory."""

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return "raw", id(self)

    def is_closing(self) -> bool:
        return not self.open

    def writelines(self, frames: Iterable[bytes]) -> None:
        for event in self._reader.feed(b"".join(frames)):
            cold = len(event) == 2 and isinstance(event[1], bytes)
            self.events.append((NAMES[event[0]], _schema.read_command(*event)) if cold else event)

    def close(self) -> None:
        self.open = False

    abort = close

    # ---- as a client

    def write(self, data: bytes) -> None:
        told(self.session, data)
        self.world.world.run()

    def tell(self, kind: str, **fields: Any) -> list[Any]:
        """Send a command; what came since the last one."""
        self.events.clear()
        number = next(number for number, name in NAMES.items() if name == kind)
        self.write(self.codec.encode_command(number, command_class(number)(**fields).SerializeToString()))
        return self.events

    def ask(self, kind: str, **fields: Any) -> Any:
        """Send a command with a request id; the one reply, or None."""
        request_id = next(self._request_ids)
        for name, reply in list(self.tell(kind, request_id=request_id, **fields)):
            if getattr(reply, "request_id", None) == request_id:
                return (name, reply)
        return None

    def subscribe(self, consumer_id: int = 0, **fields: Any) -> Any:
        given = {"topic": "t", "subscription": "s", "subType": 0, "initialPosition": 1, "consumer_name": str(id(self))}
        return self.ask("SUBSCRIBE", consumer_id=consumer_id, **{**given, **fields})

    def flow(self, permits: int, consumer_id: int = 0) -> list[Any]:
        """FLOW; the entries that came."""
        self.events.clear()
        self.write(self.codec.encode_flow(consumer_id, permits))
        return self.entries()

    def entries(self) -> list[Any]:
        return [event[1] for event in self.events if event[0] == self.codec.MESSAGE]

    def produce(self, *entries: list[bytes], topic: str = "t") -> None:
        """One producer, one entry for each list of bodies; a single body is an entry without batch framing."""
        producer_id = next(self._request_ids)
        self.ask("PRODUCER", topic=topic, producer_id=producer_id)
        for number, bodies in enumerate(entries):
            builder = self.codec.BatchBuilder()
            for body in bodies:
                builder.add(body)
            payload, size = (bodies[0], 0) if len(bodies) == 1 else builder.seal()
            metadata = self.codec.encode_metadata("raw", number, self.world.world.wall_ms, num_messages=size)
            self.write(self.codec.encode_send(producer_id, number, metadata, payload, num_messages=size))

    @property
    def consumer(self) -> BrokerConsumer:
        place = self.session.consumers[0].consumer
        assert place is not None
        return place

    def lose(self) -> None:
        self.session.connection_lost(None)
        self.world.world.run()

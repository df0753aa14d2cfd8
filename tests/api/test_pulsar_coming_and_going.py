"""Consumers of one subscription that come, go and lose their connections under load: order, and nothing lost."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from random import Random
from time import monotonic

import pytest

from mqclient.errors import LinkError
from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster

ROUNDS = {"test": 3, "ci": 40, "soak": 400}
KEYS = 12
MOST = 4
"""Consumers at a time."""


class Worker:
    """One consumer and its task; what it takes it notes and acknowledges."""

    def __init__(self, load: Load, consumer: aio.Consumer) -> None:
        self.consumer = consumer
        self._load = load
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        async for message in self.consumer:
            self._load.note(self, message.body)
            await self.consumer.ack(message)

    async def leave(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self.consumer.close()

    def cut(self) -> None:
        """The connection breaks; it comes back by itself."""
        engine = self.consumer._engine
        with self.consumer._driver.enter():
            connection = getattr(engine, "connection", None)
            if connection is not None:
                connection.link.abort(LinkError("the test cuts it"))


class Load:
    """One producer, workers that change, and what they have taken so far, key by key in the order of taking."""

    def __init__(self, cluster: PulsarCluster, topic: str, impl: str, kind: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._impl = impl
        self._kind = kind
        self.workers: list[tuple[aio.Client, Worker]] = []
        self.sent: dict[int, int] = defaultdict(int)
        self.taken: dict[int, dict[int, None]] = defaultdict(dict)  # as ordered sets
        self.ahead: set[tuple[int, int]] = set()
        """Key and number of what an active consumer took before its broker went back to what the last one left."""
        self.stopping = False
        self._first_missing: dict[int, int] = defaultdict(int)
        self._active: Worker | None = None
        self._goes_back = 0.0
        self._new = asyncio.Event()

    def note(self, worker: Worker, body: bytes) -> None:
        key, number = map(int, body.split(b" "))
        if self._kind == "failover" and worker is not self._active:
            self._active, self._goes_back = worker, monotonic() + self._cluster.goes_back_after
        if number not in self.taken[key]:  # an acknowledgement may be lost with its connection
            self.taken[key][number] = None
            self._new.set()
            if number > self._first_missing[key] and monotonic() < self._goes_back:
                self.ahead.add((key, number))
            while self._first_missing[key] in self.taken[key]:
                self._first_missing[key] += 1

    def changes(self) -> None:
        """Who is active may be another by now, or the same one anew, to whom its broker reads on before it goes back.

        Race: B comes and is active, the broker reads for it; B goes before it has taken anything: A, which took the
        last message, is active again, and has what the broker read on for it.
        """
        self._active = None

    def order(self, key: int) -> list[int]:
        """What was taken, in order of taking, but for what may be ahead."""
        return [number for number in self.taken[key] if (key, number) not in self.ahead]

    async def send(self) -> None:
        async with aio.Client(self._cluster.url, impl=self._impl) as client:
            async with client.producer(self._topic, batching="key") as producer:
                while not self.stopping:
                    many = []
                    for key in range(KEYS):
                        many.append((b"%d %d" % (key, self.sent[key]), f"key {key}"))
                        self.sent[key] += 1
                    assert all(outcome.ok for outcome in await producer.send_many(many, timeout=60))
                    await asyncio.sleep(0.002)

    async def come(self) -> None:
        client = await aio.Client(self._cluster.url, impl=self._impl).__aenter__()
        consumer = await client.consumer(self._topic, "s", type=self._kind, receiver_queue=50, start="earliest")
        self.workers.append((client, Worker(self, consumer)))

    async def go(self, place: int) -> None:
        client, worker = self.workers.pop(place)
        await worker.leave()
        await client.close()

    async def goes_on(self, times: int = 20) -> None:
        """So many are taken that nobody has taken before."""
        for _ in range(times):
            self._new.clear()
            await asyncio.wait_for(self._new.wait(), 60)

    def is_through(self) -> bool:
        return all(len(self.taken[key]) == count for key, count in self.sent.items())


@pytest.mark.parametrize("kind", ["key_shared", "failover", "shared"])
async def test_coming_and_going(pulsar: PulsarCluster, topic: str, impl: str, scale: str, kind: str) -> None:
    random, load = Random(kind), Load(pulsar, topic, impl, kind)
    await load.come()
    sending = asyncio.create_task(load.send())
    for _ in range(ROUNDS[scale]):
        step = random.choice(["come", "go", "cut"])
        load.changes()  # at once, and again when it is through
        if step == "come" and len(load.workers) < MOST:
            await load.come()
        elif step == "go" and len(load.workers) > 1:
            await load.go(random.randrange(len(load.workers)))
        else:
            random.choice(load.workers)[1].cut()
        load.changes()
        await load.goes_on()
    load.stopping = True
    await sending
    while not load.is_through():
        await load.goes_on(1)
    for place in reversed(range(len(load.workers))):
        await load.go(place)
    for key, count in load.sent.items():
        assert sorted(load.taken[key]) == list(range(count))
        assert kind == "shared" or load.order(key) == sorted(load.order(key)), f"key {key} came out of order"

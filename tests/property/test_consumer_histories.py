"""Random histories of consumers over the simulated broker: many topics, batches, parts, cuts, seeks, growth.

After every event each account of permits is checked (`CheckedDriver`); at the end of a history both sides agree about
every permit, and a message sent to each topic still arrives: nobody starves.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqclient._impl import select
from mqclient.core.steps import run_steps
from mqclient.errors import MQError
from mqclient.pulsar.names import TopicName
from tests.conftest import IMPLS
from tests.support.part_sender import PartSender
from tests.support.pulsar_world import PulsarWorld, single

STEPS = {"test": 1_500, "ci": 1_000_000, "soak": 3_000_000}
EPISODE = 500


class History:
    """One consumer, whose user, producers, network and broker do what `random` says."""

    def __init__(self, random: Random, impl: str) -> None:
        self.random = random
        self.world = PulsarWorld(select(impl), seed=random.randrange(1 << 30))
        self.client = self.world.client()
        self.partitions = 2
        self.world.door.topics.partition(TopicName.parse("b"), 2)
        self.options = {
            "type": random.choice(["exclusive", "shared", "key_shared", "failover"]),
            "receiver_queue": random.choice([1, 2, 5, 50, 1000]),
            "total_receiver_queue": random.choice([5, 100, 50_000]),
            "partition_refresh": 5,
            "ack_timeout": random.choice([0, 0, 3]),
            "nack_delay": random.choice([0, 1]),
            "chunked_pending": random.choice([1, 10]),
            "chunk_expiry": random.choice([2, 60]),
            "queue_memory": random.choice([0, 0, 2000]),
            "ack_grouping": random.choice([0, 0.1]),
        }
        self.consumer = self.world.multi(self.client, ["a", "b"], "s", **self.options)
        self.face = self.world.face(self.consumer)
        self._sender = PartSender(self.world, "a")
        self.number = 0
        self.seeking: list[Any] = []
        self.taken: list[Any] = []
        self.open: dict[str, tuple[int, int]] = {}
        self.actions = [
            (self.plain, 8),
            (self.batch, 8),
            (self.part, 8),
            (self.take, 20),
            (self.take_one, 8),
            (self.ack, 10),
            (self.nack, 3),
            (self.advance, 8),
            (self.cut, 0.3),
            (self.unload, 0.3),
            (self.seek, 0.3),
            (self.redeliver, 0.5),
            (self.pause, 1),
            (self.resume, 2),
            (self.grow, 0.1),
        ]
        self.calls, self.weights = zip(*self.actions, strict=True)

    def step(self) -> None:
        self.random.choices(self.calls, self.weights)[0]()

    # ---- what happens

    @property
    def sender(self) -> PartSender:
        """It answers no PING, so the broker ends it from time to time."""
        if not self._sender.raw.open:
            self._sender = PartSender(self.world, "a")
        return self._sender

    @property
    def topic(self) -> str:
        return self.random.choice(["a", *(f"b-partition-{number}" for number in range(self.partitions))])

    def plain(self) -> None:
        self.sender.raw.produce([b"x"], topic=self.topic)

    def batch(self) -> None:
        self.sender.raw.produce([b"x" * self.random.randrange(30)] * self.random.randrange(2, 9), topic=self.topic)

    def part(self) -> None:
        """The next part of a message, or one that nobody waits for; sometimes a message is never completed."""
        if len(self.open) < 3 and self.random.random() < 0.5:
            self.number += 1
            self.open[f"u{self.number}"] = (0, self.random.randrange(2, 5))
        if not self.open:
            return
        uuid = self.random.choice(list(self.open))
        index, total = self.open[uuid]
        self.sender.part(uuid, index, total, b"part")
        step = self.random.choices([0, 1, 2], [1, 12, 1])[0]
        self.open[uuid] = (index + step, total)
        if index + step >= total or self.random.random() < 0.05:
            del self.open[uuid]

    def take(self) -> None:
        self.world.world.run()
        self.taken += self.face._take_many(self.random.choice([1, 3, 100]))
        del self.taken[:-200]

    def take_one(self) -> None:
        message = self.face._take()
        if message is not None:
            self.taken.append(message)

    def some(self) -> list[Any]:
        count = min(len(self.taken), self.random.randrange(1, 6))
        return [self.taken.pop(self.random.randrange(len(self.taken))) for _ in range(count)]

    def ack(self) -> None:
        some = self.some()
        if some and self.options["type"] in ("exclusive", "failover") and self.random.random() < 0.3:
            self.face.ack_cumulative(some[0])
        else:
            self.face.ack(some)

    def nack(self) -> None:
        self.face.nack(self.some())

    def advance(self) -> None:
        self.world.world.advance(self.random.choice([0.05, 0.5, 2, 6]))

    def cut(self) -> None:
        self.world.cut()
        self.world.world.run()

    def unload(self) -> None:
        self.world.door.unload(self.topic)

    def seek(self) -> None:
        if all(slot.done for slot in self.seeking):
            to = self.random.choice([0, self.world.world.wall_ms, self.client.impl.pulsar.EARLIEST])
            targets = [child.seek_steps(to) for child in single(self.consumer)]
            with self.client.driver.enter():
                self.seeking = [run_steps(steps) for steps in targets]

    def redeliver(self) -> None:
        self.face.redeliver()

    def pause(self) -> None:
        self.face.pause()

    def resume(self) -> None:
        self.face.resume()

    def grow(self) -> None:
        if self.partitions < 4:
            self.partitions += 1
            self.world.door.topics.partition(TopicName.parse("b"), self.partitions)

    # ---- the end

    def check(self) -> None:
        """Both sides agree; nobody starves."""
        self.face.resume()
        self.world.world.advance(30)
        for slot in self.seeking:
            assert slot.done
            assert slot.error is None or isinstance(slot.error, MQError)
        self.drain(lambda message: None)
        topics = ["a", *(f"b-partition-{number}" for number in range(self.partitions))]
        wanted = set()
        for topic in topics:
            wanted.add(f"last of {topic}".encode())
            self.sender.raw.produce([f"last of {topic}".encode()], topic=topic)
        self.drain(lambda message: wanted.discard(message.body))
        assert not wanted, (self.options, self.consumer.diagnose())
        for child in single(self.consumer):
            self.world.settled(child)

    def drain(self, show: Any) -> None:
        """Take and acknowledge until nothing comes for a while."""
        idle = 0
        while idle < 3:
            self.world.world.advance(4)
            messages = self.face._take_many(100_000)
            idle = 0 if messages else idle + 1
            for message in messages:
                show(message)
            self.face.ack(messages)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 120))
@pytest.mark.parametrize("impl", IMPLS)
def test_short_histories(impl: str, seed: int, steps: int) -> None:
    history = History(Random(seed), impl)
    for _ in range(steps):
        history.step()
    history.check()


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("impl", IMPLS)
def test_long_histories(impl: str, scale: str) -> None:
    for seed in range(STEPS[scale] // EPISODE // 2):
        history = History(Random(seed), impl)
        try:
            for _ in range(EPISODE):
                history.step()
            history.check()
        except BaseException:
            print(f"seed {seed} with {history.options}")
            raise

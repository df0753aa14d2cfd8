"""Consumers that come and go at random: everything is delivered and acknowledged, keys stay in order, none starves."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from mqclient.pulsar.consumer import ConsumerEngine
from tests.support.pulsar_world import PulsarWorld

KEYS = 5


class Crowd:
    """Several consumers of one subscription, each on a connection of its own."""

    def __init__(self, codec: Any, seed: int, kind: str) -> None:
        self.random = Random(seed)
        self.kind = kind
        self.world = PulsarWorld(codec, seed=seed, maxUnackedMessagesPerConsumer=self.random.choice((0, 5)))
        self.world.world.latency = self.random.choice((0.0, 0.001))
        self.producer = self.world.sender(self.world.producer(self.world.client(), "t", batching=False))
        self.members: list[ConsumerEngine] = []
        self.sent = 0
        self.acked: list[int] = []
        self.join()

    def join(self) -> None:
        queue = self.random.choice((1, 3, 100))
        client = self.world.client()
        options = {"type": self.kind, "receiver_queue": queue, "start": "earliest", "nack_delay": 0.2}
        self.members.append(self.world.consumer(client, "t", "s", **options))

    def leave(self) -> None:
        """By goodbye, or by losing the connection for good."""
        if len(self.members) > 1:
            member = self.members.pop(self.random.randrange(len(self.members)))
            if self.random.random() < 0.5:
                self.world.face(member).close()
            else:
                with member.client.driver.enter():
                    member.client.on_fork()
                for wire in self.world.sessions:
                    if wire.driver is member.client.driver and wire.open:
                        wire.lose()
            self.world.world.run()

    def publish(self) -> None:
        for _ in range(self.random.choice((1, 5, 20))):
            self.producer.send(b"%d" % self.sent, key=str(self.sent % KEYS))
            self.sent += 1

    def consume(self, refusing: float = 0.1) -> int:
        """Some member takes some; what is acknowledged is acknowledged in the order of taking."""
        self.world.world.run()
        member = self.random.choice(self.members)
        face = self.world.face(member)
        messages = face._take_many(self.random.choice((1, 10)))
        for message in messages:
            if self.random.random() < refusing:
                face.nack(message)
            else:
                face.ack(message)
                self.acked.append(int(message.body))
        return len(messages)

    def step(self) -> None:
        self.random.choice((self.join, self.leave, self.publish, self.publish, self.consume, self.consume, self.wait))()

    def wait(self) -> None:
        self.world.world.advance(self.random.choice((0.01, 0.3, 3.0)))

    def finish(self) -> None:
        topic = self.world.door.topics.make("t")
        for _ in range(2000):
            for _ in range(5 * len(self.members)):
                self.consume(0)
            self.world.world.advance(0.2)
            if not topic.subscriptions["s"].backlog:
                break
        assert topic.subscriptions["s"].backlog == 0
        assert set(self.acked) == set(range(self.sent))
        self.world.world.advance(1)
        for member in self.members:
            self.world.settled(member)


@pytest.mark.parametrize("kind", ["shared", "failover", "key_shared"])
def test_consumers_that_come_and_go(codec: Any, scale: str, kind: str) -> None:
    for seed in range({"test": 10, "ci": 50, "soak": 1000}[scale]):
        crowd = Crowd(codec, seed, kind)
        try:
            for _ in range(80):
                crowd.step()
            crowd.finish()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {kind}: {error}") from error


def test_a_key_stays_in_order_over_joining_and_leaving(codec: Any, scale: str) -> None:
    """Where nothing is refused and nobody is cut off, the first delivery of each key is in order."""
    for seed in range({"test": 10, "ci": 50, "soak": 1000}[scale]):
        crowd = Crowd(codec, seed, "key_shared")
        for _ in range(60):
            crowd.random.choice((crowd.join, crowd.publish, crowd.wait, lambda: crowd.consume(0)))()  # noqa: B023
        crowd.finish()
        first = list(dict.fromkeys(crowd.acked))
        for key in range(KEYS):
            numbers = [number for number in first if number % KEYS == key]
            assert numbers == sorted(numbers), f"seed {seed}, key {key}"

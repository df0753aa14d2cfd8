"""The account of permits under random histories: it balances after every event, and no consumer starves."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.permits import Permits
from tests.support.pulsar_world import PulsarWorld


def account(codec: Any, window: int) -> tuple[Permits, list[int]]:
    flows: list[int] = []
    return Permits(codec, window, flows.append), flows


def test_one_initial_grant_then_halves(codec: Any) -> None:
    permits, flows = account(codec, 10)
    permits.open(1)
    assert permits.arrive(10, 1)
    for _ in range(10):
        permits.release(1, codec.permits.DELIVERED, 1)
    assert flows == [10, 5, 5]
    assert (permits.epoch, permits.half, permits.zero_queue) == (1, 5, False)


def test_an_old_epoch_has_no_effect(codec: Any) -> None:
    permits, flows = account(codec, 10)
    permits.open(1)
    permits.arrive(10, 1)
    permits.lost()
    permits.release(10, codec.permits.DELIVERED, 1)
    permits.open(2)
    assert not permits.arrive(3, 1)
    permits.release(10, codec.permits.DELIVERED, 1)
    assert flows == [10, 10]
    assert permits.diagnose()["at_broker"] == 10


def test_a_pause_withholds_also_the_first_grant(codec: Any) -> None:
    permits, flows = account(codec, 10)
    permits.pause()
    permits.open(1)
    assert flows == []
    permits.resume()
    assert flows == [10]


def test_zero_queue_grants_by_receivers(codec: Any) -> None:
    permits, flows = account(codec, 0)
    permits.open(1)
    permits.receivers(2)
    assert sum(flows) == 2
    permits.arrive(1, 1)
    permits.receivers(1)
    permits.release(1, codec.permits.DELIVERED, 1)
    permits.receivers(0)  # cancelled: its grant stays there
    permits.receivers(1)
    assert sum(flows) == 2


class History:
    """One consumer and one producer, and what may happen to them."""

    def __init__(self, codec: Any, seed: int, kind: str, queue: int) -> None:
        self.random = Random(seed)
        self.world = PulsarWorld(codec, seed=seed, maxUnackedMessagesPerConsumer=self.random.choice((0, 20, 1000)))
        self.world.world.latency = self.random.choice((0.0, 0.001))
        client = self.world.client()
        self.producer = self.world.producer(client, "t", batching=self.random.random() < 0.8)
        self.consumer = self.world.consumer(client, "t", "s", type=kind, receiver_queue=queue, nack_delay=0.2)
        self.face = self.world.face(self.consumer)
        self.sent = 0
        self.seen: Counter[bytes] = Counter()
        self.acked: set[bytes] = set()
        self.paused = False

    def step(self) -> None:
        self.random.choice(
            (self.publish, self.take, self.take, self.take, self.pause, self.refuse, self.trouble, self.wait)
        )()

    def publish(self) -> None:
        count = self.random.choice((1, 2, 7, 30))
        with self.producer.client.driver.enter():
            self.producer.send_many([b"%d" % number for number in range(self.sent, self.sent + count)])
        self.sent += count

    def take(self) -> None:
        self.world.world.run()
        messages = self.face._take_many(self.random.choice((1, 3, 50)))
        for message in messages:
            self.seen[message.body] += 1
        if messages and self.random.random() < 0.8:
            self.face.ack(messages)
            self.acked.update(message.body for message in messages)
        elif messages:
            self.face.nack(messages)

    def pause(self) -> None:
        (self.face.resume if self.paused else self.face.pause)()
        self.paused = not self.paused

    def refuse(self) -> None:
        if self.random.random() < 0.3:
            self.face.redeliver()

    def trouble(self) -> None:
        what = self.random.random()
        if what < 0.1:
            self.world.cut()
        elif what < 0.2:
            self.world.door.unload("t")
        elif what < 0.25:
            self.world.control.delay("SUBSCRIBE", 0.3)
            self.world.cut()

    def wait(self) -> None:
        self.world.world.advance(self.random.choice((0.01, 0.3, 3.0)))

    def finish(self) -> None:
        """Everything comes in the end, and both sides agree on what may still be sent."""
        self.world.control.clear()
        if self.paused:
            self.face.resume()
        for _ in range(100):
            self.world.world.advance(1.0)
            while messages := self.face._take_many(10_000):
                self.seen.update(message.body for message in messages)
                self.face.ack(messages)
                self.world.world.advance(0.01)
        assert set(self.seen) == {b"%d" % number for number in range(self.sent)}
        self.world.settled(self.consumer)
        assert self.world.at_broker(self.consumer).subscription.backlog == 0
        assert self.world.world.drivers[0].user_errors == []


@pytest.mark.parametrize("queue", [1, 2, 10, 1000])
@pytest.mark.parametrize("kind", ["exclusive", "shared", "failover", "key_shared"])
def test_random_histories_balance_and_starve_nobody(codec: Any, scale: str, kind: str, queue: int) -> None:
    for seed in range({"test": 5, "ci": 100, "soak": 1000}[scale]):
        history = History(codec, seed, kind, queue)
        try:
            for _ in range(120):
                history.step()
            history.finish()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {kind}, queue {queue}: {error}") from error


def test_what_is_checked_can_fail(codec: Any) -> None:
    world = PulsarWorld(codec)
    consumer: ConsumerEngine = world.consumer(world.client(), "t", "s")
    world.settled(consumer)
    consumer.permits._credits.arrive(5, 1)
    with pytest.raises(AssertionError):
        world.settled(consumer)

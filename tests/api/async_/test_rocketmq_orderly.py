"""Orderly push consumers: one owner for each queue, in its order, whatever fails and whoever comes or goes."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from itertools import pairwise
from typing import Any

from mqclient.rocketmq.aio import Client, Message, Retry
from tests.api.conftest import RocketMQCluster
from tests.support.pace.aio import Event, sleep
from tests.support.seen import unique

WITHIN = 40.0


class Ledger:
    """Every call of every member: whose, of which queue, which offsets, from when to when."""

    def __init__(self, wanted: int) -> None:
        self.calls: dict[Any, list[tuple[str, list[int], float, float]]] = defaultdict(list)
        self.count = 0
        self.full = Event()
        self.wanted = wanted
        self._lock = threading.Lock()

    def handler(self, who: str, seconds: float = 0.0) -> Any:
        async def handle(messages: Any) -> None:
            began = time.monotonic()
            if seconds:
                await sleep(seconds)
            with self._lock:
                self.calls[messages.queue].append((who, messages.offsets, began, time.monotonic()))
                self.count += len(messages)
                if self.count >= self.wanted:
                    self.full.set()

        return handle

    def check(self) -> None:
        """Each queue from its first offset on without a gap and without a repetition, and never two at a time."""
        for queue, calls in self.calls.items():
            offsets = [offset for _, some, _, _ in calls for offset in some]
            assert offsets == list(range(len(offsets))), queue
            assert all(one[3] <= other[2] for one, other in pairwise(calls)), queue


async def fill(client: Client, topic: str, queues: int, each: int) -> None:
    """So many messages in each queue of the first broker."""
    async with client.admin() as admin:
        await admin.create_topic(topic, queues)
        places = sorted(queue for queue in await admin.offsets(topic) if queue.broker_name == "broker-a")
    async with client.producer(unique("p")) as producer:
        for number in range(each):
            for queue in places:
                assert (await producer.send(Message(topic, b"%d" % number), queue=queue)).ok


async def test_queues_change_hands_without_two_owners(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group, ledger = unique("ledger"), unique("g"), Ledger(60)
    options: dict[str, Any] = {"orderly": True, "start": "first", "batch": 2, "rule": "averagely_by_circle"}
    async with Client(rocketmq.name_server, impl=impl) as one, Client(rocketmq.name_server, impl=impl) as two:
        await fill(one, topic, 2, 30)
        async with one.push_consumer(group, topic, ledger.handler("one", 0.03), **options) as first:
            async with two.push_consumer(group, topic, ledger.handler("two", 0.03), **options) as second:
                until = time.monotonic() + WITHIN
                while not {"one", "two"} <= {call[0] for calls in ledger.calls.values() for call in list(calls)}:
                    assert time.monotonic() < until
                    await sleep(0.02)
                assert not set(first.queues) & set(second.queues)
                assert second.diagnose()["code_25"] == 0
            await ledger.full.wait(WITHIN)
            assert first.diagnose()["code_25"] == 0
    ledger.check()


async def test_what_fails_is_tried_again_in_its_place(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group, seen, done = unique("ledger"), unique("g"), [], Event()

    async def handle(messages: Any) -> None:
        for message in messages:
            seen.append((message.body, message.attempts, message.topic))
            if message.body == b"1" and message.attempts < 2:
                raise ValueError("not yet")
        if len(seen) >= 5:
            done.set()

    async with Client(rocketmq.name_server, impl=impl) as client:
        await fill(client, topic, 1, 3)
        async with client.push_consumer(
            group, topic, handle, orderly=True, start="first", batch=1, suspend=0.05
        ) as consumer:
            await done.wait(WITHIN)
            state = consumer.diagnose()
        assert seen == [
            (body, attempts, topic) for body, attempts in zip(b"0 1 1 1 2".split(), (0, 0, 1, 2, 0), strict=True)
        ]
        assert (state["failed"], state["orderly"]) == (2, True)
        async with client.admin() as admin:
            ends = await admin.offsets(topic, group)
        assert sum(end["committed"] or 0 for end in ends.values()) == 3


async def test_only_what_the_handler_names_is_tried_again(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group, calls, done = unique("ledger"), unique("g"), [], Event()

    async def handle(messages: Any) -> None:
        calls.append([message.body for message in messages])
        if messages[0].attempts == 0 and len(messages) == 4:
            raise Retry(messages[2:], delay=0.01)
        if messages[-1].body == b"3":
            done.set()

    async with Client(rocketmq.name_server, impl=impl) as client:
        await fill(client, topic, 1, 4)
        async with client.push_consumer(group, topic, handle, orderly=True, start="first", batch=4):
            await done.wait(WITHIN)
    got = [body for call in calls for body in call]
    assert got[-2:] == [b"2", b"3"]
    assert sorted(set(got)) == [b"0", b"1", b"2", b"3"]


async def test_at_the_limit_it_is_a_dead_letter_and_the_queue_goes_on(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group, seen, done = unique("ledger"), unique("g"), [], Event()

    async def handle(messages: Any) -> None:
        for message in messages:
            seen.append((message.body, message.attempts))
            if message.body == b"0":
                raise ValueError("never")
        done.set()

    async with Client(rocketmq.name_server, impl=impl) as client:
        await fill(client, topic, 1, 2)
        options: dict[str, Any] = {"max_attempts": 1, "suspend": 0.02, "batch": 1}
        async with client.push_consumer(group, topic, handle, orderly=True, start="first", **options):
            await done.wait(WITHIN)
        assert seen == [(b"0", 0), (b"0", 1), (b"1", 0)]
        async with client.pull_consumer(unique("dead"), f"%DLQ%{group}", start="first") as dead:
            letter = await dead.receive(timeout=WITHIN)
        assert (letter.body, letter.property("RETRY_TOPIC")) == (b"0", topic)


async def test_broadcasting_keeps_the_order_without_locks(rocketmq: RocketMQCluster, impl: str, tmp_path: Any) -> None:
    def locks() -> int:
        return rocketmq.embedded.control.count("LOCK_BATCH_MQ") if rocketmq.embedded is not None else 0

    topic, group = unique("ledger"), unique("g")
    ledgers = [Ledger(20), Ledger(20)]
    before = locks()
    async with (
        Client(rocketmq.name_server, impl=impl, offset_dir=str(tmp_path)) as one,
        Client(rocketmq.name_server, impl=impl, offset_dir=str(tmp_path)) as two,
    ):
        await fill(one, topic, 2, 10)
        options: dict[str, Any] = {"orderly": True, "model": "broadcasting", "start": "first", "batch": 3}
        async with (
            one.push_consumer(group, topic, ledgers[0].handler("one"), **options),
            two.push_consumer(group, topic, ledgers[1].handler("two"), **options),
        ):
            for ledger in ledgers:
                await ledger.full.wait(WITHIN)
    for ledger in ledgers:
        ledger.check()
        assert len(ledger.calls) == 2
    assert locks() == before

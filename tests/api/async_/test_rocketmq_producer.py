"""RocketMQ producers on both brokers: batches by topic and queue, order by key, compression, delays, the account."""

from __future__ import annotations

import asyncio  # unasync: drop
import pickle
from typing import Any
from weakref import WeakSet

import pytest

from mqclient.errors import ClosedError, DeadlineError
from mqclient.rocketmq.aio import Account, Client, Message, QueueFullError, Receipt, TraceContext
from mqclient.rocketmq.codes import BrokerError
from tests.support.seen import unique


async def make_topic(client: Client, queues: int = 2) -> str:
    topic = unique("produced")
    async with client.admin() as admin:
        await admin.create_topic(topic, queues=queues)
    return topic


async def read(client: Client, topic: str, count: int) -> list[Any]:
    """So many messages of a topic, whole."""
    got: list[Any] = []
    async with client.pull_consumer(unique("reader"), topic, start="first") as consumer:
        while len(got) < count:
            got += await consumer.receive_many(count, timeout=10)
    return got


async def test_submitted_messages_travel_together_and_each_has_its_receipt(rocketmq: Any, impl: str) -> None:
    async with Client(rocketmq.name_server, impl=impl) as client, client.producer(unique("p")) as producer:
        topic = await make_topic(client)
        await producer.send(Message(topic, b"first"))
        messages = [Message(topic, b"%03d" % number, tag="t", keys=[f"k{number}"]) for number in range(300)]
        futures = [producer.submit(message) for message in messages]
        assert await producer.flush(timeout=10) == Account(301, 0, 0, 0, 0)
        receipts: list[Receipt] = [future.result() for future in futures]
        assert len({(receipt.queue, receipt.offset) for receipt in receipts}) == 300
        found = {message.message_id: message for message in await read(client, topic, 301)}
        for receipt, message in zip(receipts, messages, strict=True):
            got = found[receipt.message_id]
            assert (got.body, got.tag, got.keys) == (message.body, "t", tuple(message.keys))
            assert (got.queue, got.offset, got.offset_id) == (receipt.queue, receipt.offset, receipt.offset_id)


async def test_a_producer_that_was_pickled_has_a_client_of_its_own(rocketmq: Any, impl: str) -> None:
    async with Client(rocketmq.name_server, impl=impl) as client, client.producer(unique("p")) as producer:
        topic = await make_topic(client)
        async with pickle.loads(pickle.dumps(producer)) as copy:
            assert (await copy.send(Message(topic, b"copy"))).ok
            assert len(await copy.send_many([Message(topic, b"more")] * 2)) == 2
        with pytest.raises(ClosedError):
            await copy.send(Message(topic, b"late"))
        await producer.send(Message(topic, b"its own goes on"))
        assert len(await read(client, topic, 4)) == 4


async def test_a_key_keeps_its_order_whatever_way_it_is_sent(rocketmq: Any, impl: str) -> None:
    async with Client(rocketmq.name_server, impl=impl) as client, client.producer(unique("p")) as producer:
        topic = await make_topic(client, queues=4)
        futures = [producer.submit(Message(topic, b"%03d" % number), key="customer-7") for number in range(100)]
        receipt = await producer.send(Message(topic, b"100"), key="customer-7")
        more = [Message(topic, b"%03d" % number) for number in range(101, 200)]
        assert all(one.ok for one in await producer.send_many(more, key=lambda message: "customer-7"))
        assert {future.result(1).queue for future in futures} == {receipt.queue}
        assert [message.body for message in await read(client, topic, 200)] == [b"%03d" % n for n in range(200)]


async def test_a_topic_made_anew_with_fewer_queues_takes_messages_at_once(rocketmq: Any, impl: str) -> None:
    async with (
        Client(rocketmq.name_server, impl=impl) as client,
        client.producer(unique("p")) as producer,
        Client(rocketmq.name_server, impl=impl) as operators,
        operators.admin() as admin,
    ):
        topic = await make_topic(operators, queues=8)
        for _ in range(4):
            assert (await producer.send(Message(topic, b"before"))).ok
        await admin.delete_topic(topic)
        await admin.create_topic(topic, queues=1)
        for _ in range(20):
            assert (await producer.send(Message(topic, b"after"))).ok
        await admin.delete_topic(topic)
        await admin.create_topic(topic, queues=2)
        futures = [producer.submit(Message(topic, b"submitted")) for _ in range(100)]
        assert (await producer.flush(timeout=20)).failed == 0
        assert all(receipt.ok for receipt in await producer.send_many([Message(topic, b"many")] * 32))
        assert {future.result().queue.queue_id for future in futures} <= {0, 1}


@pytest.mark.parametrize("compression", ["zlib", "lz4", "zstd"])
async def test_large_bodies_arrive_as_they_were(rocketmq: Any, impl: str, compression: str) -> None:
    pytest.importorskip({"zlib": "zlib", "lz4": "lz4.frame", "zstd": "zstandard"}[compression])
    async with (
        Client(rocketmq.name_server, impl=impl) as client,
        client.producer(unique("p"), compression=compression) as producer,
    ):
        topic = await make_topic(client)
        body = b"so much of the same " * 1000
        await producer.send(Message(topic, body))
        await producer.send_many([Message(topic, body), Message(topic, b"small"), Message(topic, b"small too")])
        got = await read(client, topic, 4)
        assert sorted(len(message.body) for message in got) == [5, 9, 20_000, 20_000]
        assert {message.compression for message in got if message.body == body} == {
            {"lz4": 1, "zstd": 2, "zlib": 3}[compression]
        }
        assert {message.stored_size < 5000 for message in got} == {True}


async def test_many_of_many_topics_and_sizes(rocketmq: Any, impl: str) -> None:
    async with (
        Client(rocketmq.name_server, impl=impl) as client,
        client.producer(unique("p"), compression=None) as producer,
    ):
        topics = [await make_topic(client), await make_topic(client)]
        messages = [Message(topics[number % 2], b"%d" % number * 300) for number in range(1000)]
        messages.append(Message(topics[0], b"x" * 1_000_000))
        results: list[Any] = await producer.send_many(messages, timeout=20)
        assert [result.topic for result in results] == [message.topic for message in messages]
        assert len({(result.queue, result.offset) for result in results}) == 1001
        got = await read(client, topics[0], 501)
        assert {message.body for message in got} == {message.body for message in messages[::2]}


class Noted(Message):
    """A message of which it can be told whether it is still there."""


async def test_messages_that_nobody_else_keeps_are_gone_before_they_are_sent(rocketmq: Any, impl: str) -> None:
    async with Client(rocketmq.name_server, impl=impl) as client, client.producer(unique("p")) as producer:
        topic, there, counts = await make_topic(client), WeakSet[Message](), list[int]()

        def noted() -> Noted:
            message = Noted(topic, b"large lists of them take as much room as their receipts")
            there.add(message)
            return message

        def submit_many(*given: Any) -> Any:
            counts.append(len(there))
            return submits(*given)

        engine: Any = producer._engine
        submits = engine.submit_many
        engine.submit_many = submit_many
        assert len(await producer.send_many(noted() for _ in range(300))) == 300
        assert counts == [0]


async def test_delayed_messages_come_later(rocketmq: Any, impl: str) -> None:
    async with Client(rocketmq.name_server, impl=impl) as client, client.producer(unique("p")) as producer:
        topic = await make_topic(client, queues=1)
        timed = await producer.send(Message(topic, b"timed", deliver_after=2.0))
        level = await producer.send(Message(topic, b"level", delay_level=1))
        at_once = await producer.send(Message(topic, b"at once"))
        assert timed.recall_handle
        got = await read(client, topic, 3)
        first, second = got[0], next(message for message in got if message.body == b"level")
        assert first.body == b"at once" or first.stored_at >= second.born_at + 900, "the machine slept in between"
        assert {message.message_id for message in got} == {timed.message_id, level.message_id, at_once.message_id}
        assert all(message.stored_at - message.born_at >= 900 for message in got[1:])


async def test_beyond_the_limits_and_after_the_close(rocketmq: Any, impl: str) -> None:
    async with Client(rocketmq.name_server, impl=impl) as client:
        topic = await make_topic(client)
        producer = await client.producer(unique("p"), max_pending_messages=1, when_full="refuse")
        await producer.send(Message(topic, b"x"))
        messages = iter([Message(topic, b"x")] * 1000)
        futures: list[Any] = []
        with pytest.raises(QueueFullError):
            futures.extend(map(producer.submit, messages))
        account = await producer.close()
        assert (account.stored, account.pending) == (1 + len(futures), 0)
        assert all(future.result(0).ok for future in futures)
        with pytest.raises(ClosedError):
            producer.submit(Message(topic, b"x"))


async def test_a_request_is_answered_by_its_consumer(rocketmq: Any, impl: str) -> None:
    async with (
        Client(rocketmq.name_server, impl=impl) as client,
        Client(rocketmq.name_server, impl=impl) as other,
        client.producer(unique("askers")) as asker,
        other.producer(unique("helpers")) as helper,
    ):
        topic = await make_topic(client)

        async def handle(messages: Any) -> None:
            for message in messages:
                await helper.reply(message, message.body.upper() * 3000, tag="t", timeout=10)

        async with other.push_consumer(unique("service"), topic, handle, start="first"):
            reply = await asker.request(Message(topic, b"shout"), timeout=20)
        assert (reply.body, reply.tag) == (b"SHOUT" * 3000, "t")
        with pytest.raises(DeadlineError, match="no reply came in time"):
            await asker.request(Message(topic, b"nobody is there"), timeout=0.5)


async def test_a_timed_message_is_taken_back(rocketmq: Any, impl: str) -> None:
    async with Client(rocketmq.name_server, impl=impl) as client, client.producer(unique("p")) as producer:
        topic = await make_topic(client, queues=1)
        timed = await producer.send(Message(topic, b"never", deliver_after=2.0))
        assert await producer.recall(timed) == timed.message_id
        await producer.send(Message(topic, b"timed", deliver_after=2.5))
        assert [message.body for message in await read(client, topic, 1)] == [b"timed"]
        with pytest.raises(BrokerError):
            await producer.recall(timed, timeout=10)  # its time is over


async def test_hooks_see_each_request_and_messages_carry_the_trace(rocketmq: Any, impl: str) -> None:
    told: list[Any] = []

    class Meter:
        def after_send(self, sent: Any) -> None:
            told.append(sent)

    hooks = (Meter(), TraceContext())
    async with (
        Client(rocketmq.name_server, impl=impl) as client,
        client.producer(unique("p"), hooks=hooks, message_trace=True, rate_limit=1000, breaker_failures=3) as producer,
    ):
        topic = await make_topic(client)
        await producer.send(Message(topic, b"1"))
        assert all(one.ok for one in await producer.send_many([Message(topic, b"x") for _ in range(12)]))
        found = await read(client, topic, 13)
        assert len({message.property("traceparent") for message in found}) == 13
    assert sum(len(sent.message_ids) for sent in told) == 13
    assert all(sent.status == "SEND_OK" and sent.seconds > 0 for sent in told)


async def test_tasks_share_requests(rocketmq: Any, impl: str) -> None:  # unasync: drop
    async with (  # unasync: drop
        Client(rocketmq.name_server, impl=impl) as client,  # unasync: drop
        client.producer(unique("p"), max_pending_messages=50) as producer,  # unasync: drop
    ):  # unasync: drop
        topic = await make_topic(client)  # unasync: drop
        sends = [producer.send(Message(topic, b"%d" % number), timeout=10) for number in range(200)]  # unasync: drop
        receipts = await asyncio.gather(*sends)  # unasync: drop
        assert len({(receipt.queue, receipt.offset) for receipt in receipts}) == 200  # unasync: drop

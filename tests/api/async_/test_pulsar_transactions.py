"""Transactions over the embedded broker and the real one: all of it or nothing, for what is sent and acknowledged."""

# ruff: noqa: SIM117, PT012 - who is inside of whom is the point here

from __future__ import annotations

from typing import Any

import pytest

from mqclient.errors import ConfigError, DeadlineError, TransactionError
from mqclient.pulsar import aio
from mqclient.pulsar.codes import BrokerError, ServerError
from tests.support.pulsar_cluster import PulsarCluster


async def bodies(consumer: aio.Consumer | aio.Reader, count: int) -> list[bytes]:
    return [(await consumer.receive(60)).body for _ in range(count)]


async def nothing(consumer: aio.Consumer) -> None:
    with pytest.raises(DeadlineError):
        await consumer.receive(0.7)


async def test_messages_come_when_it_is_committed(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.consumer(topic, "s", start="earliest") as consumer:
        async with client.producer(topic) as producer, client.producer(f"{topic}-other") as other:
            async with client.transaction() as txn:
                assert (await producer.send(b"1", txn=txn)).entry >= 0
                sent = await producer.send_many([b"2", (b"3", "key"), {"body": b"4"}], txn=txn)
                assert all(one.ok for one in sent)
                await other.send(b"5", txn=txn)
                await nothing(consumer)
                assert txn.state == "open"
            assert txn.state == "committed"
            assert await bodies(consumer, 4) == [b"1", b"2", b"3", b"4"]
            async with client.reader(f"{topic}-other", start="earliest") as reader:
                assert await bodies(reader, 1) == [b"5"]


@pytest.mark.parametrize("batching", [True, "key"])
async def test_batches_of_a_transaction(pulsar: PulsarCluster, topic: str, impl: str, batching: Any) -> None:
    """Messages of one transaction travel together, never with those of another or of none."""
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=batching) as producer:
        kept, dropped = await client.transaction(), await client.transaction()
        sent = await producer.send_many([(b"%d" % number, "k") for number in range(20)], txn=kept)
        assert {one.batch_size for one in sent} == {20} or sent[0].batch_size == 1 < sent[-1].batch_size
        never = await producer.send_many([(b"never", "k"), (b"never", "k")], txn=dropped)
        mixed = await producer.send_many([{"body": b"20", "txn": kept}, b"21", {"body": b"never", "txn": dropped}])
        assert all(one.ok for one in [*sent, *never, *mixed])
        assert len({(one.ledger, one.entry) for one in mixed}) == 3
        await kept.commit()
        await dropped.abort()
        async with client.consumer(topic, "s", start="earliest") as consumer:
            messages = [await consumer.receive(60) for _ in range(22)]
            assert [message.body for message in messages] == [b"%d" % number for number in range(22)]
            await consumer.ack(messages)
            await nothing(consumer)


async def test_nothing_comes_when_it_is_aborted(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.consumer(topic, "s", start="earliest") as consumer:
        async with client.producer(topic) as producer:
            with pytest.raises(ZeroDivisionError):
                async with client.transaction() as txn:
                    await producer.send(b"never", txn=txn)
                    raise ZeroDivisionError
            assert txn.state == "aborted"
            txn = await client.transaction()
            await producer.send(b"never either", txn=txn)
            await txn.abort()
            await producer.send(b"plain")
            assert await bodies(consumer, 1) == [b"plain"]
            with pytest.raises(TransactionError, match="has ended: aborted"):
                await producer.send(b"late", txn=txn)
            with pytest.raises(TransactionError, match="has ended: aborted"):
                await txn.commit()
            with pytest.raises(TransactionError, match="has ended"):
                await consumer.ack(await consumer.last_message_id(), txn=txn)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["exclusive", "shared", "key_shared"])
@pytest.mark.parametrize("batching", [True, False])
async def test_acknowledgements(pulsar: PulsarCluster, topic: str, impl: str, kind: str, batching: bool) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, batching=batching) as producer:
            await producer.send_many([b"%d" % number for number in range(6)])
        options: dict[str, Any] = {"type": kind, "start": "earliest"}
        async with client.consumer(topic, "s", **options) as consumer:
            messages = [await consumer.receive(60) for _ in range(6)]
            txn = await client.transaction()
            await consumer.ack(messages[0], txn=txn)
            await consumer.ack(messages[1:4], txn=txn)
            await txn.abort()
            again = [await consumer.receive(60) for _ in range(4)]
            assert [message.body for message in again][:4] == [b"0", b"1", b"2", b"3"]
            async with client.transaction() as txn:
                await consumer.ack(again, txn=txn)
            await consumer.ack_confirmed(messages[4])
        async with client.consumer(topic, "s", **options) as consumer:
            assert await bodies(consumer, 1) == [b"5"]
            await nothing(consumer)


async def test_cumulative_acknowledgements(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic) as producer:
            await producer.send_many([b"%d" % number for number in range(6)])
        async with client.consumer(topic, "s", start="earliest") as consumer:
            messages = [await consumer.receive(60) for _ in range(4)]
            txn = await client.transaction()
            await consumer.ack_cumulative(messages[3], txn=txn)
            await txn.abort()
            again = [await consumer.receive(60) for _ in range(6)]
            assert [message.body for message in again] == [b"%d" % number for number in range(6)]
            async with client.transaction() as txn:
                await consumer.ack_cumulative(again[2], txn=txn)
        async with client.consumer(topic, "s") as consumer:
            assert await bodies(consumer, 3) == [b"3", b"4", b"5"]
        async with client.consumer(topic, "shared", type="shared") as consumer:
            async with client.transaction() as txn:
                with pytest.raises(ConfigError, match="message by message"):
                    await consumer.ack_cumulative(again[0], txn=txn)


async def test_from_topic_to_topic_with_partitions(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(topic, 2)
    pulsar.partition(f"{topic}-out", 2)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic) as producer:
            await producer.send_many([(b"%d" % number, f"k{number}") for number in range(10)])
        consumer = await client.consumer(topic, "s", type="shared", start="earliest")
        out = await client.producer(f"{topic}-out")
        taken: list[Any] = []
        while len(taken) < 10:
            async with client.transaction() as txn:
                for message in await consumer.receive_many(4, timeout=15):
                    taken.append(message)
                    await out.send(b"<%s>" % message.body, key=message.key, txn=txn)
                    await consumer.ack(message, txn=txn)
        async with client.consumer(f"{topic}-out", "s", start="earliest") as last:
            assert sorted(await bodies(last, 10)) == [b"<%d>" % number for number in range(10)]
        await consumer.close()
        async with client.consumer(topic, "s", type="shared") as consumer:
            await nothing(consumer)


async def test_conflicts(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """What one transaction has acknowledged another cannot, and then it cannot be committed."""
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic) as producer:
            await producer.send(b"x")
        async with client.consumer(topic, "s", type="shared", start="earliest") as consumer:
            message = await consumer.receive(60)
            first, second = await client.transaction(), await client.transaction()
            await consumer.ack(message, txn=first)
            with pytest.raises(BrokerError) as refused:
                await consumer.ack(message, txn=second)
            assert refused.value.code == ServerError.TransactionConflict
            with pytest.raises(TransactionError, match=r"aborted, for something in it failed: .*TransactionConflict"):
                await second.commit()
            assert second.state == "aborted"
            await first.commit()


async def test_its_time(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        txn = await client.transaction(ttl=1.0)
        await producer.send(b"never", txn=txn)
        async with client.reader(topic, start="earliest") as reader:
            with pytest.raises(DeadlineError):
                await reader.receive(1.5)
            assert txn.state == "expired"
            with pytest.raises(TransactionError, match="has ended: expired"):
                await producer.send(b"late", txn=txn)
            await producer.send(b"plain")
            assert await bodies(reader, 1) == [b"plain"]
        with pytest.raises(ConfigError, match="lasts some seconds"):
            await client.transaction(ttl=0)


async def test_submit(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.transaction() as txn:
            await producer.send(b"1", txn=txn)
            futures = [producer.submit(b"%d" % number, txn=txn) for number in range(2, 5)]
        assert all(future.done() for future in futures)
        async with client.reader(topic, start="earliest") as reader:
            assert await bodies(reader, 4) == [b"1", b"2", b"3", b"4"]


async def test_transactions_belong_to_a_client(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, aio.Client(pulsar.url, impl=impl) as other:
        async with client.producer(topic) as producer:
            txn = await other.transaction()
            with pytest.raises(ConfigError, match="of another client"):
                await producer.send(b"x", txn=txn)
            wrong: Any = "txn"
            with pytest.raises(ConfigError, match=r"what client.transaction\(\) gave"):
                await producer.send(b"x", txn=wrong)
            await txn.abort()

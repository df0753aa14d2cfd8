"""What comes again, and what does not any more, on the embedded and the real broker."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import time
from typing import Any

from mqclient.pulsar import aio
from mqclient.pulsar.consumer_options import DeadLetter, Delays
from tests.support.pulsar_cluster import PulsarCluster


async def receive(consumer: aio.Consumer | aio.Reader, count: int, timeout: float = 60) -> list[Any]:
    """That many messages, or what came until nothing did any more."""
    messages: list[Any] = []
    while len(messages) < count:
        more = await consumer.receive_many(count - len(messages), timeout=timeout)
        if not more:
            break
        messages += more
    return messages


async def test_refused_with_growing_delays(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    delays = Delays(first=0.05, limit=0.2)
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing", type="shared", nack_delay=delays) as consumer:
            await producer.send(b"x")
            refused = 0.0
            for times in range(4):
                message = await consumer.receive(60)
                assert message.redeliveries == times
                assert not times or time.monotonic() - refused >= 0.9 * delays.after(times - 1)
                refused = time.monotonic()
                consumer.nack(message)


async def test_not_acknowledged_in_time(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing", type="shared", ack_timeout=0.5) as consumer:
            await producer.send_many([b"%d" % number for number in range(5)])
            messages = await receive(consumer, 5)
            await consumer.ack(messages[::2])
            again = await receive(consumer, 2)
            assert [(message.body, message.redeliveries) for message in again] == [(b"1", 1), (b"3", 1)]
            await consumer.ack_confirmed(again, timeout=10)
            assert await receive(consumer, 1, timeout=1) == []


async def test_in_order_everything_after_the_first_missing_comes_again(
    pulsar: PulsarCluster, topic: str, impl: str
) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing", ack_timeout=0.5) as consumer:
            await producer.send_many([b"%d" % number for number in range(5)])
            messages = await receive(consumer, 5)
            await consumer.ack_cumulative(messages[1])
            again = await receive(consumer, 3)
            assert [message.body for message in again] == [b"2", b"3", b"4"]
            await consumer.ack_cumulative(again[-1])


async def test_the_dead_letter_topic(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    policy = DeadLetter(max_redeliveries=2, initial_subscription="watch")
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing", type="shared", nack_delay=0.05, dead_letter=policy) as consumer:
            await producer.send(b"bad", key="k", properties={"a": "1"})
            await producer.send(b"good")
            tries, letters = 0, []
            while tries < 3:
                message = await consumer.receive(60)
                if message.body == b"good":
                    await consumer.ack(message)
                else:
                    consumer.nack(message)
                    tries += 1
            async with client.consumer(f"{topic}-billing-DLQ", "watch", start="earliest") as grave:
                letters = await receive(grave, 1)
                assert [(letter.body, letter.key) for letter in letters] == [(b"bad", "k")]
                assert letters[0].properties["a"] == "1"
                assert letters[0].properties["REAL_TOPIC"] == f"persistent://public/default/{topic}"
            assert await receive(consumer, 1, timeout=0.5) == []


async def test_the_retry_letter_topic(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    policy = DeadLetter(max_redeliveries=1)
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing", type="shared", retry=True, dead_letter=policy) as consumer:
            await producer.send(b"bad")
            await consumer.retry_later(await consumer.receive(60), 0.2, timeout=20)
            message = await consumer.receive(60)
            assert (message.body, message.properties["RECONSUMETIMES"]) == (b"bad", "1")
            await consumer.retry_later(message, 0.2, timeout=20)
            async with client.reader(f"{topic}-billing-DLQ", start="earliest") as grave:
                assert (await grave.receive(60)).properties["RECONSUMETIMES"] == "2"
            assert await receive(consumer, 1, timeout=0.5) == []


async def test_parts_of_batches(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """Cumulatively inside a batch, one by one, and neither lost nor shown twice."""
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "in order", batch_index_ack=False) as consumer:
            await producer.send_many([b"%d" % number for number in range(10)])
            messages = await receive(consumer, 10)
            await consumer.ack_cumulative(messages[4])
        async with client.consumer(topic, "in order") as consumer:  # the entry is acknowledged as a whole or not at all
            assert len(await receive(consumer, 10)) == 10
        async with client.consumer(topic, "again", start="earliest", ack_grouping=0, ack_group_size=2) as consumer:
            messages = await receive(consumer, 10)
            await consumer.ack_cumulative(messages[3])
            await consumer.ack(messages[6])
            await consumer.ack_confirmed(messages[8:], timeout=10)
        async with client.consumer(topic, "again") as consumer:
            assert [message.body for message in await receive(consumer, 3)] == [b"4", b"5", b"7"]

"""Pulsar producers over the embedded broker and the real one: partitions, routing, what a message can say."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from mqclient.errors import ClosedError, ConfigError, DeadlineError
from mqclient.pulsar import aio
from mqclient.pulsar.auth import basic, token
from mqclient.pulsar.codes import BrokerError, CompressionType, ServerError
from tests.support.pulsar_cluster import PulsarCluster


def parted(pulsar: PulsarCluster, topic: str, count: int, method: str = "PUT") -> None:
    pulsar.rest(method, f"persistent/public/default/{topic}/partitions", count)


async def receive(consumer: aio.Consumer | aio.Reader, count: int) -> list[Any]:
    """That many messages, or what came until nothing did for a minute."""
    messages: list[Any] = []
    while len(messages) < count:
        more = await consumer.receive_many(count - len(messages), timeout=60)
        if not more:
            break
        messages += more
    return messages


async def test_messages_without_key_go_round(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    parted(pulsar, topic, 3)
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        ids = [await producer.send(b"%d" % number) for number in range(6)]
        assert Counter(at.partition for at in ids) == {0: 2, 1: 2, 2: 2}
        assert producer.topic == f"persistent://public/default/{topic}"


async def test_a_single_partition(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    parted(pulsar, topic, 4)
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, routing="single") as producer:
        assert len({(await producer.send(b"x")).partition for _ in range(5)}) == 1


@pytest.mark.parametrize("hashing", ["java", "murmur3", "boost"])
async def test_keys_have_their_partitions(pulsar: PulsarCluster, topic: str, impl: str, hashing: str) -> None:
    parted(pulsar, topic, 4)
    keys = [f"key-{number % 9}" for number in range(200)]
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, hashing=hashing) as producer:
            ids = await producer.send_many([(b"%d" % number, key) for number, key in enumerate(keys)])
        assert len({(key, at.partition) for key, at in zip(keys, ids, strict=True)}) == 9
        for partition in {at.partition for at in ids}:
            wanted = [number for number, at in enumerate(ids) if at.partition == partition]
            async with client.reader(f"{topic}-partition-{partition}", start="earliest") as reader:
                got = await receive(reader, len(wanted))
                assert [int(message.body) for message in got] == wanted
                assert [message.message_id for message in got] == [ids[number] for number in wanted]


async def test_the_user_s_own_routing(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    parted(pulsar, topic, 3)

    def by_shop(key: str | None, properties: Any, partitions: int) -> int:
        return int(properties["shop"]) % partitions

    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, routing=by_shop) as producer:
        many = await producer.send_many([{"body": b"x", "properties": {"shop": str(shop)}} for shop in range(6)])
        assert [at.partition for at in many] == [0, 1, 2, 0, 1, 2]


async def test_a_topic_that_grows(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    parted(pulsar, topic, 1)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, partition_refresh=0.2) as producer:
            assert (await producer.send(b"x")).partition == 0
            parted(pulsar, topic, 3, "POST")
            found: set[int] = set()
            end = time.monotonic() + 30
            while found != {0, 1, 2} and time.monotonic() < end:
                found.add((await producer.send(b"x", timeout=30)).partition)
            assert found == {0, 1, 2}


@pytest.mark.parametrize("compression", ["lz4", "zlib", "zstd", "snappy"])
async def test_compression(pulsar: PulsarCluster, topic: str, impl: str, compression: str) -> None:
    sent = [b"%d " % number * 50 for number in range(100)]
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.reader(topic, start="earliest") as reader:
            async with client.producer(topic, compression=compression) as producer:
                await producer.send_many(sent)
                await producer.send(b"small")
            async with client.producer(topic, compression=compression, batching=False) as producer:
                await producer.send(bytes(100_000))
            got = await receive(reader, 102)
            assert [message.body for message in got] == [*sent, b"small", bytes(100_000)]
            kinds = [CompressionType(message.entry.compression).name.lower() for message in got]
            assert (kinds[0], kinds[-2], kinds[-1]) == (compression, "none", compression)


async def test_entries_of_one_key_each(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    keys = ["a", "b", "a", "c", "b", "a"]
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.reader(topic, start="earliest") as reader, client.producer(topic, batching="key") as producer:
            ids = await producer.send_many([(b"%d" % number, key) for number, key in enumerate(keys)])
            got = await receive(reader, 6)
            assert [(message.key, int(message.body)) for message in got] == [
                ("a", 0), ("a", 2), ("a", 5), ("b", 1), ("b", 4), ("c", 3)
            ]  # fmt: skip
            assert [message.entry.num_messages for message in got] == [3, 3, 3, 2, 2, 1]
            assert {message.message_id for message in got} == set(ids)


async def test_what_a_message_can_say(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    born = datetime(2024, 5, 6, tzinfo=timezone.utc)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.reader(topic, start="earliest") as reader, client.producer(topic) as producer:
            await producer.send(None, key=b"\xff", event_time=born, ordering_key=b"o", replicate_to=[])
            message = await reader.receive(60)
            assert (message.null_value, message.body, message.key_bytes) == (True, b"", b"\xff")
            assert (message.event_time, message.ordering_key) == (int(born.timestamp() * 1000), b"o")


async def test_delivered_later(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing", type="shared") as consumer, client.producer(topic) as producer:
            began = time.time()
            await producer.send(b"later", deliver_after=timedelta(seconds=0.5))
            await producer.send(b"at", deliver_at=datetime.now(timezone.utc) + timedelta(seconds=0.6))
            await producer.send(b"now")
            assert (await consumer.receive(60)).body == b"now"
            assert {(await consumer.receive(60)).body, (await consumer.receive(60)).body} == {b"later", b"at"}
            assert time.time() - began >= 0.3  # a real broker looks every 100 ms


async def test_too_large_is_told_with_the_limit(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        with pytest.raises(ConfigError, match=r"of 62914\d\d bytes: the broker takes 5242880 .*chunking=True"):
            await producer.send(bytes(6 << 20))
        assert (await producer.send(b"small")).entry >= 0


async def test_a_large_message_travels_in_parts(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, batching=False, chunking=True, chunk_size=20_000) as producer:
            sent = await producer.send(bytes(range(256)) * 300, key="k")
            assert sent.first_chunk is not None
            assert (sent.first_chunk.entry, sent.entry) == (0, 3)
            after = await producer.send(b"whole")
            assert (after.entry, after.first_chunk) == (4, None)


async def test_sequence_ids_of_one_s_own(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.reader(topic, start="earliest") as reader:
            async with client.producer(topic, initial_sequence_id=9, name="mine") as producer:
                assert producer.last_sequence_id == 9
                await producer.send(b"a")
                await producer.send_many([{"body": b"b", "sequence_id": 20}, b"c", {"body": b"d", "sequence_id": 40}])
                assert (producer.name, producer.last_sequence_id) == ("mine", 40)
            got = await receive(reader, 4)
            assert [(message.body, message.sequence_id) for message in got] == [
                (b"a", 10), (b"b", 20), (b"c", 21), (b"d", 40)
            ]  # fmt: skip


def deduplicating(pulsar: PulsarCluster, topic: str) -> str:
    """A topic in a namespace of its own, where what was sent twice is stored once."""
    pulsar.rest("PUT", f"namespaces/public/ns-{topic}")
    pulsar.rest("POST", f"namespaces/public/ns-{topic}/deduplication", True)
    return f"public/ns-{topic}/{topic}"


async def test_what_is_sent_twice_is_stored_once(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    name = deduplicating(pulsar, topic)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.reader(name, start="earliest") as reader:
            async with client.producer(name, name="mine") as producer:
                await producer.send_many([b"0", b"1", b"2"])
                again = await producer.send(b"again", sequence_id=1)
                assert (again.ledger, again.entry) == (-1, -1)
            async with client.producer(name, name="mine") as producer:
                assert producer.last_sequence_id == 2  # the whole batch counts, not its first message
                await producer.send(b"3")
            assert [message.body for message in await receive(reader, 4)] == [b"0", b"1", b"2", b"3"]


async def test_rows_with_sequence_ids_of_one_s_own(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pa = pytest.importorskip("pyarrow")
    name = deduplicating(pulsar, topic)
    rows = pa.RecordBatch.from_pydict({"body": [b"%d" % number for number in range(5)]})
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.reader(name, start="earliest") as reader:
            async with client.producer(name, name="mine", batch_max_messages=2) as producer:
                await producer.send_arrow(rows[:3], sequence_id=100)
                assert producer.last_sequence_id == 102
                again = await producer.send_arrow(rows[2:3], sequence_id=102)
                assert [(run.ok, getattr(run.outcome, "entry", None)) for run in again] == [(True, -1)]
            async with client.producer(name, name="mine", batch_max_messages=2) as producer:
                assert producer.last_sequence_id == 102
                await producer.send_arrow(rows[3:], sequence_id=103)
            got = await receive(reader, 5)
            assert [(message.body, message.sequence_id) for message in got] == [
                (b"%d" % number, 100 + number) for number in range(5)
            ]


async def test_exclusive_access(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, access="exclusive") as first:
            with pytest.raises(BrokerError) as caught:
                await client.producer(topic, access="exclusive")
            assert caught.value.code == ServerError.ProducerFenced
            with pytest.raises(BrokerError) as caught:
                await client.producer(topic, timeout=0.3)
            assert caught.value.code == ServerError.ProducerBusy
            assert (await first.send(b"x")).entry == 0


async def test_waiting_for_access(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        first = await client.producer(topic, access="exclusive")
        with pytest.raises(DeadlineError, match="others have it"):
            await client.producer(topic, access="wait", timeout=0.2)
        await first.close()
        async with client.producer(topic, access="wait") as second:
            assert (await second.send(b"x")).entry == 0


async def test_fencing_throws_the_others_out(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        first = await client.producer(topic, access="exclusive")
        async with client.producer(topic, access="fence") as second:
            assert (await second.send(b"x")).entry == 0
            with pytest.raises((BrokerError, ClosedError)):
                await first.send(b"y", timeout=10)


async def test_a_subscription_made_with_its_topic(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(topic, initial_subscription="billing") as producer:
            await producer.send(b"early")
        async with client.consumer(topic, "billing") as consumer:
            assert (await consumer.receive(60)).body == b"early"


async def test_an_unloaded_topic_gets_everything_in_order(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    name = deduplicating(pulsar, topic)
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.producer(name, compression="lz4") as producer:
            futures = []
            for number in range(1500):
                futures.append(producer.submit(b"%d" % number))
                if number in (300, 900):
                    await producer.flush()
                    pulsar.rest("PUT", f"persistent/{name}/unload")
            await producer.flush()
            assert all(future.done() for future in futures)
            assert {future.exception() for future in futures} == {None}
        async with client.reader(name, start="earliest") as reader:
            assert [int(message.body) for message in await receive(reader, 1500)] == list(range(1500))


async def test_of_several_hosts_one_is_enough(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    url = pulsar.url.replace("pulsar://", "pulsar://127.0.0.1:1,")
    async with aio.Client(url, impl=impl) as client:
        async with client.producer(topic) as producer:
            assert (await producer.send(b"x")).entry == 0


async def test_a_broker_without_authentication_takes_any(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    for auth in (basic("anna", "secret"), token("file:/nowhere")):
        async with aio.Client(pulsar.url, impl=impl, auth=auth) as client:
            if auth.method == "token":
                with pytest.raises(ConfigError, match="/nowhere"):
                    await client.ping(timeout=10)
            else:
                assert await client.ping()

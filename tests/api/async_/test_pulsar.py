"""The Pulsar faces over the embedded broker: every method once, and what users rely on."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import pickle
import time
from datetime import datetime, timezone
from typing import Any

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError, MQError
from mqclient.pulsar import aio
from mqclient.pulsar.auth import token
from mqclient.pulsar.codes import BrokerError, ServerError
from tests.support.pulsar_cluster import PulsarCluster


def bodies(messages: list[Any]) -> list[bytes]:
    return [message.body for message in messages]


async def receive(consumer: aio.Consumer | aio.Reader, count: int) -> list[Any]:
    """That many messages, or what came until nothing did for a minute."""
    messages: list[Any] = []
    while len(messages) < count:
        more = await consumer.receive_many(count - len(messages), timeout=60)
        if not more:
            break
        messages += more
    return messages


async def test_one_message_there_and_back(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing") as consumer, client.producer(topic) as producer:
            sent = await producer.send(b"paid", key="42", properties={"shop": "north"}, event_time=7, ordering_key=b"o")
            message = await consumer.receive(60)
            assert (message.body, message.key, message.properties) == (b"paid", "42", {"shop": "north"})
            assert (message.event_time, message.ordering_key, message.redeliveries) == (7, b"o", 0)
            assert message.topic == f"persistent://public/default/{topic}" == consumer.topic == producer.topic
            assert message.message_id == sent
            assert (message.producer_name, message.sequence_id) == (producer.name, 0)
            await consumer.ack(message)


async def test_many_messages_in_order_with_ids(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing") as consumer, client.producer(topic) as producer:
            sent = [b"%d" % number for number in range(2500)]
            ids = await producer.send_many(sent)
            messages = await receive(consumer, 2500)
            assert bodies(messages) == sent
            assert [message.message_id for message in messages] == ids
            assert sorted(ids, reverse=True) == ids[::-1]
            assert len(set(ids)) == 2500
            await consumer.ack(messages)


async def test_a_message_id_survives_pickling_and_bytes(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        sent = await producer.send(b"x")
        assert pickle.loads(pickle.dumps(sent)) == sent
        assert type(sent).from_bytes(sent.to_bytes()) == sent


async def test_submit_gives_futures_and_flush_waits_for_them(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing") as consumer, client.producer(topic) as producer:
            futures = [producer.submit(b"%d" % number) for number in range(100)]
            await producer.flush(5)
            assert all(future.done() for future in futures)
            messages = await receive(consumer, 100)
            assert [future.result() for future in futures] == [message.message_id for message in messages]


async def test_unbatched_entries(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        consumer = await client.consumer(topic, "billing")
        producer = await client.producer(topic, batching=False)
        ids = await producer.send_many([b"a", (b"b", "key"), b"c"])
        assert [message_id.batch_index for message_id in ids] == [-1, -1, -1]
        messages = await receive(consumer, 3)
        assert bodies(messages) == [b"a", b"b", b"c"]
        assert [message.key for message in messages] == [None, "key", None]


async def test_a_null_value(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing") as consumer, client.producer(topic) as producer:
            await producer.send(None, key="gone")
            message = await consumer.receive(60)
            assert (message.body, message.null_value, message.key) == (b"", True, "gone")


async def test_receive_ends_at_its_deadline(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.consumer(topic, "billing") as consumer:
        with pytest.raises(DeadlineError):
            await consumer.receive(0.05)
        assert await consumer.receive_many(10, timeout=0.05) == []


async def test_iteration_ends_when_the_consumer_is_closed(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        consumer = await client.consumer(topic, "billing")
        producer = await client.producer(topic)
        await producer.send_many([b"1", b"2"])
        got = []
        async for message in consumer:
            got.append(message.body)
            if len(got) == 2:
                await consumer.close()
        assert got == [b"1", b"2"]
        with pytest.raises(ClosedError):
            await consumer.receive(1)


async def test_what_is_not_acknowledged_comes_again(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        for kind in ("exclusive", "shared", "failover", "key_shared"):
            async with client.consumer(topic, kind, type=kind) as consumer:
                await producer.send_many([b"a", b"b", b"c"])
                messages = await receive(consumer, 3)
                await consumer.ack(messages[1])
            async with client.consumer(topic, kind, type=kind) as consumer:
                assert bodies(await receive(consumer, 2)) == [b"a", b"c"], kind


async def test_acknowledged_with_the_brokers_word(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing", type="shared") as consumer:
            await producer.send_many([b"a", b"b"])
            await consumer.ack_confirmed(await receive(consumer, 2), timeout=30)
            assert (await consumer.stats(5)).get("unackedMessages", 0) == 0


async def test_cumulative_acknowledgement(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing") as consumer:
            await producer.send_many([b"%d" % number for number in range(10)])
            messages = await receive(consumer, 10)
            await consumer.ack_cumulative(messages[6])
        async with client.consumer(topic, "billing") as consumer:
            assert bodies(await receive(consumer, 3)) == [b"7", b"8", b"9"]
        async with client.consumer(topic, "shared", type="shared") as consumer:
            with pytest.raises(ConfigError, match="message by message"):
                await consumer.ack_cumulative(messages[0])


async def test_refused_messages_come_again_counted(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing", type="shared", nack_delay=0.05) as consumer:
            await producer.send(b"again")
            consumer.nack(await consumer.receive(60))
            message = await consumer.receive(60)
            assert (message.body, message.redeliveries) == (b"again", 1)
            consumer.redeliver()
            message = await consumer.receive(60)
            assert (message.body, message.redeliveries) == (b"again", 2)
            await consumer.ack(message)


async def test_a_shared_subscription_divides(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with (
        aio.Client(pulsar.url, impl=impl) as client,
        client.producer(topic, batching=False) as producer,
    ):
        one = await client.consumer(topic, "billing", type="shared", receiver_queue=10)
        two = await client.consumer(topic, "billing", type="shared", receiver_queue=10)
        await producer.send_many([b"%d" % number for number in range(20)])
        mine, others = await receive(one, 10), await receive(two, 10)
        rest = await receive(one, 10 - len(others))  # what half a queue that was free again has drawn to it
        assert len(mine) == 10
        assert len(others) == 10 or (pulsar.real and others)
        assert sorted(bodies(mine + others + rest), key=int) == [b"%d" % number for number in range(20)]


async def test_failover_hands_over(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        members = [await client.consumer(topic, "billing", type="failover", name=name) for name in "ab"]
        await producer.send(b"1")
        # Which of them is active is the broker's business; it waits a second after the second one came.
        for _ in range(20):
            messages = [await member.receive_many(1, timeout=0.5) for member in members]
            if any(messages):
                break
        active = 0 if messages[0] else 1
        assert bodies(messages[active]) == [b"1"]
        assert messages[1 - active] == []
        await members[active].ack_confirmed(messages[active])
        await members[active].close()
        await producer.send(b"2")
        assert (await members[1 - active].receive(60)).body == b"2"


async def test_a_key_stays_with_one_consumer(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with (
        aio.Client(pulsar.url, impl=impl) as client,
        client.producer(topic, batching=False) as producer,
    ):
        one = await client.consumer(topic, "billing", type="key_shared")
        two = await client.consumer(topic, "billing", type="key_shared")
        await producer.send_many([(b"%d" % number, f"key-{number % 20}") for number in range(200)])
        mine: list[Any] = []
        others: list[Any] = []
        deadline = time.monotonic() + 30
        while len(mine) + len(others) < 200 and time.monotonic() < deadline:
            mine += await one.receive_many(200, timeout=0.2)
            others += await two.receive_many(200, timeout=0.2)
        assert len(mine) + len(others) == 200
        assert not {message.key for message in mine} & {message.key for message in others}
        for messages in (mine, others):
            for key in {message.key for message in messages}:
                numbers = [int(message.body) for message in messages if message.key == key]
                assert numbers == sorted(numbers)


async def test_the_second_of_an_exclusive_subscription_is_refused(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing"):
            with pytest.raises(BrokerError, match="already connected") as caught:
                await client.consumer(topic, "billing")
            assert caught.value.code == ServerError.ConsumerBusy
        async with client.consumer(topic, "billing"):
            pass


async def test_seek_to_a_message_and_to_a_time(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing") as consumer:
            ids = await producer.send_many([b"%d" % number for number in range(5)])
            await consumer.ack(await receive(consumer, 5))
            await consumer.seek(ids[2], timeout=30)
            assert bodies(await receive(consumer, 2)) == [b"3", b"4"]
            await consumer.seek(datetime(2020, 1, 1, tzinfo=timezone.utc), timeout=30)
            assert bodies(await receive(consumer, 5)) == [b"0", b"1", b"2", b"3", b"4"]
            await consumer.seek(4102444800000, timeout=30)
            assert await consumer.receive_many(1, timeout=0.1) == []
            assert await consumer.last_message_id(5) == ids[-1]
        async with client.consumer(topic, "at", start_inclusive=True) as consumer:
            await consumer.seek(ids[2], timeout=30)
            assert bodies(await receive(consumer, 3)) == [b"2", b"3", b"4"]


async def test_a_reader_reads_from_where_it_is_told(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.reader(topic, start="earliest") as reader:
            assert not await reader.has_message_available(5)
            assert await reader.last_message_id(5) is None
            ids = await producer.send_many([b"%d" % number for number in range(5)])
            assert await reader.has_message_available(5)
            assert bodies(await receive(reader, 5)) == [b"0", b"1", b"2", b"3", b"4"]
            assert not await reader.has_message_available(5)
        async with client.reader(topic, start=ids[1]) as reader:
            assert bodies(await receive(reader, 3)) == [b"2", b"3", b"4"]
        async with client.reader(topic, start=ids[1], start_inclusive=True) as reader:
            assert (await reader.receive(60)).body == b"1"
        async with client.reader(topic, start="latest") as reader:
            await producer.send(b"new")
            assert (await reader.receive(60)).body == b"new"


async def test_a_reader_takes_whole_entries_if_it_is_opened_for_that(
    pulsar: PulsarCluster, topic: str, impl: str
) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, batch_max_messages=3) as producer:
        await producer.send_many([b"%d" % number for number in range(7)])
        reader = await client.reader(topic, start="earliest", by_batch=True)
        async with reader:
            first = await reader.receive_batch(60)
            assert first is not None
            assert bodies(list(first)) == [b"0", b"1", b"2"]
            more = []
            async for batch in reader.batches():
                more.append(bodies(list(batch)))
                if len(more) == 2:
                    assert await reader.receive_batch(0.05) is None
                    await reader.close()
            assert more == [[b"3", b"4", b"5"], [b"6"]]
            with pytest.raises(ClosedError):
                await reader.receive_batch(1)
        async with client.reader(topic, start="earliest") as reader:
            with pytest.raises(ConfigError, match="by_batch=True"):
                await reader.receive_batch(1)
            with pytest.raises(ConfigError, match="by_batch=True"):
                async for _ in reader.batches():
                    pass
            assert len(await receive(reader, 7)) == 7


async def test_what_is_no_message_is_refused_and_those_before_it_are_acknowledged(
    pulsar: PulsarCluster, topic: str, impl: str
) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=False) as producer:
        consumer = await client.consumer(topic, "billing", ack_grouping=0)
        async with consumer:
            assert consumer.subscription == "billing"
            await producer.send_many([b"0", b"1", b"2"])
            messages = await receive(consumer, 3)
            wrong: Any = "2"
            with pytest.raises(TypeError, match="not '2'"):
                await consumer.ack(wrong)
            with pytest.raises(TypeError, match="not '2'"):
                await consumer.ack([*messages[:2], wrong])
            assert consumer.diagnose()["acks_waiting"] == 0  # they are told at once, not only by the close
        with pytest.raises(ClosedError):
            await consumer.receive(1)
        async with client.consumer(topic, "billing") as consumer:
            assert bodies(await receive(consumer, 1)) == [b"2"]


async def test_paused_consumers_ask_for_no_more(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing", receiver_queue=10) as consumer:
            consumer.pause()
            await producer.send_many([b"%d" % number for number in range(30)])
            first = await receive(consumer, 30)
            assert len(first) == 30  # one entry: it is not split, the account at the broker dips below zero
            await producer.send(b"later")
            assert await consumer.receive_many(1, timeout=0.1) == []
            consumer.resume()
            assert (await consumer.receive(60)).body == b"later"


async def test_the_account_is_shown(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.consumer(topic, "billing", receiver_queue=100) as consumer:
            await producer.send_many([b"x"] * 70)
            await receive(consumer, 60)
            shown = consumer.diagnose()["permits"]
            assert shown["window"] == 100 == shown["at_broker"] + shown["here"] + shown["released"]
            assert (shown["arrived"], shown["granted"], shown["flows"]) == (70, 160, 2)
            assert client.diagnose()["connections"][0]["state"] == "ready"
            assert producer.diagnose()["messages"] == 70


async def test_unsubscribe_deletes(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        consumer = await client.consumer(topic, "billing")
        await producer.send(b"1")
        await consumer.unsubscribe()
        async with client.consumer(topic, "billing") as consumer:
            assert await consumer.receive_many(1, timeout=0.1) == []


async def test_an_unloaded_topic_is_found_again(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        async with client.consumer(topic, "billing") as consumer, client.producer(topic) as producer:
            await producer.send(b"before")
            await consumer.ack_confirmed(await consumer.receive(60))
            pulsar.unload(topic)
            assert await producer.send(b"after", timeout=20)
            message = await consumer.receive(60)
            if pulsar.real and message.body == b"before":
                # Race: a real broker confirms a subscription's first acknowledgement while it still makes the ledger
                # that is to hold it, and an unload in between loses it (4.2.4: 5 of 150, its cursor in NoLedger).
                message = await consumer.receive(60)
            assert message.body == b"after"
            epoch = consumer.diagnose()["epoch"]
            assert epoch == 2 or (pulsar.real and epoch > 2), "a real one may not be ready at the first try"


async def test_a_wrong_token_is_an_error_at_once(topic: str, impl: str) -> None:
    with EmbeddedBroker(doors=["pulsar"], impl="pure", pulsar_token="right") as broker:
        async with aio.Client(broker.pulsar_url, auth=token("wrong"), impl=impl) as client:
            with pytest.raises(BrokerError) as caught:
                await client.producer(topic, timeout=30)
            assert caught.value.code == ServerError.AuthenticationError
        async with aio.Client(broker.pulsar_url, auth=token(lambda: "right"), impl=impl) as client:
            async with client.producer(topic) as producer:
                assert await producer.send(b"x", timeout=30)


async def test_mistakes_name_the_cure(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    with pytest.raises(ConfigError, match="pulsar://"):
        aio.Client("127.0.0.1:6650", impl=impl)
    async with aio.Client(pulsar.url, impl=impl) as client:
        with pytest.raises(ConfigError, match="receiver_queue"):
            await client.consumer(topic, "billing", reciever_queue=5)  # type: ignore[call-arg]
        async with client.producer(topic) as producer:
            wrong: Any = "text"
            with pytest.raises(TypeError, match="encode"):
                await producer.send(wrong)
            with pytest.raises(MQError, match="broker takes"):
                await producer.send(bytes(6 << 20))
            assert await producer.send(b"and it goes on", timeout=30)
        with pytest.raises(ClosedError):
            await producer.send(b"x")


async def test_nobody_there(impl: str) -> None:
    async with aio.Client("pulsar://127.0.0.1:1", impl=impl) as client:
        with pytest.raises(LinkError, match=r"127\.0\.0\.1:1"):
            await client.ping(timeout=5)


async def test_a_closed_client_says_so(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    client = aio.Client(pulsar.url, impl=impl)
    assert "Pulsar Server" in await client.ping(5)
    await client.close()
    with pytest.raises(ClosedError):
        await client.producer(topic)


async def test_cancelled_receives_lose_nothing(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """Whoever gives up a receive takes no message along, and no permit."""
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic, batching=False) as producer:
        async with client.consumer(topic, "billing", receiver_queue=10) as consumer:
            got: list[bytes] = []
            for number in range(100):
                future = producer.submit(b"%d" % number)
                while not future.done() or len(got) <= number:
                    try:
                        got.append((await consumer.receive(0.0005)).body)
                    except DeadlineError:
                        continue
            assert got == [b"%d" % number for number in range(100)]
            shown = consumer.diagnose()["permits"]
            assert shown["window"] == 10 == shown["at_broker"] + shown["here"] + shown["released"]
            assert shown["arrived"] == 100

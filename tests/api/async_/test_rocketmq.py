"""The RocketMQ faces over the embedded broker: what is sent is received, by every way in and out."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mqclient.broker import EmbeddedBroker
from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError
from mqclient.rocketmq.aio import Client, Message, PartialSendError
from tests.support.seen import unique


@pytest.fixture(name="broker", scope="module")
def broker_fixture() -> Iterator[EmbeddedBroker]:
    """Two brokers behind one name server."""
    with EmbeddedBroker(doors=["rocketmq"], brokers=2, impl="pure") as broker:
        yield broker


async def test_a_message_is_sent_and_pulled(broker: EmbeddedBroker, impl: str) -> None:
    topic = unique("orders")
    async with Client(broker.name_server, impl=impl) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, queues=2)
        async with client.producer("order-service") as producer:
            receipt = await producer.send(
                Message(topic, b"hello", tag="paid", keys=["42", "43"], properties={"a": "b"})
            )
        async with client.pull_consumer(unique("report"), topic, start="first") as consumer:
            message = await consumer.receive(timeout=60)
        assert (message.body, message.tag, message.keys) == (b"hello", "paid", ("42", "43"))
        assert (message.queue, message.offset, message.message_id) == (
            receipt.queue,
            receipt.offset,
            receipt.message_id,
        )
        assert message.property("a") == "b"
        assert receipt.ok


async def test_many_are_sent_in_batches_and_come_in_order(broker: EmbeddedBroker, impl: str) -> None:
    topic = unique("many")
    async with Client(broker.name_server, impl=impl) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, queues=1)
        async with client.producer("sender") as producer:
            results = await producer.send_many([Message(topic, b"%d" % number) for number in range(500)])
        assert all(result.ok for result in results)
        places = {(result.queue, result.offset) for result in results}  # type: ignore[union-attr]
        assert len(places) == 500
        got: list[bytes] = []
        async with client.pull_consumer(unique("group"), topic, start="first") as consumer:
            async for batch in consumer.batches(max_messages=100):
                assert len(batch) <= 100
                got += [message.body for message in batch]
                if len(got) == 500:
                    break
        assert sorted(got) == sorted(b"%d" % number for number in range(500))


async def test_same_key_same_queue(broker: EmbeddedBroker, impl: str) -> None:
    topic = unique("keyed")
    async with Client(broker.name_server, impl=impl) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, queues=4)
        async with client.producer("keyed") as producer:
            for key in ("customer-1", "customer-2", "polygenelubricants"):
                receipts = [await producer.send(Message(topic, b"x"), key=key) for _ in range(3)]
                assert len({receipt.queue for receipt in receipts}) == 1


async def test_a_topic_that_is_not_there_is_made_by_the_first_message(broker: EmbeddedBroker, impl: str) -> None:
    async with (
        Client(broker.name_server, impl=impl) as client,
        client.producer("first") as producer,
    ):
        receipt = await producer.send(Message(unique("new"), b"x"))
        assert receipt.status == "SEND_OK"


async def test_oneway_and_submit(broker: EmbeddedBroker, impl: str) -> None:
    topic, group = unique("futures"), unique("group")
    async with Client(broker.name_server, impl=impl) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, queues=1)
        async with (
            client.producer("futures") as producer,
            client.pull_consumer(group, topic, start="first") as consumer,
        ):
            await producer.send_oneway(Message(topic, b"oneway"))
            assert (await consumer.receive(timeout=60)).body == b"oneway"
            future = producer.submit(Message(topic, b"future"))
            message = await consumer.receive(timeout=60)
            assert future.done()
            assert (message.body, message.message_id) == (b"future", future.result().message_id)


async def test_what_was_taken_is_committed(broker: EmbeddedBroker, impl: str) -> None:
    topic, group = unique("progress"), unique("group")
    async with Client(broker.name_server, impl=impl) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, queues=1)
        async with client.producer("p") as producer:
            await producer.send_many([Message(topic, b"%d" % number) for number in range(10)])
        seen = []
        async with client.pull_consumer(group, topic, start="first") as consumer:
            seen += [message.body for message in await consumer.receive_many(4, timeout=5)]
            await consumer.commit()
            (queue,) = [queue for queue in consumer.queues if await consumer.committed(queue)]
            assert await consumer.committed(queue) == 4
            assert (await consumer.lag())[queue] == 6
        async with client.pull_consumer(group, topic, start="first") as consumer:
            while len(seen) < 10:
                seen += [message.body for message in await consumer.receive_many(100, timeout=5)]
        assert seen == [b"%d" % number for number in range(10)]


async def test_nothing_comes_in_time(broker: EmbeddedBroker, impl: str) -> None:
    topic = unique("silence")
    async with Client(broker.name_server, impl=impl) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, queues=1)
        async with client.pull_consumer(unique("group"), topic) as consumer:
            with pytest.raises(DeadlineError):
                await consumer.receive(timeout=0.05)
            assert await consumer.receive_many(timeout=0.05) == []
            assert await consumer.receive_batch(timeout=0.05) is None


async def test_what_is_wrong_is_said_before_anything_is_sent(broker: EmbeddedBroker, impl: str) -> None:
    async with Client(broker.name_server, impl=impl) as client:
        producer = await client.producer("careful")
        with pytest.raises(ConfigError, match="illegal characters"):
            await producer.send(Message("no such!", b"x"))
        with pytest.raises(ConfigError, match="empty body"):
            await producer.send(Message("orders", b""))
        broker.control.answer("SEND_MESSAGE_V2", 29, "no")
        messages = [Message(unique("t"), b"x"), Message(unique("t"), b"x", delay_level=1)]
        with pytest.raises(PartialSendError, match="1 of 2"):
            await producer.send_many(messages, raise_on_error=True)
        await producer.close()
        with pytest.raises(ClosedError):
            await producer.send(Message("orders", b"x"))


async def test_an_unknown_option_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'route_interval'"):
        Client("127.0.0.1:1", impl="pure", route_intervall=1)  # type: ignore[call-arg]


async def test_positions_are_moved_and_queues_paused(broker: EmbeddedBroker, impl: str) -> None:
    topic, group = unique("moved"), unique("g")
    async with Client(broker.name_server, impl=impl) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, queues=1)
        async with client.producer("p") as producer:
            receipts = [await producer.send(Message(topic, b"%d" % number), key="k") for number in range(4)]
        queue = receipts[0].queue
        async with client.pull_consumer(group, topic, start="first") as consumer:
            assert (await consumer.receive(timeout=60)).body == b"0"
            consumer.seek(queue, 3)
            assert (await consumer.receive(timeout=60)).body == b"3"
            consumer.pause([queue])
            async with client.producer("late") as producer:
                await producer.send(Message(topic, b"held back"), queue=queue)
                await consumer.receive_many(timeout=0.1)  # what the pull under way had asked for
                await producer.send(Message(topic, b"later"), queue=queue)
            assert await consumer.receive_many(timeout=0.2) == []
            consumer.resume(consumer.queues)
            assert (await consumer.receive(timeout=60)).body == b"later"
            assert consumer.diagnose()["group"] == group


async def test_iteration_ends_with_the_consumer(broker: EmbeddedBroker, impl: str) -> None:
    topic = unique("ends")
    async with Client(broker.name_server, impl=impl) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, queues=1)
        async with client.producer("p") as producer:
            await producer.send_many([Message(topic, b"x")] * 3)
        got = 0
        consumer = await client.pull_consumer(unique("g"), topic, start="first")
        async for _ in consumer:
            got += 1
            if got == 3:
                await consumer.close()
        async for _ in consumer.batches():
            got += 100
        assert got == 3


async def test_a_client_tells_about_itself(broker: EmbeddedBroker, impl: str) -> None:
    topic = unique("shown")
    async with Client(broker.name_server, impl=impl, client_id="me@1") as client:
        await client.ping()
        assert client.client_id == "me@1"
        async with client.admin() as admin, client.producer("makers") as producer:
            await admin.create_topic(topic, queues=1)
            assert topic in await admin.topics()
            assert producer.group == "makers"
            await producer.send(Message(topic, b"x"))
            state = client.diagnose()
            assert state["producers"] == ["makers"]
            assert "open" in state["links"].values()
            report = await admin.reset_offset(unique("g"), topic, "earliest", dry_run=True)
            assert set(report.offsets.values()) == {0}


async def test_nobody_there_is_said_with_the_address(impl: str) -> None:
    client = Client("127.0.0.1:1", impl=impl)
    with pytest.raises(LinkError, match=r"127\.0\.0\.1:1"):
        await client.ping()
    await client.close()

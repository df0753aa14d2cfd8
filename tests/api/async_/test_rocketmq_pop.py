"""Pop consumers: messages lent for a while, to whoever asks."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mqclient.errors import ClosedError, ConfigError, DeadlineError, MQError
from mqclient.rocketmq.aio import Client, Message, Popped, Sql
from tests.api.conftest import RocketMQCluster
from tests.support.seen import unique

WITHIN = 60.0


async def filled(client: Client, topic: str, count: int, **options: Any) -> None:
    """A topic of two brokers with so many messages."""
    async with client.admin() as admin:
        await admin.create_topic(topic, 2)
    async with client.producer(unique("p")) as producer:
        for number in range(count):
            await producer.send(Message(topic, b"%d" % number, **options))


async def test_many_share_a_topic_and_each_message_comes_once(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group = unique("jobs"), unique("g")
    async with Client(rocketmq.name_server, impl=impl) as one, Client(rocketmq.name_server, impl=impl) as two:
        await filled(one, topic, 20, tag="t", keys=["k"])
        got: list[Popped] = []
        async with one.pop_consumer(group, topic) as first, two.pop_consumer(group, topic) as second:
            until = time.monotonic() + WITHIN
            while len(got) < 20:
                assert time.monotonic() < until
                for consumer in (first, second):
                    messages = await consumer.receive_many(4, timeout=0.1)
                    await consumer.ack(messages)
                    got += messages
            assert await first.receive_many(timeout=0.1) == []
            with pytest.raises(DeadlineError):
                await second.receive(timeout=0.1)
        assert sorted(message.body for message in got) == sorted(b"%d" % number for number in range(20))
        assert {(message.topic, message.tag, message.keys, message.attempts) for message in got} == {
            (topic, "t", ("k",), 0)
        }
        assert {message.queue.broker_name for message in got} == {"broker-a", "broker-b"}


async def test_what_is_given_back_comes_again_and_what_is_kept_does_not(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group = unique("jobs"), unique("g")
    async with Client(rocketmq.name_server, impl=impl) as client:
        await filled(client, topic, 2)
        async with client.pop_consumer(group, topic, invisible=10.0) as consumer:
            one = await consumer.receive(timeout=WITHIN)
            two = await consumer.receive(timeout=WITHIN)
            kept = await consumer.change_invisible(two, 120.0)
            assert kept.expires_ms > two.expires_ms + 60_000
            await consumer.change_invisible(one, 1.0)
            again = await consumer.receive(timeout=WITHIN)
            assert (again.body, again.topic, again.attempts) == (one.body, topic, 1)
            await consumer.ack([again, kept])
            assert await consumer.receive_many(timeout=0.1) == []


async def test_tags_and_sql(rocketmq: RocketMQCluster, impl: str) -> None:
    topic = unique("jobs")
    async with Client(rocketmq.name_server, impl=impl) as client:
        await filled(client, topic, 2, tag="a", properties={"n": "1"})
        async with client.producer(unique("p")) as producer:
            await producer.send(Message(topic, b"wanted", tag="b", properties={"n": "5"}))
        for expression in ("b || c", Sql("n > 3")):
            async with client.pop_consumer(unique("g"), topic, expression=expression) as consumer:
                message = await consumer.receive(timeout=WITHIN)
                assert message.body == b"wanted"
                await consumer.ack(message)


async def test_what_is_wrong_is_said(rocketmq: RocketMQCluster, impl: str) -> None:
    topic = unique("jobs")
    async with Client(rocketmq.name_server, impl=impl) as client:
        with pytest.raises(MQError):
            await client.pop_consumer(unique("g"), unique("nowhere"))
        await filled(client, topic, 1)
        with pytest.raises(ConfigError, match="5 to 300 seconds"):
            client.pop_consumer(unique("g"), topic, invisible=1.0)
        with pytest.raises(ConfigError, match="did you mean 'invisible'"):
            client.pop_consumer(unique("g"), topic, invisble=10.0)  # type: ignore[call-arg]
        consumer = await client.pop_consumer(unique("g"), topic)
        async for message in consumer:
            await consumer.ack(message)
            break
        assert consumer.diagnose()["topic"] == topic
        await consumer.close()
        async for message in consumer:
            pytest.fail(f"closed, it gave {message}")
        with pytest.raises(ClosedError):
            await consumer.receive(timeout=1.0)


async def test_closing_while_a_broker_is_still_asked_is_no_warning(
    rocketmq: RocketMQCluster, impl: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = unique("jobs")
    async with Client(rocketmq.name_server, impl=impl) as client:
        await filled(client, topic, 0)
        async with client.pop_consumer(unique("g"), topic) as consumer:
            assert await consumer.receive_many(timeout=0.2) == []
    assert [record for record in caplog.records if record.levelname not in ("DEBUG", "INFO")] == []

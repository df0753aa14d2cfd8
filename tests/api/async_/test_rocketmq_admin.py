"""Administration: who is there, how far they are, which messages there are, and another chance for dead ones."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mqclient.errors import ConfigError, MQError
from mqclient.rocketmq.aio import Client, Message, MessageQueue, Retry, Sql
from tests.api.conftest import RocketMQCluster
from tests.support.pace.aio import sleep
from tests.support.seen import unique

WITHIN = 40.0


async def filled(client: Client, topic: str, count: int, **options: Any) -> list[Any]:
    """A topic with so many messages in its first queue: their receipts."""
    async with client.admin() as admin:
        await admin.create_topic(topic, 1)
        queue = min(await admin.offsets(topic))
    async with client.producer(unique("p")) as producer:
        messages = [Message(topic, b"%d" % number, **options) for number in range(count)]
        return [await producer.send(message, queue=queue) for message in messages]


async def ignore(messages: Any) -> None:
    """A handler that likes everything."""


async def test_the_cluster_and_its_topics(rocketmq: RocketMQCluster, impl: str) -> None:
    topic = unique("orders")
    async with Client(rocketmq.name_server, impl=impl) as client, client.admin() as admin:
        brokers = await admin.cluster()
        assert [broker.name for broker in brokers] == ["broker-a", "broker-b"]
        until = time.monotonic() + WITHIN
        while not all(broker.version for broker in brokers):  # a young one does not tell it yet
            assert time.monotonic() < until
            await sleep(0.05)
            brokers = await admin.cluster()
        assert (await admin.broker_config("broker-a"))["enablePropertyFilter"] == "true"
        with pytest.raises(ConfigError, match="there is no broker 'broker-z': broker-a, broker-b"):
            await admin.broker_config("broker-z")
        await admin.create_topic(topic, 1)
        assert topic in await admin.topics()
        await admin.delete_topic(topic)
        until = time.monotonic() + WITHIN
        while topic in await admin.topics():
            assert time.monotonic() < until
            await sleep(0.05)


async def test_groups_their_members_and_their_progress(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group, other = unique("orders"), unique("g"), unique("g")
    async with Client(rocketmq.name_server, impl=impl) as client, client.admin() as admin:
        (first, *_) = await filled(client, topic, 5)
        await admin.create_group(other, retryMaxTimes=3)
        assert other in await admin.groups()
        async with client.push_consumer(group, topic, ignore, start="first") as consumer:
            until = time.monotonic() + WITHIN
            while consumer.diagnose()["handled"] < 5:
                assert time.monotonic() < until
                await sleep(0.01)
            members = await admin.connections(group)
            assert {member.client_id for member in members} == {client.client_id}
            assert {member.language for member in members} == {"PYTHON"}
            info = await admin.running_info(group, client.client_id)
            assert info["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
            assert info["mqTable"][first.queue]["commitOffset"] == 5
            offsets = await admin.member_offsets(group, topic)
            assert offsets[client.client_id][first.queue] == 5
        progress = (await admin.progress(group, topic))[first.queue]
        assert (progress.end, progress.consumed, progress.lag) == (5, 5, 0)
        await admin.clone_offsets(group, other, topic)
        assert (await admin.progress(other, topic))[first.queue].consumed == 5
        with pytest.raises(MQError):
            await admin.connections(group)
        await admin.delete_group(other, forget_offsets=True)
        assert other not in await admin.groups()


async def test_messages_are_found_by_id_key_and_time(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, key = unique("orders"), unique("k")
    async with Client(rocketmq.name_server, impl=impl) as client, client.admin() as admin:
        before = int(time.time() * 1000) - 1000
        receipts = await filled(client, topic, 3, keys=[key, "other"], tag="t")
        found = await admin.message(topic, receipts[1].offset_id)
        assert (found.body, found.queue, found.offset) == (b"1", receipts[1].queue, 1)
        until = time.monotonic() + WITHIN
        while len(await admin.messages_by_key(topic, key)) < 3:  # brokers index a moment later
            assert time.monotonic() < until
            await sleep(0.05)
        assert [one.body for one in await admin.messages_by_key(topic, key)] == [b"0", b"1", b"2"]
        assert (await admin.message(topic, receipts[2].message_id)).body == b"2"
        assert await admin.messages_by_key(topic, "nobody") == []
        with pytest.raises(ConfigError, match="has no message"):
            await admin.message(topic, "0" * 32)
        assert [one.body for one in await admin.messages_by_time(topic, before)] == [b"0", b"1", b"2"]
        assert await admin.messages_by_time(topic, "first", before) == []
        assert len(await admin.messages_by_time(topic, "first", limit=2)) == 2


async def test_dead_letters_get_another_chance(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group = unique("orders"), unique("g")
    seen: list[tuple[bytes, str, int]] = []
    broken = [True]

    async def handle(messages: Any) -> None:
        if broken[0]:
            raise Retry(level=-1)
        seen.extend((message.body, message.topic, message.attempts) for message in messages)

    async with Client(rocketmq.name_server, impl=impl) as client, client.admin() as admin:
        await filled(client, topic, 2, tag="t", properties={"a": "b"})
        async with client.push_consumer(group, topic, handle, start="first", batch=1):
            until = time.monotonic() + WITHIN
            letters: list[Any] = []
            while len(letters) < 2:
                assert time.monotonic() < until
                await sleep(0.05)
                if f"%DLQ%{group}" in await admin.topics():
                    letters = await admin.messages_by_time(f"%DLQ%{group}", "first")
            broken[0] = False
            outcomes = await admin.resend_dead_letters(group)
            assert [outcome.ok for outcome in outcomes] == [True, True]
            while len(seen) < 2:
                assert time.monotonic() < until
                await sleep(0.05)
            assert sorted(seen) == [(b"0", topic, 0), (b"1", topic, 0)]
            outcomes = await admin.resend_dead_letters(group, limit=1, to="topic")
            assert len(outcomes) == 1
            while len(seen) < 3:
                assert time.monotonic() < until
                await sleep(0.05)
        with pytest.raises(ConfigError, match="'group' or 'topic'"):
            await admin.resend_dead_letters(group, to="moon")


async def test_a_member_consumes_at_our_wish(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group = unique("orders"), unique("g")
    seen: list[tuple[bytes, MessageQueue]] = []

    async def handle(messages: Any) -> None:
        seen.extend((message.body, message.queue) for message in messages)
        if len(seen) == 2:
            raise ValueError("not again")

    async with Client(rocketmq.name_server, impl=impl) as client, client.admin() as admin:
        (receipt,) = await filled(client, topic, 1)
        async with client.push_consumer(group, topic, handle, start=int(time.time() * 1000) + 60_000):
            message = await admin.message(topic, receipt.offset_id)
            results = [await admin.consume_directly(group, client.client_id, message) for _ in range(2)]
        assert [result["consumeResult"] for result in results] == ["CR_SUCCESS", "CR_THROW_EXCEPTION"]
        assert seen == [(b"0", receipt.queue)] * 2


async def test_places_by_time_and_a_group_that_keeps_its_place_elsewhere(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group = unique("orders"), unique("g")
    async with Client(rocketmq.name_server, impl=impl) as client, client.admin() as admin:
        (first, *_) = await filled(client, topic, 3)
        await sleep(0.05)
        between = time.time() * 1000
        await sleep(0.05)
        async with client.producer(unique("p")) as producer:
            await producer.send(Message(topic, b"later"), queue=first.queue)
        assert (await admin.offsets_at(topic, between))[first.queue] == 3
        assert (await admin.offsets_at(topic, "first"))[first.queue] == 0
        assert (await admin.offsets_at(topic, "last"))[first.queue] == 4
        await admin.create_group(group)
        await admin.commit_offsets(group, {first.queue: 3})
        assert (await admin.offsets(topic, group))[first.queue]["committed"] == 3
        progress = await admin.progress(group, topic)
        assert progress[first.queue].lag == 1


async def test_tags_and_properties_choose_within_ranges_that_were_assigned(
    rocketmq: RocketMQCluster, impl: str
) -> None:
    topic = unique("orders")
    async with Client(rocketmq.name_server, impl=impl) as client:
        (first, *_) = await filled(client, topic, 2, tag="paid", properties={"n": "7"})
        async with client.producer(unique("p")) as producer:
            for _ in range(3):
                await producer.send(Message(topic, b"x", tag="void"), queue=first.queue)
        for expression in ("paid || other", Sql("n > 5")):
            found = []
            async with client.pull_consumer(
                unique("g"), assign={first.queue: (0, 5)}, expression=expression
            ) as consumer:
                async for batch in consumer.batches():
                    found += [message.offset for message in batch]
                assert consumer.ended
                assert await consumer.receive_batch(timeout=WITHIN) is None
            assert found == [0, 1], expression

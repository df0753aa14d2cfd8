"""A namespace's topics and groups are its own in all that a client does; brokers know them as Java names them."""

from __future__ import annotations

import time
from typing import Any

from mqclient.rocketmq.aio import Client, Message, MessageQueue
from tests.api.conftest import RocketMQCluster
from tests.support.pace.aio import sleep
from tests.support.seen import unique

WITHIN = 60.0


async def eventually(holds: Any) -> None:
    until = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < until, "not so in time"
        await sleep(0.01)


class Seen:
    """A handler that notes what it got, and fails on each message once if it is told to."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.got: list[tuple[bytes, str, int]] = []

    async def __call__(self, messages: Any) -> None:
        for message in messages:
            self.got.append((message.body, message.topic, message.attempts))
        if self.fails and not messages[0].attempts:
            raise ValueError("not yet")


async def test_equal_names_of_two_namespaces_have_nothing_in_common(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group = unique("orders"), unique("g")
    shop, bank, nobody = Seen(fails=True), Seen(), Seen()
    async with (
        Client(rocketmq.name_server, impl=impl, namespace="shop") as in_shop,
        Client(f"rocketmq://{rocketmq.name_server}/bank", impl=impl) as in_bank,
        Client(rocketmq.name_server, impl=impl) as outside,
    ):
        for client, body in ((in_shop, b"shop"), (in_bank, b"bank"), (outside, b"nobody")):
            async with client.admin() as admin:
                await admin.create_topic(topic, 1)
            async with client.producer(unique("p")) as producer:
                receipt = await producer.send(Message(topic, body, keys=["k"]))
                assert receipt.topic == topic
        options: dict[str, Any] = {"start": "first", "retry_levels": [1], "batch": 1}
        async with (
            in_shop.push_consumer(group, topic, shop, **options) as consumer,
            in_bank.push_consumer(group, topic, bank, **options),
            outside.push_consumer(group, topic, nobody, **options),
        ):
            await eventually(lambda: len(shop.got) == 2 and bank.got and nobody.got)
            assert {queue.topic for queue in consumer.diagnose()["queues"]} == {topic, f"%RETRY%{group}"}
            async with in_shop.admin() as admin:
                info = await admin.running_info(group, in_shop.client_id)
                (found,) = await admin.messages_by_key(topic, "k")
        assert shop.got == [(b"shop", topic, 0), (b"shop", topic, 1)]
        assert (bank.got, nobody.got) == ([(b"bank", topic, 0)], [(b"nobody", topic, 0)])
        assert set(info["statusTable"]) == {topic, f"%RETRY%{group}"}
        assert (found.body, found.topic) == (b"shop", topic)
        async with outside.admin() as admin:
            ends = await admin.offsets(f"shop%{topic}", f"shop%{group}")
            assert sum(one["committed"] or 0 for one in ends.values()) == 1
            assert f"%RETRY%shop%{group}" in await admin.topics()


async def test_orderly_popped_and_asked_in_a_namespace(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group, seen = unique("orders"), unique("g"), Seen()
    async with Client(rocketmq.name_server, impl=impl, namespace="shop") as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, 2)
            queues = sorted(await admin.offsets(topic))
        async with client.producer(unique("p")) as producer:
            messages = [Message(topic, b"%02d" % number) for number in range(20)]
            results = await producer.send_many(messages, key=lambda message: "one")
            assert {getattr(result, "topic", result) for result in results} == {topic}
            async with client.push_consumer(group, topic, seen, start="first", orderly=True):
                await eventually(lambda: len(seen.got) == 20)
            assert [body for body, _, _ in seen.got] == [b"%02d" % number for number in range(20)]
            async with client.pop_consumer(unique("g"), topic) as popping:
                jobs = await popping.receive_many(1, timeout=WITHIN)
                await popping.change_invisible(jobs[0], 1.0)
                while not (jobs := await popping.receive_many(20, timeout=WITHIN))[0].attempts:
                    await popping.ack(jobs)
                assert {job.topic for job in jobs} == {topic}  # out of the retry topic of who pops
                await popping.ack(jobs)
            begin: dict[MessageQueue, Any] = dict.fromkeys(queues, 0)
            async with client.pull_consumer(unique("g"), assign=begin) as reading:
                first = await reading.receive(timeout=WITHIN)
                assert first.topic == topic


async def test_requests_and_replies_in_a_namespace(rocketmq: RocketMQCluster, impl: str) -> None:
    topic = unique("questions")
    async with (
        Client(rocketmq.name_server, impl=impl, namespace="shop") as client,
        Client(rocketmq.name_server, impl=impl, namespace="shop") as other,
        client.producer(unique("askers")) as asker,
        other.producer(unique("helpers")) as helper,
    ):
        async with client.admin() as admin:
            await admin.create_topic(topic, 1)

        async def handle(messages: Any) -> None:
            for message in messages:
                await helper.reply(message, b'{"topic":"shop%orders"}', timeout=10)

        async with other.push_consumer(unique("service"), topic, handle, start="first"):
            reply = await asker.request(Message(topic, b"?"), timeout=WITHIN)
    assert reply.body == b'{"topic":"shop%orders"}'

"""Push consumers' manners: what comes again and when, positions, pauses, rates, filters, limits, the end."""

from __future__ import annotations

import time
from contextvars import ContextVar
from typing import Any

import pytest

from mqclient.errors import MQError
from mqclient.rocketmq.aio import Client, Limits, Message, MessageQueue, Retry, Sql
from tests.api.conftest import RocketMQCluster
from tests.support.pace.aio import Event, sleep
from tests.support.seen import unique

WITHIN = 40.0
TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


async def filled(client: Client, topic: str, count: int) -> MessageQueue:
    """A topic with so many messages in one queue: which one."""
    async with client.admin() as admin:
        await admin.create_topic(topic, 1)
        queue = min(await admin.offsets(topic))
    await more(client, queue, count)
    return queue


async def more(client: Client, queue: MessageQueue, count: int, first: int = 0) -> None:
    async with client.producer(unique("p")) as producer:
        for number in range(first, first + count):
            assert (await producer.send(Message(queue.topic, b"%d" % number), queue=queue)).ok


async def eventually(holds: Any) -> None:
    until = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < until, "not so in time"
        await sleep(0.01)


async def test_only_what_the_handler_names_comes_again_by_its_delay(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group, done = unique("orders"), unique("g"), Event()
    seen: list[tuple[bytes, int]] = []

    async def handle(messages: Any) -> None:
        seen.extend((message.body, message.attempts) for message in messages)
        again = [message for message in messages if message.body == b"1" and message.attempts == 0]
        if again:
            raise Retry(again)
        if seen[-1][1]:
            done.set()

    async with Client(rocketmq.name_server, impl=impl) as client:
        await filled(client, topic, 3)
        async with client.push_consumer(group, topic, handle, start="first", retry_levels=[1]) as consumer:
            await done.wait(WITHIN)
            await eventually(lambda: consumer.diagnose()["handled"] == 3)
            assert consumer.diagnose()["failed"] == 1
    assert sorted(seen) == [(b"0", 0), (b"1", 0), (b"1", 1), (b"2", 0)]


async def test_positions_and_pauses(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group = unique("orders"), unique("g")
    seen: list[bytes] = []

    async def handle(messages: Any) -> None:
        seen.extend(message.body for message in messages)

    async with Client(rocketmq.name_server, impl=impl) as client:
        queue = await filled(client, topic, 3)
        await sleep(0.05)
        middle = int(time.time() * 1000)
        await sleep(0.05)
        await more(client, queue, 2, first=3)
        async with client.push_consumer(group, topic, handle, start=middle) as consumer:
            await eventually(lambda: len(seen) == 2)
            assert sorted(seen) == [b"3", b"4"]
            seen.clear()
            consumer.seek(queue, 1)
            await eventually(lambda: len(seen) == 4)
            seen.clear()
            assert (await consumer.seek_to_time(middle))[queue] == 3
            await eventually(lambda: len(seen) == 2)
            consumer.pause()
            await more(client, queue, 1, first=5)
            await sleep(0.3)
            assert sorted(seen) == [b"3", b"4"]
            assert consumer.diagnose()["queues"][queue]["paused"]
            consumer.resume()
            await eventually(lambda: len(seen) == 3)


async def test_sql_selects_by_properties(rocketmq: RocketMQCluster, impl: str) -> None:
    topic = unique("sql")
    seen: list[bytes] = []

    async def handle(messages: Any) -> None:
        seen.extend(message.body for message in messages)

    async with Client(rocketmq.name_server, impl=impl) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, 1)
        async with client.producer(unique("p")) as producer:
            for region, amount in (("eu", "5"), ("eu", "50"), ("us", "500")):
                message = Message(topic, f"{region}{amount}".encode(), properties={"region": region, "amount": amount})
                await producer.send(message)
        expression = Sql("region = 'eu' AND amount > 10")
        async with client.push_consumer(unique("g"), {topic: expression}, handle, start="first"):
            await eventually(lambda: len(seen) == 1)
        assert seen == [b"eu50"]
        async with client.pull_consumer(unique("g"), {topic: Sql("amount > 10")}, start="first") as consumer:
            got = [(await consumer.receive(timeout=WITHIN)).body for _ in range(2)]
        assert sorted(got) == [b"eu50", b"us500"]
        with pytest.raises(MQError, match="amount >"):
            await client.push_consumer(unique("g"), {topic: Sql("amount > ")}, handle)


async def test_what_a_client_holds_is_limited(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, go_on = unique("orders"), Event()
    most: list[int] = []

    async def handle(messages: Any) -> None:
        await go_on.wait(WITHIN)

    async with Client(rocketmq.name_server, impl=impl, cache_limits=Limits(count=10)) as client:
        async with client.admin() as admin:
            await admin.create_topic(topic, 2)
            queues = sorted(await admin.offsets(topic))
        for queue in queues:
            await more(client, queue, 20)
        async with client.push_consumer(
            unique("g"), topic, handle, start="first", pull_batch=4, batch=4, threads=2
        ) as consumer:
            for _ in range(20):
                held = [state["cached"] for state in consumer.diagnose()["queues"].values()]
                most.append(sum(held))
                await sleep(0.02)
            # Pulls that were under way when the limit was reached still come: one of four messages for each queue.
            assert 10 < max(most) <= 10 + 4 * len(queues)
            go_on.set()
            await eventually(lambda: consumer.diagnose()["handled"] == 20 * len(queues))


async def test_the_end_has_a_deadline_and_a_report(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group, began, go_on = unique("orders"), unique("g"), Event(), Event()

    async def handle(messages: Any) -> None:
        if messages[0].body == b"1":
            began.set()
            await go_on.wait(WITHIN)

    async with Client(rocketmq.name_server, impl=impl) as client:
        queue = await filled(client, topic, 4)
        consumer = await client.push_consumer(group, topic, handle, start="first", batch=1, threads=1)
        await began.wait(WITHIN)
        oldest = consumer.diagnose()["oldest"]
        assert (oldest["queue"], oldest["offset"]) == (queue, 1)
        assert any("handle" in line for line in oldest["stack"])
        report = await consumer.close(grace=0.2)
        go_on.set()
        assert (report.finished, report.handled, report.unhandled) == (False, 1, 3)
        assert len(report.running) == 1
        assert await consumer.close() == report
        async with client.admin() as admin:
            assert (await admin.offsets(topic, group))[queue]["committed"] == 1


async def test_run_ends_when_somebody_closes(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, seen = unique("orders"), []

    async with Client(rocketmq.name_server, impl=impl) as client:
        await filled(client, topic, 1)

        async def handle(messages: Any) -> None:
            seen.append((len(messages), TENANT.get()))

        consumer = await client.push_consumer(unique("g"), topic, handle, start="first")
        await eventually(lambda: consumer.diagnose()["handled"] == 1)
        report = await consumer.close()
        assert await consumer.run() == report
        assert (report.finished, report.handled) == (True, 1)
    assert seen == [(1, "nobody")]


async def test_context_variables_reach_the_handler(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, seen = unique("orders"), []
    token = TENANT.set("acme")
    try:
        async with Client(rocketmq.name_server, impl=impl) as client:
            await filled(client, topic, 1)

            async def handle(messages: Any) -> None:
                seen.append(TENANT.get())

            async with client.push_consumer(unique("g"), topic, handle, start="first"):
                await eventually(lambda: seen)
    finally:
        TENANT.reset(token)
    assert seen == ["acme"]


async def test_beats_and_probes_do_not_wait_for_handlers(rocketmq: RocketMQCluster, impl: str) -> None:
    topic, group, began, go_on = unique("orders"), unique("g"), Event(), Event()

    async def handle(messages: Any) -> None:
        began.set()
        await go_on.wait(WITHIN)

    async with Client(rocketmq.name_server, impl=impl, heartbeat_interval=0.05, route_interval=0.05) as client:
        assert not client.ready()
        await filled(client, topic, 2)
        assert client.ready()
        async with client.push_consumer(group, topic, handle, start="first", batch=1, threads=1) as consumer:
            await began.wait(WITHIN)
            async with client.admin() as admin:  # what brokers ask of us does not wait, either
                info = await admin.running_info(group, client.client_id)
            assert info["properties"]["PROP_CONSUME_TYPE"] == "CONSUME_PASSIVELY"
            await eventually(client.ready)
            if rocketmq.embedded is not None:
                count = rocketmq.embedded.control.count
                beats = count("HEART_BEAT")
                await eventually(lambda: count("HEART_BEAT") > beats + 4)
            assert consumer.diagnose()["handled"] == 0
            go_on.set()
    assert not client.ready()

"""Tasks that are cancelled while they wait: only asyncio has them, so there is no sync twin."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter

import pytest

from mqclient.errors import DeadlineError
from mqclient.rocketmq import aio
from tests.api.conftest import RocketMQCluster


@pytest.mark.parametrize("kind", ["pull", "pop"])
async def test_ten_thousand_cancelled_receives(rocketmq: RocketMQCluster, impl: str, scale: str, kind: str) -> None:
    wanted = 3_000 if scale == "test" else 10_000
    topic, seen, cancelled, sent = f"cancelled-{uuid.uuid4().hex[:8]}", Counter[bytes](), 0, 0
    async with aio.Client(rocketmq.name_server, impl=impl) as client, client.producer("p") as producer:
        async with client.admin() as admin:
            await admin.create_topic(topic, 1)
        opening = client.pull_consumer("g", topic, start="first") if kind == "pull" else client.pop_consumer("g", topic)
        async with opening as consumer:

            async def receive(timeout: float) -> None:
                message = await consumer.receive(timeout)
                seen[message.body] += 1

            while cancelled < wanted:
                tasks = [asyncio.create_task(receive(10)) for _ in range(50)]
                late = asyncio.gather(*[receive(0.001) for _ in range(20)], return_exceptions=True)
                await asyncio.sleep(0)
                sends = [producer.send(aio.Message(topic, b"%d" % number)) for number in range(sent, sent + 10)]
                sent += 10
                for task in tasks[::2]:
                    task.cancel()
                await asyncio.gather(*sends)
                for task in tasks:
                    task.cancel()
                ended = [*await asyncio.gather(*tasks, return_exceptions=True), *await late]
                assert {type(one) for one in ended} <= {type(None), asyncio.CancelledError, DeadlineError}
                cancelled += sum(isinstance(one, asyncio.CancelledError | DeadlineError) for one in ended)
            while len(seen) < sent:
                await receive(20)
            assert set(seen.values()) == {1}
            assert not consumer._engine.waiters

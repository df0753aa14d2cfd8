"""Members of a group come and go under load: no code 25, nothing lost, and in order where that was asked for."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest

from mqclient.rocketmq.aio import Client, Message
from tests.api.conftest import RocketMQCluster
from tests.support.pace.aio import sleep
from tests.support.seen import unique

WITHIN = 60.0
ROUNDS = {"test": 3, "ci": 20, "soak": 70}


class Ledger:
    """What arrived, and how often."""

    def __init__(self) -> None:
        self.times: dict[tuple[Any, int], int] = {}
        self.last: dict[Any, int] = {}
        self.disorder: list[Any] = []
        self._lock = threading.Lock()

    async def __call__(self, messages: Any) -> None:
        with self._lock:
            for message in messages:
                place = (message.queue, message.offset)
                self.times[place] = self.times.get(place, 0) + 1
                if message.offset <= self.last.get(message.queue, -1):
                    self.disorder.append(place)
                self.last[message.queue] = message.offset


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrent", "orderly"])
async def test_nobody_hears_of_code_25(
    rocketmq: RocketMQCluster,
    impl: str,
    scale: str,
    orderly: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    topic, group, ledger = unique("churn"), unique("g"), Ledger()
    options: dict[str, Any] = {"start": "first", "orderly": orderly, "rule": "averagely_by_circle", "batch": 4}
    clients = [Client(rocketmq.name_server, impl=impl) for _ in range(3)]
    states: list[dict[str, Any]] = []
    sent = 0
    with caplog.at_level(logging.WARNING, "mqclient.remoting"):
        async with clients[0].admin() as admin:
            await admin.create_topic(topic, 4)
        async with clients[0].producer(unique("p")) as producer:
            stays = await clients[0].push_consumer(group, topic, ledger, **options)
            for number in range(ROUNDS[scale]):
                comes = await clients[1 + number % 2].push_consumer(group, topic, ledger, **options)
                for _ in range(4):
                    results = await producer.send_many([Message(topic, b"x") for _ in range(25)])
                    sent += sum(result.ok for result in results)
                    await sleep(0.02)
                states.append(comes.diagnose())
                assert (await comes.close()).finished
            until = time.monotonic() + WITHIN
            while len(ledger.times) < sent:
                assert time.monotonic() < until
                await sleep(0.02)
            states.append(stays.diagnose())
            await stays.close()
    for client in clients:
        await client.close()
    assert sent == 100 * ROUNDS[scale]
    assert [state["code_25"] for state in states] == [0] * len(states)
    assert [record for record in caplog.records if "code:25" in record.getMessage()] == []
    assert [record for record in caplog.records if "%RETRY%" in record.getMessage()] == []
    if orderly:
        assert (ledger.disorder, set(ledger.times.values())) == ([], {1})

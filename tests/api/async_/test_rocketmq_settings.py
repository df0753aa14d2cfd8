"""Settings of clients and consumers, one by one: that each does what it says, to brokers that can be real."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from mqclient.rocketmq.aio import Client, Message, MessageQueue
from tests.api.conftest import RocketMQCluster
from tests.support.pace.aio import Event, sleep
from tests.support.seen import unique

WITHIN = 40.0


async def filled(client: Client, count: int, queues: int = 1) -> str:
    topic = unique("orders")
    async with client.admin() as admin:
        await admin.create_topic(topic, queues)
        queue: MessageQueue = min(await admin.offsets(topic))
    async with client.producer(unique("p")) as producer:
        for number in range(count):
            await producer.send(Message(topic, b"%d" % number, keys=[f"k{number}"]), queue=queue)
    return topic


async def eventually(holds: Any) -> None:
    until = time.monotonic() + WITHIN
    while not holds():
        assert time.monotonic() < until, "not so in time"
        await sleep(0.01)


class Seen:
    """A handler that notes when it got what; it waits if it is told to."""

    def __init__(self, go_on: Any = None) -> None:
        self.bodies: list[bytes] = []
        self.times: list[float] = []
        self.go_on = go_on

    async def __call__(self, messages: Any) -> None:
        self.bodies += [message.body for message in messages]
        self.times.append(time.monotonic())
        if self.go_on is not None:
            await self.go_on.wait(WITHIN)


def slots(folder: Path) -> list[str]:
    """The slots that have a file."""
    return [path.parent.name for path in folder.glob("*/*/*/offsets.json")]


async def test_a_url_makes_a_client_and_names_its_unit(rocketmq: RocketMQCluster, impl: str) -> None:
    async with Client(f"rocketmq://{rocketmq.name_server}?unit_name=eu&request_timeout=5", impl=impl) as client:
        await client.ping()
        assert client.client_id.endswith("@eu")


async def test_a_namespace_of_the_second_kind_is_told_with_every_request(rocketmq: RocketMQCluster, impl: str) -> None:
    async with Client(rocketmq.name_server, impl=impl, namespace_v2="shop") as client:
        topic = await filled(client, 2)
        async with client.pull_consumer(unique("g"), topic, start="first") as consumer:
            got = [(await consumer.receive(timeout=WITHIN)).body for _ in range(2)]
    assert got == [b"0", b"1"]


async def test_a_rate_is_kept(rocketmq: RocketMQCluster, impl: str) -> None:
    seen = Seen()
    async with Client(rocketmq.name_server, impl=impl) as client:
        topic = await filled(client, 12)
        began = time.monotonic()  # the first may be noted late, and the others none too soon
        async with client.push_consumer(unique("g"), topic, seen, start="first", rate=20.0, batch=1):
            await eventually(lambda: len(seen.bodies) == 12)
    assert seen.times[-1] - began >= 0.5  # eleven pauses of 50 ms, and clocks that are not exact


async def test_old_retries_are_skipped_and_new_messages_are_not(rocketmq: RocketMQCluster, impl: str) -> None:
    tried: list[bytes] = []

    async def failing(messages: Any) -> None:
        tried.extend(message.body for message in messages)
        raise ValueError("no")

    async with Client(rocketmq.name_server, impl=impl) as client:
        topic, group, seen = await filled(client, 2), unique("g"), Seen()
        async with client.push_consumer(group, topic, failing, start="first", retry_levels=[1]):
            await eventually(lambda: len(tried) >= 2)
        later = int(time.time() * 1000) + 1
        await sleep(0.01)
        async with client.producer(unique("p")) as producer:
            await producer.send(Message(topic, b"new"))
        async with client.push_consumer(
            group, topic, seen, start="first", skip_retries_before=later, retry_levels=[1]
        ) as consumer:
            await eventually(lambda: seen.bodies == [b"new"])
            await eventually(lambda: _retried(consumer) == 2)
            assert seen.bodies == [b"new"]


def _retried(consumer: Any) -> int:
    """How far the group is in its retry topic."""
    queues = consumer.diagnose()["queues"].items()
    return sum(state["committed"] or 0 for queue, state in queues if queue.topic.startswith("%RETRY%"))


async def test_a_stuck_handler_is_told_with_its_line(
    rocketmq: RocketMQCluster, impl: str, caplog: pytest.LogCaptureFixture
) -> None:
    go_on = Event()
    seen = Seen(go_on)
    async with Client(rocketmq.name_server, impl=impl) as client:
        topic = await filled(client, 1)
        async with client.push_consumer(unique("g"), topic, seen, start="first", stuck_after=0.1) as consumer:
            await eventually(lambda: "a handler runs for" in caplog.text)
            assert consumer.diagnose()["oldest"]["offset"] == 0
            go_on.set()
    assert caplog.text.count("a handler runs for") == 1
    assert "__call__" in caplog.text.partition("a handler runs for")[2]


async def test_batches_become_columns(rocketmq: RocketMQCluster, impl: str) -> None:
    pytest.importorskip("pyarrow")
    async with Client(rocketmq.name_server, impl=impl) as client:
        topic = await filled(client, 5)
        async with client.pull_consumer(unique("g"), topic, start="first") as consumer:
            rows: list[Any] = []
            while len(rows) < 5:
                batch = await consumer.receive_batch(timeout=WITHIN)
                assert batch is not None
                rows += batch.to_arrow().to_pylist()
    assert [row["body"] for row in rows] == [b"%d" % number for number in range(5)]
    assert [row["keys"] for row in rows] == [f"k{number}" for number in range(5)]


async def test_an_instance_has_its_file_and_only_one_process_uses_it(
    rocketmq: RocketMQCluster, impl: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options: dict[str, Any] = {"impl": impl, "offset_dir": str(tmp_path), "instance": "blue"}
    listening: dict[str, Any] = {"model": "broadcasting", "start": "first"}
    async with Client(rocketmq.name_server, **options) as client, Client(rocketmq.name_server, **options) as other:
        topic, group, seen, also = await filled(client, 3), unique("audit"), Seen(), Seen()
        async with client.push_consumer(group, topic, seen, **listening):
            await eventually(lambda: len(seen.bodies) == 3)
            async with other.push_consumer(group, topic, also, **listening):
                await eventually(lambda: len(also.bodies) == 3)
    assert slots(tmp_path) == ["blue"]
    assert caplog.text.count("locked by other processes") == 1

"""Table views, on the embedded and the real broker."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import time
from typing import Any

from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster


async def test_a_table_follows_its_topic(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        await producer.send_many([(b"%d" % number, f"key-{number % 10}") for number in range(100)])
        async with client.table_view(topic, timeout=20) as view:
            assert dict(view.items()) == {f"key-{number % 10}": b"%d" % number for number in range(90, 100)}
            told: list[tuple[str, Any]] = []
            view.listen(lambda key, value: told.append((key, value)))
            await producer.send(b"new", key="key-3")
            await producer.send(None, key="key-4")
            await view.refresh(20)
            assert view["key-3"] == b"new"
            assert "key-4" not in view
            assert len(view) == 9
            assert told == [("key-3", b"new"), ("key-4", None)]
            assert (view.get("key-3"), view.get("key-4"), view.get("key-4", b"none")) == (b"new", None, b"none")
            assert sorted(view) == sorted(view.keys())
            assert view.message("key-3").key == "key-3"
            assert view.topic.endswith(topic)
            assert view.diagnose()["keys"] == 9


async def test_a_table_can_be_closed_by_its_block(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client:
        view = await client.table_view(topic, timeout=20)
        async with view:
            assert len(view) == 0
        await view.close()  # again: nothing happens


async def test_a_table_of_partitions(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    pulsar.partition(topic, 2)
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        async with client.table_view(topic, timeout=20) as view:
            assert view.items() == []
            await producer.send_many([(b"%d" % number, f"key-{number}") for number in range(20)])
            await view.refresh(20)
            assert sorted(view.keys()) == sorted(f"key-{number}" for number in range(20))


async def test_only_what_was_said_last_of_each_key(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    """By a reader of the compacted topic."""
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        assert all(one.ok for one in await producer.send_many([(b"10", "tea"), (b"1", "salt"), (b"12", "tea")]))
        assert all(one.ok for one in await producer.send_many([(None, "salt"), (b"7", "milk")]))
        place = f"persistent/public/default/{topic}/compaction"
        pulsar.rest("PUT", place)
        limit = time.monotonic() + 30
        while pulsar.rest("GET", place)["status"] != "SUCCESS":
            assert time.monotonic() < limit
        for read_compacted, expected in ((True, [b"12", b"7"]), (False, [b"10", b"1", b"12", b"", b"7"])):
            async with client.reader(topic, start="earliest", read_compacted=read_compacted) as reader:
                assert [(await reader.receive(60)).body for _ in expected] == expected
                assert not await reader.has_message_available()

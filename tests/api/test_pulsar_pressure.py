"""What may be in flight is bounded, by count and by bytes, over all partitions; without a bound it is not."""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mqclient.pulsar import aio, sync
from tests.support.pulsar_cluster import PulsarCluster

COUNT, SIZE = 300, 10_000
LIMITS: list[tuple[dict[str, Any], dict[str, Any], int]] = [
    ({}, {"max_pending": 10}, 10),
    ({"memory_limit": 20 * SIZE}, {}, 20),
    ({"memory_limit": 20 * SIZE}, {"max_pending": 30}, 20),
    ({}, {}, COUNT),
]


@pytest.mark.parametrize("partitions", [0, 3])
@pytest.mark.parametrize(("client_options", "options", "most"), LIMITS, ids=["count", "bytes", "both", "no bound"])
async def test_in_one_call(
    pulsar: PulsarCluster,
    topic: str,
    impl: str,
    client_options: dict[str, Any],
    options: dict[str, Any],
    most: int,
    partitions: int,
) -> None:
    if partitions:
        pulsar.partition(topic, partitions)
    async with aio.Client(pulsar.url, impl=impl, **client_options) as client:
        async with client.producer(topic, batching=False, **options) as producer:
            sending = asyncio.create_task(producer.send_many([bytes(SIZE)] * COUNT))
            seen = 0
            while not sending.done():
                seen = max(seen, producer.diagnose()["pending"])
                await asyncio.sleep(0)
            assert all(outcome.ok for outcome in await sending)
            assert most // 2 < seen <= most
            assert producer.diagnose()["pending"] == 0


@pytest.mark.parametrize("partitions", [0, 3])
@pytest.mark.parametrize(("client_options", "options", "most"), LIMITS[:3], ids=["count", "bytes", "both"])
def test_one_by_one(
    pulsar: PulsarCluster,
    topic: str,
    impl: str,
    client_options: dict[str, Any],
    options: dict[str, Any],
    most: int,
    partitions: int,
) -> None:
    """`submit` waits for room."""
    if partitions:
        pulsar.partition(topic, partitions)
    with sync.Client(pulsar.url, impl=impl, **client_options) as client:
        with client.producer(topic, batching=False, **options) as producer:
            futures, seen = [], 0
            for _ in range(COUNT):
                futures.append(producer.submit(bytes(SIZE)))
                seen = max(seen, producer.diagnose()["pending"])
            assert all(future.result(30).ok for future in futures)
            assert seen <= most

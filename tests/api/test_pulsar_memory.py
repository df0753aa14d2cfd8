"""After ten million messages sent and received the process is as large as after the first of them."""

from __future__ import annotations

import json
import subprocess
import sys
from shutil import which

import pytest

from benchmarks.peers.pulsar import canned

COUNTS = {"ci": 1_000_000, "soak": 10_000_000}
MOST = 4 << 20
WARM = 200_000
"""Messages after which every buffer, pool and cache has the size that it keeps."""

WORK = """
import asyncio, json, os, sys
from mqclient.pulsar import Client, aio

way, url, warm, count = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

def size():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

def taking(consumer, total):
    while total > 0:
        messages = consumer.receive_many(1000, 60)
        assert messages
        consumer.ack(messages)
        total -= len(messages)

def receiving(consumer, total):
    for _ in range(total):
        consumer.ack(consumer.receive(60))

def sending(producer, total):
    for _ in range(total // 20_000):
        assert all(outcome.ok for outcome in producer.send_many([b"x" * 100] * 20_000))

def submitting(producer, total):
    for _ in range(total):
        producer.submit(b"x" * 100)
    producer.flush()

riding = submitting  # in entries of their own

async def by_tasks(producer, total):
    async def one():
        for _ in range(total // 500):
            await producer.send(b"x" * 100)
    await asyncio.gather(*[one() for _ in range(500)])

async def awaiting():
    async with aio.Client(url) as client, client.producer("t") as producer:
        await by_tasks(producer, warm)
        before = size()
        await by_tasks(producer, count)
        return size() - before

if way == "awaiting":
    print(json.dumps(asyncio.run(awaiting())))
else:
    with Client(url) as client:
        sends = way not in ("taking", "receiving")
        made = client.producer("t", batching=way != "riding") if sends else client.consumer("t", "s")
        globals()[way](made, warm)
        before = size()
        globals()[way](made, count)
        print(json.dumps(size() - before))
"""


@pytest.mark.ci
@pytest.mark.timeout(1800)
@pytest.mark.skipif(which("cc") is None or not sys.platform.startswith("linux"), reason="a server in C, /proc")
@pytest.mark.parametrize("way", ["taking", "receiving", "sending", "submitting", "riding", "awaiting"])
def test_the_process_does_not_grow(scale: str, way: str) -> None:
    count = COUNTS[scale]
    with canned(1000, 100) as server:
        server.ask(f"total {count + WARM if way in ('taking', 'receiving') else 0}")
        command = [sys.executable, "-c", WORK, way, server.url, str(WARM), str(count)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1700, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        told = json.loads(server.ask("report"))
    assert told["acked" if way in ("taking", "receiving") else "sent"] == count + WARM
    grown: int = json.loads(done.stdout)
    assert grown <= MOST, f"{grown:,} bytes in {count:,} messages"

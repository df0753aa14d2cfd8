"""After ten million messages sent and received the process is as large as after the first of them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

COUNTS = {"ci": 400_000, "soak": 10_000_000}
SHARE = {"batches": 1, "submitted": 2, "single": 20}
"""A way that costs more a message gets a part of the count."""
MOST = 4 << 20

WORK = """
import json, os, sys, threading
from mqclient import rocketmq
from mqclient.rocketmq import Message

way, name_server, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
CHUNK = 20_000

def size():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

def batches(producer, consumer, total):
    for _ in range(total // CHUNK):
        results = producer.send_many([Message("t", b"x" * 100, keys=["k"]) for _ in range(CHUNK)], timeout=60)
        assert all(result.ok for result in results)
        left = CHUNK
        while left > 0:
            left -= len(consumer.receive_batch(timeout=60))

def single(producer, consumer, total):
    for _ in range(total):
        assert producer.send(Message("t", b"x" * 100, tag="t"), timeout=60).ok
        consumer.receive(60)

class Taken:
    def __init__(self):
        self.count, self.there = 0, threading.Event()
    def __call__(self, messages):
        self.count += len(messages)
        self.there.set()

def submitted(producer, taken, total):
    for _ in range(total // CHUNK):
        wanted = taken.count + CHUNK
        for _ in range(CHUNK):
            producer.submit(Message("t", b"x" * 100))
        producer.flush()
        while taken.count < wanted:
            assert taken.there.wait(60)
            taken.there.clear()

with rocketmq.Client(name_server) as client, client.producer("p") as producer:
    with client.admin() as admin:
        admin.create_topic("t", 4)
    if way == "submitted":
        consumer = Taken()
        client.push_consumer("g", "t", consumer, start="first", batch=1000)
    else:
        consumer = client.pull_consumer("g", "t", start="first")
    step = 1_000 if way == "single" else CHUNK
    def sizes(steps):
        for _ in range(steps):
            globals()[way](producer, consumer, step)
            yield size()
    # What is cached ahead comes and goes, by some MiB: so the most of a while before, and the middle of one at the end.
    before = max(sizes(20))
    after = sorted(list(sizes(count // step))[-20:])
    print(json.dumps(after[len(after) // 2] - before))
"""


@pytest.mark.ci
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc")
@pytest.mark.parametrize("way", list(SHARE))
def test_the_process_does_not_grow(scale: str, way: str) -> None:
    count = COUNTS[scale] // SHARE[way]
    serve = [sys.executable, "-m", "mqclient.broker", "--door", "rocketmq", "--retention", "200"]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            name_server = broker.stdout.readline().strip().partition("=")[2]
            command = [sys.executable, "-c", WORK, way, name_server, str(count)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=3500, check=False)
        finally:
            broker.kill()
    assert done.returncode == 0, done.stderr[-2000:]
    grown: int = json.loads(done.stdout)
    assert grown <= MOST, f"{grown:,} bytes in {count:,} messages"

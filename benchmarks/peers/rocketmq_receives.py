"""RocketMQ consumers side by side: the Java client's push and ours, and our pull and asyncio; rates and processor time.

`python -m benchmarks.peers.rocketmq_receives [--rounds N] [--messages N] [--name-server HOST:PORT] [--jars FOLDER]`

Without a name server an embedded broker runs as a process of its own. A backlog of 128-byte bodies is read; measured is
its second half, in a process for each line: only the client's processor time counts. `push` and `pull` ask for 1,024
messages at once, `push32` for 32 as by default, `each` calls a handler for every message.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.peers.rocketmq import BODY, Round, broker, cpu_seconds, given, middle
from mqclient import rocketmq
from mqclient.rocketmq import aio

LINES = {"pull": 1024, "push": 1024, "push32": 32, "each": 1024, "asyncio": 1024}
"""Line -> messages asked for at once."""
PUSHED = ("push", "push32")
ASKED = {"pull": 1_500_000, "push": 800_000, "asyncio": 600_000}
"""What the issue asks for over the embedded broker, messages a second."""


class Half:
    """The clock of the second half: told what came, it knows when to begin and when all is there."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._seen = 0
        self._lock = threading.Lock()
        self._began = self._before = self._ended = self._after = 0.0
        self.done = threading.Event()

    def came(self, number: int) -> bool:
        """Whether all are there."""
        with self._lock:
            before = self._seen
            self._seen += number
            if before < self._count // 2 <= self._seen:
                self._began, self._before = time.perf_counter(), cpu_seconds()
            if before < self._count <= self._seen:
                self._ended, self._after = time.perf_counter(), cpu_seconds()
                self.done.set()
            return self._seen >= self._count

    def round(self) -> Round:
        assert self.done.wait(600), f"{self._seen} of {self._count} came"
        half = self._count - self._count // 2
        return {"rate": half / (self._ended - self._began), "cpu_us": (self._after - self._before) / half * 1e6}


def ours(name_server: str, topic: str, line: str, count: int) -> Round:
    half = Half(count)
    if line == "asyncio":
        return asyncio.run(by_loop(name_server, topic, half))
    with rocketmq.Client(name_server) as client:
        group, size = f"ours-{topic}", LINES[line]
        if line == "pull":
            with client.pull_consumer(group, topic, start="first", pull_batch=size) as consumer:
                for batch in consumer.batches(size):
                    if half.came(len(batch)):
                        break
            return half.round()
        batch_size = 1 if line == "each" else size
        limits = rocketmq.Limits(count=4 * size + 1000, span=60000)

        def handle(messages: Any) -> None:
            half.came(len(messages))

        with client.push_consumer(
            group, topic, handle, start="first", pull_batch=size, batch=batch_size, limits=limits, threads=4
        ):
            return half.round()


async def by_loop(name_server: str, topic: str, half: Half) -> Round:
    async with (
        aio.Client(name_server) as client,
        client.pull_consumer(f"ours-{topic}", topic, start="first", pull_batch=1024) as consumer,
    ):
        seen = 0
        async for _ in consumer:
            seen += 1
            if seen == 1000:
                seen = 0
                if half.came(1000):
                    break
    return half.round()


def fill(name_server: str, topic: str, count: int) -> None:
    with rocketmq.Client(name_server) as client, client.producer("filler") as producer:
        with client.admin() as admin:
            admin.create_topic(topic, queues=4)
        for _ in range(count // 1000):
            messages = [rocketmq.Message(topic, BODY, tag="t", keys=["k"]) for _ in range(1000)]
            results = producer.send_many(messages, timeout=30)
            assert all(result.ok for result in results)


def one_round(client: str, line: str, name_server: str, topic: str, options: argparse.Namespace) -> Round:
    where = [name_server, topic, str(LINES[line]) if client == "java" else line, str(options.messages)]
    command = [sys.executable, "-m", "benchmarks.peers.rocketmq_receives", "--round", *where]
    if client == "java":
        program = str(Path(__file__).with_name("RocketMQReceives.java"))
        opens = ["--add-opens=java.base/java.nio=ALL-UNNAMED"]
        command = ["java", *opens, "-cp", f"{options.jars}/*", program, *where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, f"{client} {line}: {done.stderr[-2000:]}"
    found: Round = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def compare(options: argparse.Namespace) -> None:
    """Alternate over one backlog; each round of each client is a group of its own."""
    found: dict[tuple[str, str], list[Round]] = {}
    with broker() if options.name_server is None else given(options.name_server) as name_server:
        for number in range(options.rounds):
            for line in options.lines:
                for client in ["java", "ours"] if options.jars and line in PUSHED else ["ours"]:
                    topic = f"receives-{os.getpid()}-{client}-{line}-{number}"
                    fill(name_server, topic, options.messages)
                    one = one_round(client, line, name_server, topic, options)
                    found.setdefault((client, line), []).append(one)
                    print(f"{client} {line}: {one['rate']:,.0f}/s {one['cpu_us']:.2f} µs", file=sys.stderr, flush=True)
                    with rocketmq.Client(name_server) as judge, judge.admin() as admin:
                        admin.delete_topic(topic)
    report(found, options)


def report(found: dict[tuple[str, str], list[Round]], options: argparse.Namespace) -> None:
    print("| | Java | mqclient | |\n|---|---|---|---|")
    for line in options.lines:
        mine, theirs = middle(found["ours", line]), found.get(("java", line))
        cells = ["—", f"{mine['rate'] / 1000:,.0f} k/s, {mine['cpu_us']:.2f} µs", ""]
        if theirs is not None:
            java = middle(theirs)
            cells[0] = f"{java['rate'] / 1000:,.0f} k/s, {java['cpu_us']:.2f} µs"
            cells[2] = f"{mine['rate'] / java['rate']:.2f} × the rate, {mine['cpu_us'] / java['cpu_us']:.2f} × the CPU"
        elif options.name_server is None and line in ASKED:
            cells[2] = f"asked: ≥ {ASKED[line] / 1000:,.0f} k/s"
        print(f"| {line} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--lines", nargs="+", choices=list(LINES), default=list(LINES))
    parser.add_argument("--name-server", help="brokers that are there already; by default an embedded one")
    parser.add_argument("--jars", type=Path, help="a folder with the jars of a RocketMQ release")
    parser.add_argument("--round", nargs=4, help=argparse.SUPPRESS)
    options: Any = parser.parse_args()
    if options.round:
        name_server, topic, line, count = options.round
        print(json.dumps(ours(name_server, topic, line, int(count))))
        return
    compare(options)


if __name__ == "__main__":
    main()

"""RocketMQ consumers side by side: the Java client's push, the C++-based Python client's, ours; rates, processor time.

`python -m benchmarks.peers.rocketmq_receives [--rounds N] [--messages N] [--name-server HOST:PORT | --real 5.5.0]
[--jars FOLDER] [--python-client FOLDER]`

By default an embedded broker runs as a process of its own; `--real` boots one of that release. A backlog of 128-byte
bodies is read; measured is its second half, in a process for each line: only the client's processor time counts. `push`
and `pull` ask for 1,024 messages at once, `push32` for 32 as by default, `each` calls a handler for every message, as
the C++-based client does; `pull_aio` and `asyncio` do on a loop what `pull` (batches) and `one` (a message at a time)
do without one.
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
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.peers.rocketmq import BODY, Round, broker, cpu_seconds, given, middle, real, unpacked
from mqclient import rocketmq
from mqclient.rocketmq import aio

LINES = {"pull": 1024, "pull_aio": 1024, "push": 1024, "push32": 32, "each": 1024, "one": 1024, "asyncio": 1024}
"""Line -> messages asked for at once."""
ON_A_LOOP = {"pull_aio": ("pull", 0.85), "asyncio": ("one", 0.55)}
"""An asyncio line, the sync one that does the same work, and how much of its rate is asked for."""
PEERS = {"push": ("java",), "push32": ("java",), "each": ("cpp",)}
"""Line -> who has one of that kind."""
CPP_SHARE = 10
"""The C++-based client gets so much less to do: at its rate it takes as long."""
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
    if line in ON_A_LOOP:
        return asyncio.run(by_loop(name_server, topic, half, whole=line == "pull_aio"))
    with rocketmq.Client(name_server) as client:
        group, size = f"ours-{topic}", LINES[line]
        if line in ("pull", "one"):
            with client.pull_consumer(group, topic, start="first", pull_batch=size) as consumer:
                if line == "pull":
                    for batch in consumer.batches(size):
                        if half.came(len(batch)):
                            break
                else:
                    for seen, _ in enumerate(consumer, 1):
                        if seen % 1000 == 0 and half.came(1000):
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


def cpp(name_server: str, topic: str, count: int) -> Round:
    """rocketmq-client-python calls back for each message; a group of its kind begins at the end, if it is not told."""
    peer = import_module("rocketmq.client")  # has no types, and is there only for this comparison
    half, group = Half(count), f"cpp-{topic}"
    with rocketmq.Client(name_server) as judge, judge.admin() as admin:
        admin.create_group(group)
        admin.commit_offsets(group, dict.fromkeys(admin.offsets(topic), 0))
    consumer = peer.PushConsumer(group)
    consumer.set_name_server_address(name_server)
    consumer.set_thread_count(4)

    def handle(message: Any) -> Any:
        half.came(1)
        return peer.ConsumeStatus.CONSUME_SUCCESS

    consumer.subscribe(topic, handle)
    consumer.start()
    return half.round()


async def by_loop(name_server: str, topic: str, half: Half, *, whole: bool) -> Round:
    async with (
        aio.Client(name_server) as client,
        client.pull_consumer(f"ours-{topic}", topic, start="first", pull_batch=1024) as consumer,
    ):
        if whole:
            async for batch in consumer.batches(1024):
                if half.came(len(batch)):
                    break
            return half.round()
        seen = 0
        async for _ in consumer:
            seen += 1
            if seen % 1000 == 0 and half.came(1000):
                break
    return half.round()


def fill(name_server: str, topic: str, count: int) -> None:
    """A real broker finds messages some time after it took them: who came before that would read them one by one."""
    with rocketmq.Client(name_server) as client, client.producer("filler") as producer:
        with client.admin() as admin:
            admin.create_topic(topic, queues=4)
        for _ in range(count // 1000):
            messages = [rocketmq.Message(topic, BODY, tag="t", keys=["k"]) for _ in range(1000)]
            results = producer.send_many(messages, timeout=30)
            assert all(result.ok for result in results)
        with client.admin() as admin:
            while sum(ends["max"] or 0 for ends in admin.offsets(topic).values()) < count // 1000 * 1000:
                time.sleep(0.1)


def one_round(client: str, line: str, name_server: str, topic: str, options: argparse.Namespace) -> Round:
    where = [name_server, topic, str(LINES[line]) if client == "java" else line, str(count_of(client, options))]
    environment = dict(os.environ)
    if client == "cpp":
        where[2] = "cpp"
        environment["LD_LIBRARY_PATH"] = f"{options.modules / 'rocketmq'}:{environment.get('LD_LIBRARY_PATH', '')}"
        environment["PYTHONPATH"] = f"{options.modules}:{environment.get('PYTHONPATH', '')}"
    command = [sys.executable, "-m", "benchmarks.peers.rocketmq_receives", "--round", *where]
    if client == "java":
        program = str(Path(__file__).with_name("RocketMQReceives.java"))
        opens = ["--add-opens=java.base/java.nio=ALL-UNNAMED"]
        command = ["java", *opens, "-cp", f"{options.jars}/*", program, *where]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    assert done.returncode == 0, f"{client} {line}: {done.stderr[-2000:]}"
    found: Round = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def count_of(client: str, options: argparse.Namespace) -> int:
    count: int = options.messages
    return count // CPP_SHARE if client == "cpp" else count


def compare(options: argparse.Namespace) -> None:
    """Alternate over one backlog; each round of each client is a group of its own."""
    found: dict[tuple[str, str], list[Round]] = {}
    there = [name for name, has in (("java", options.jars), ("cpp", options.modules)) if has]
    where = real(options.real) if options.real else broker() if not options.name_server else given(options.name_server)
    with where as name_server:
        for number in range(options.rounds):
            for line in options.lines:
                for client in [*(name for name in PEERS.get(line, ()) if name in there), "ours"]:
                    topic = f"receives-{os.getpid()}-{client}-{line}-{number}"
                    fill(name_server, topic, count_of(client, options))
                    one = one_round(client, line, name_server, topic, options)
                    found.setdefault((client, line), []).append(one)
                    print(f"{client} {line}: {one['rate']:,.0f}/s {one['cpu_us']:.2f} µs", file=sys.stderr, flush=True)
                    with rocketmq.Client(name_server) as judge, judge.admin() as admin:
                        admin.delete_topic(topic)
    report(found, options)


def report(found: dict[tuple[str, str], list[Round]], options: argparse.Namespace) -> None:
    print("| | Java, or C++-based | mqclient | |\n|---|---|---|---|")
    for line in options.lines:
        mine = middle(found["ours", line])
        theirs = next((found[name, line] for name in PEERS.get(line, ()) if (name, line) in found), None)
        cells = ["—", f"{mine['rate'] / 1000:,.0f} k/s, {mine['cpu_us']:.2f} µs", ""]
        if theirs is not None:
            peer = middle(theirs)
            cells[0] = f"{peer['rate'] / 1000:,.0f} k/s, {peer['cpu_us']:.2f} µs"
            cells[2] = f"{mine['rate'] / peer['rate']:.2f} × the rate, {mine['cpu_us'] / peer['cpu_us']:.2f} × the CPU"
        elif not (options.name_server or options.real) and line in ASKED:
            cells[2] = f"asked: ≥ {ASKED[line] / 1000:,.0f} k/s"
        if line in ON_A_LOOP and ("ours", ON_A_LOOP[line][0]) in found:
            same, share = ON_A_LOOP[line]
            rate = mine["rate"] / middle(found["ours", same])["rate"]
            cells[2] += f"{'; ' if cells[2] else ''}{rate:.0%} of {same} (asked: ≥ {share:.0%})"
        print(f"| {line} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--lines", nargs="+", choices=list(LINES), default=list(LINES))
    parser.add_argument("--name-server", help="brokers that are there already; by default an embedded one")
    parser.add_argument("--real", metavar="RELEASE", help="boot a real broker of this release")
    parser.add_argument("--python-client", type=Path, help="a folder with the source archive and the wheel")
    parser.add_argument("--jars", type=Path, help="a folder with the jars of a RocketMQ release")
    parser.add_argument("--round", nargs=4, help=argparse.SUPPRESS)
    options: Any = parser.parse_args()
    if options.round:
        name_server, topic, line, count = options.round
        if line == "cpp":
            print(json.dumps(cpp(name_server, topic, int(count))), flush=True)
            os._exit(0)  # its threads do not end by themselves
        print(json.dumps(ours(name_server, topic, line, int(count))))
        return
    options.modules = options.python_client and unpacked(options.python_client)
    compare(options)


if __name__ == "__main__":
    main()

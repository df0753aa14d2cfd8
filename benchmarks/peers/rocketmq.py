"""RocketMQ producers side by side: the C++-based Python client, the Java client, ours; rates and processor time.

`python -m benchmarks.peers.rocketmq [--rounds N] [--messages N] [--name-server HOST:PORT | --real 5.5.0]`

Without a name server an embedded broker runs as a process of its own. Wanted, left out aloud where missing: a JDK with
RocketMQ's jars (`--jars FOLDER`), and rocketmq-client-python 2.0.0 with the shared library out of its 0.5.0rc2 wheel
(`--python-client FOLDER`, where pip download put both). 128-byte bodies. The clients alternate, each line in a process
of its own: only its client's processor time counts. A round whose messages the broker does not have is an error.
`bare` is no client: a blocking socket in Python that sends the same bytes again and again, the least that the system
takes for it on this broker, where a thread that waits longer also finds its caches cold. `pausing` is `bare` with 20 µs
of computing before each request, which its figures hold, too: a real broker's threads fall asleep meanwhile, and it
answers that much later.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from mqclient import rocketmq
from mqclient._impl import select

BODY = b"x" * 128
Round = dict[str, float]
LINES = {"sync1": 1, "sync16": 4, "async": 10, "asyncio": 10, "many32": 20, "many": 40}
"""Line -> how many times the number of messages."""
BARE = {"sync1": 1, "many32": 32}
"""Lines that a loop without a client can do, and messages in each of its requests."""
LOOPS = ("bare", "pausing")
PAUSE = 20e-6
SHARE = {"asyncio": "async", "many": "many32"}
"""A peer's line that one of ours is compared with, where it has none of that kind."""


def in_threads(number: int, count: int, send: Callable[[], object]) -> None:
    """Each sends its part; one that fails fails the round."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(count // number):
                send()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed[0]


def cpp(name_server: str, topic: str, line: str, count: int) -> Round:
    """rocketmq-client-python: one thread that waits; with sixteen it stopped for ever, and it has no other way."""
    peer = import_module("rocketmq.client")  # has no types, and is there only for this comparison
    producer = peer.Producer("peers-cpp")
    producer.set_name_server_address(name_server)
    producer.start()

    def send() -> None:
        message = peer.Message(topic)
        message.set_body(BODY)
        producer.send_sync(message)

    send()
    found = measured(lambda: in_threads(int(line[4:]), count, send), count)
    producer.shutdown()
    return found


def bare(name_server: str, topic: str, line: str, count: int, pause: float = 0.0) -> Round:
    """No client: one request's bytes, sent again and again over a blocking socket."""
    per, remoting = BARE[line], select("native").remoting
    with rocketmq.Client(name_server) as client, client.producer("peers-bare") as producer, client.admin() as admin:
        queue = producer.send(rocketmq.Message(topic, BODY)).queue
        (address,) = [broker.addresses[0] for broker in admin.cluster() if broker.name == queue.broker_name]
    host, _, port = address.rpartition(":")
    text = remoting.encode_properties({"UNIQ_KEY": "7F0000010000000000000000000000000001", "WAIT": "true"})
    builder = remoting.BatchBuilder()
    builder.add_many([BODY] * per, [text] * per)
    head = remoting.SendHead(
        "peers-bare", topic, queue.queue_id, code=310 if per == 1 else 320, batch=per > 1, broker=queue.broker_name
    )
    body = BODY if per == 1 else builder.seal()
    frame = head.frame(1, text, body, time.time_ns() // 1_000_000)
    with socket.create_connection((host, int(port))) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def send() -> None:
            until = time.perf_counter() + pause
            while time.perf_counter() < until:
                pass
            sock.sendall(frame)
            reply = sock.recv(65536)
            while len(reply) < 4 + int.from_bytes(reply[:4], "big"):
                reply += sock.recv(65536)

        return measured(lambda: in_threads(1, count // per, send), count)


def pausing(name_server: str, topic: str, line: str, count: int) -> Round:
    """As `bare`, by somebody who has something to do between two requests."""
    return bare(name_server, topic, line, count, PAUSE)


def ours(name_server: str, topic: str, line: str, count: int) -> Round:
    """All lines of ours."""
    if line == "asyncio":
        return asyncio.run(by_tasks(name_server, topic, count))
    with rocketmq.Client(name_server) as client, client.producer("peers-ours") as producer:
        message = rocketmq.Message(topic, BODY)
        producer.send(message)

        def many(size: int) -> None:
            for start in range(0, count, size):
                messages = [rocketmq.Message(topic, BODY) for _ in range(min(size, count - start))]
                producer.send_many(messages, timeout=30, raise_on_error=True)  # Java's raises, too

        def submit() -> None:
            futures = [producer.submit(rocketmq.Message(topic, BODY)) for _ in range(count)]
            producer.flush()
            assert all(future.result().ok for future in futures)

        if line.startswith("sync"):
            return measured(
                lambda: in_threads(
                    int(line[4:]), count, lambda: producer.send(rocketmq.Message(topic, BODY), timeout=10)
                ),
                count,
            )
        if line == "async":
            return measured(submit, count)
        return measured(lambda: many(32 if line == "many32" else 2000), count)


async def by_tasks(name_server: str, topic: str, count: int) -> Round:
    """A thousand tasks that each send one message after the other."""
    from mqclient.rocketmq import aio

    async with aio.Client(name_server) as client, client.producer("peers-ours") as producer:
        await producer.send(aio.Message(topic, BODY), timeout=30)

        async def work() -> None:
            for _ in range(count // 1000):
                await producer.send(aio.Message(topic, BODY), timeout=30)

        began, before = time.perf_counter(), cpu_seconds()
        await asyncio.gather(*[work() for _ in range(1000)])
        return {"rate": count / (time.perf_counter() - began), "cpu_us": (cpu_seconds() - before) / count * 1e6}


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measured(work: Callable[[], None], count: int) -> Round:
    began, before = time.perf_counter(), cpu_seconds()
    work()
    return {"rate": count / (time.perf_counter() - began), "cpu_us": (cpu_seconds() - before) / count * 1e6}


@contextmanager
def broker() -> Iterator[str]:
    """An embedded broker as a process of its own; its name server."""
    command = [sys.executable, "-m", "mqclient.broker", "--door", "rocketmq"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip().partition("=")[2]
        finally:
            process.terminate()


@contextmanager
def real(version: str) -> Iterator[str]:
    """One broker of a release, for as long as this runs."""
    from tests.real.rocketmq import RealRocketMQ

    with TemporaryDirectory() as folder, RealRocketMQ(Path(folder), brokers=1, version=version) as cluster:
        yield cluster.name_server


def unpacked(folder: Path) -> Path | None:
    """The Python client's modules with the library that they load, or None if one of both is not there."""
    modules, wheels = list(folder.glob("rocketmq-client-python-2.0.0.tar.gz")), list(folder.glob("*0.5.0rc2*.whl"))
    if not modules or not wheels:
        return None
    target = Path(mkdtemp(prefix="peers-"))
    with tarfile.open(modules[0]) as archive:
        archive.extractall(target, filter="data")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(target / "library")
    found = target / "rocketmq-client-python-2.0.0"
    for library in (target / "library" / "rocketmq").rglob("*.so*"):
        shutil.copy(library, found / "rocketmq" / library.name)
    return found


def command_of(client: str, options: argparse.Namespace, where: list[str]) -> tuple[list[str], dict[str, str]]:
    """How one round of a client is run, and its environment."""
    environment = dict(os.environ)
    if client == "java":
        program = str(Path(__file__).with_name("RocketMQSends.java"))
        opens = ["--add-opens=java.base/java.nio=ALL-UNNAMED"]
        return ["java", *opens, "-cp", f"{options.jars}/*", program, *where], environment
    if client == "cpp":
        library = str(options.modules / "rocketmq")
        environment["LD_LIBRARY_PATH"] = f"{library}:{environment.get('LD_LIBRARY_PATH', '')}"
        environment["PYTHONPATH"] = f"{options.modules}:{environment.get('PYTHONPATH', '')}"
    return [sys.executable, "-m", "benchmarks.peers.rocketmq", "--client", client, "--round", *where], environment


def one_round(client: str, line: str, name_server: str, options: argparse.Namespace, number: int) -> Round:
    """Measured in a process of its own; then the broker is asked whether it has the messages."""
    topic, count = f"peers-{client}-{line}-{number}-{os.getpid()}", options.messages * LINES[line]
    with rocketmq.Client(name_server) as judge, judge.admin() as admin:
        admin.create_topic(topic, queues=4)
        command, environment = command_of(client, options, [name_server, topic, line, str(count)])
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
        assert done.returncode == 0, f"{client} {line}: {done.stderr[-2000:]}"
        found: Round = json.loads(done.stdout.strip().splitlines()[-1])
        with judge.pull_consumer(f"judge-{topic}", topic, start="first") as consumer:
            # A real broker's queues follow its log: after a fast round by tenths of a second.
            until = time.monotonic() + 10
            while (stored := sum(consumer.lag().values())) < count and time.monotonic() < until:
                time.sleep(0.05)
        assert stored >= count, f"{client} {line}: {stored} of {count} messages reached the broker"
    return found


def compare(options: argparse.Namespace) -> None:
    """Alternate, then print the medians of each line and their ratios."""
    peers = [*LOOPS, *(name for name, there in (("cpp", options.modules), ("java", options.jars)) if there)]
    for name in {"cpp", "java"} - set(peers):
        print(f"left out: {name} is not there", file=sys.stderr)
    found: dict[tuple[str, str], list[Round]] = {}
    for number in range(options.rounds):
        for line in options.lines:
            for client in [*peers, "ours"]:
                if client == "ours" or does(client, line):
                    with broker() if options.name_server is None else given(options.name_server) as name_server:
                        one = one_round(client, line, name_server, options, number)
                    found.setdefault((client, line), []).append(one)
                    print(f"{client} {line}: {one['rate']:,.0f}/s {one['cpu_us']:.1f} µs", file=sys.stderr, flush=True)
    report(found, peers, options.lines)


def does(peer: str, line: str) -> bool:
    return line in BARE if peer in LOOPS else line == "sync1" or (peer == "java" and line not in SHARE)


@contextmanager
def given(name_server: str) -> Iterator[str]:
    yield name_server


def report(found: dict[tuple[str, str], list[Round]], peers: list[str], lines: list[str]) -> None:
    print(f"| | {' | '.join(peers)} | mqclient | ratios |\n|---|{'---|' * (len(peers) + 2)}")
    for line in lines:
        mine, cells, ratios = middle(found["ours", line]), [], []
        for peer in peers:
            rounds = found.get((peer, line)) or found.get((peer, SHARE.get(line, "")))
            if rounds is None:
                cells.append("—")
                continue
            theirs = middle(rounds)
            cells.append(f"{theirs['rate'] / 1000:,.1f} k/s, {theirs['cpu_us']:.1f} µs")
            faster, cheaper = mine["rate"] / theirs["rate"], mine["cpu_us"] / theirs["cpu_us"]
            ratios.append(f"{peer}: {faster:.2f} × the rate, {cheaper:.2f} × the CPU")
        cells.append(f"{mine['rate'] / 1000:,.1f} k/s, {mine['cpu_us']:.2f} µs")
        print(f"| {line} | {' | '.join(cells)} | {'; '.join(ratios)} |")


def middle(rounds: list[Round]) -> Round:
    return {key: statistics.median(one[key] for one in rounds) for key in ("rate", "cpu_us")}


CLIENTS: dict[str, Callable[[str, str, str, int], Round]] = {"bare": bare, "pausing": pausing, "cpp": cpp, "ours": ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--lines", nargs="+", choices=list(LINES), default=list(LINES))
    parser.add_argument("--name-server", help="brokers that are there already; by default an embedded one")
    parser.add_argument("--real", metavar="RELEASE", help="boot a real broker of this release")
    parser.add_argument("--jars", type=Path, help="a folder with the jars of a RocketMQ release")
    parser.add_argument("--python-client", type=Path, help="a folder with the source archive and the wheel")
    parser.add_argument("--client", choices=list(CLIENTS), help=argparse.SUPPRESS)
    parser.add_argument("--round", nargs=4, help=argparse.SUPPRESS)
    options: Any = parser.parse_args()
    if options.client:
        name_server, topic, line, count = options.round
        print(json.dumps(CLIENTS[options.client](name_server, topic, line, int(count))))
        return
    options.modules = options.python_client and unpacked(options.python_client)
    if options.real:
        with real(options.real) as options.name_server:
            compare(options)
    else:
        compare(options)


if __name__ == "__main__":
    main()

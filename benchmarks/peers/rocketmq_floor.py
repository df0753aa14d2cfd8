"""What a waiting send costs over the least that a send can cost: a canned server, a C loop, a bare Python loop.

`python -m benchmarks.peers.rocketmq_floor [--rounds N] [--messages N] [--python-client FOLDER]`

`benchmarks/floor/rocketmq_server.c` answers at once, so that what is measured is the client. Each round every contender
sends the same 128-byte bodies in a process of its own, one after the other: the C loop of that file, a blocking socket
in Python, ours, and the C++-based Python client where it is given. `busy`: while another Python thread of the same
process burns processor time, of which the thread that sends gets its own count.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from benchmarks.peers.rocketmq import BODY, unpacked
from benchmarks.support import compiled
from mqclient import rocketmq
from mqclient._impl import select

Round = dict[str, float]
TOPIC = "floor"
BARE = ("c", "python")
MOST = {"python": ("p50", 15.0), "c": ("p50", 25.0)}
"""Microseconds that a send of ours may take more than each of the floors."""


@contextmanager
def canned(line: str) -> Iterator[int]:
    """The server's port."""
    with subprocess.Popen([str(compiled("rocketmq_server"))], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            apart(process.pid, 0, line)
            yield int(process.stdout.readline().split()[1])
        finally:
            process.kill()


def apart(pid: int, place: int, line: str) -> None:
    """The server on one processor, whoever sends on another: where the scheduler puts both on one, an answer is there
    without a wake-up across processors (13 µs for 45), and it does so with the C loop, seldom with the others. Not
    beside a thread that burns: that one needs its own."""
    there = sorted(os.sched_getaffinity(0))
    if len(there) > 1 and line == "alone":
        os.sched_setaffinity(pid, {there[place]})


def request() -> bytes:
    """One send as our client makes it."""
    remoting = select("native").remoting
    properties = remoting.encode_properties({"UNIQ_KEY": "7F0000010000000000000000000000000001", "WAIT": "true"})
    frame: bytes = remoting.encode_send(1, "floor", TOPIC, 0, properties, BODY, born_at=1_700_000_000_000, broker="b")
    return frame


def timed(send: Callable[[], object], count: int) -> Round:
    """Median of the times, and processor time of this thread for one."""
    for _ in range(200):
        send()
    times = []
    clock, began, before = time.perf_counter_ns, time.perf_counter(), time.process_time_ns()
    for _ in range(count):
        start = clock()
        send()
        times.append(clock() - start)
    cpu = (time.process_time_ns() - before) / count
    rate = count / (time.perf_counter() - began)
    return {"p50": statistics.median(times) / 1000, "cpu": cpu / 1000, "rate": rate}


def by_c(port: int, count: int) -> Round:
    with NamedTemporaryFile() as file:
        file.write(request())
        file.flush()
        command = [str(compiled("rocketmq_server")), "loop", str(port), file.name, str(count)]  # where we are
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    p50, cpu = map(float, done.stdout.split())
    return {"p50": p50 / 1000, "cpu": cpu / 1000, "rate": 1e6 / (p50 / 1000)}


def by_python(port: int, count: int) -> Round:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        frame = request()

        def send() -> None:
            sock.sendall(frame)
            reply = sock.recv(65536)
            while len(reply) < 4 + int.from_bytes(reply[:4], "big"):
                reply += sock.recv(65536)

        return timed(send, count)


def by_ours(port: int, count: int) -> Round:
    with rocketmq.Client(f"127.0.0.1:{port}") as client, client.producer("floor") as producer:
        return timed(lambda: producer.send(rocketmq.Message(TOPIC, BODY)), count)


def by_cpp(port: int, count: int) -> Round:
    peer = import_module("rocketmq.client")  # has no types, and is there only for this comparison
    producer = peer.Producer("floor-cpp")
    producer.set_name_server_address(f"127.0.0.1:{port}")
    producer.start()

    def send() -> None:
        message = peer.Message(TOPIC)
        message.set_body(BODY)
        producer.send_sync(message)

    found = timed(send, count)
    producer.shutdown()
    return found


CONTENDERS: dict[str, Callable[[int, int], Round]] = {"c": by_c, "python": by_python, "ours": by_ours, "cpp": by_cpp}


@contextmanager
def company(line: str) -> Iterator[None]:
    """`busy`: a thread that burns; its processor time goes into `cpu`, so only rates count there."""
    over = threading.Event()

    def burn() -> None:
        number = 0
        while not over.is_set():
            for _ in range(1000):
                number += 1

    thread = threading.Thread(target=burn, daemon=True)
    if line == "busy":
        thread.start()
    yield
    over.set()
    if line == "busy":
        thread.join()


def one_round(name: str, line: str, options: Any) -> Round:
    """In a process of its own, over a server of its own."""
    environment = dict(os.environ)
    if name == "cpp":
        environment["LD_LIBRARY_PATH"] = f"{options.modules / 'rocketmq'}:{environment.get('LD_LIBRARY_PATH', '')}"
        environment["PYTHONPATH"] = f"{options.modules}:{environment.get('PYTHONPATH', '')}"
    count = options.messages if line == "alone" else max(50, options.messages // 20)
    with canned(line) as port:
        arguments = ["--round", name, line, str(port), str(count)]
        command = [sys.executable, "-m", "benchmarks.peers.rocketmq_floor", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, f"{name} {line}: {done.stderr[-2000:]}"
    found: Round = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def compare(options: Any) -> None:
    found: dict[str, list[Round]] = {}
    for line in options.lines:
        names = ["ours", *(["cpp"] if options.modules else [])]
        names = [*BARE, *names] if line == "alone" else names
        for _ in range(options.rounds):
            for name in names:
                found.setdefault(name, []).append(one_round(name, line, options))
        report(line, found)
        found.clear()


def report(line: str, found: dict[str, list[Round]]) -> None:
    print(f"| {line} | p50 µs | CPU µs | rate /s |\n|---|---|---|---|")
    middle = {name: {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
              for name, rounds in found.items()}  # fmt: skip
    for name, one in middle.items():
        print(f"| {name} | {one['p50']:.1f} | {one['cpu']:.1f} | {one['rate']:,.0f} |")
    mine = middle["ours"]
    for name, (key, most) in MOST.items():
        if name in middle:
            print(f"over {name}: {mine[key] - middle[name][key]:+.1f} µs (asked: +{most:.0f})")
    if "cpp" in middle:
        cpu, rate = mine["cpu"] / middle["cpp"]["cpu"], mine["rate"] / middle["cpp"]["rate"]
        print(f"beside cpp: {cpu:.2f} × the CPU, {rate:.2f} × the rate")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--messages", type=int, default=3_000)
    parser.add_argument("--lines", nargs="+", choices=["alone", "busy"], default=["alone", "busy"])
    parser.add_argument("--python-client", type=Path, help="a folder with the source archive and the wheel")
    parser.add_argument("--round", nargs=4, help=argparse.SUPPRESS)
    options: Any = parser.parse_args()
    if options.round:
        name, line, port, count = options.round
        apart(0, 1, line)
        with company(line):
            print(json.dumps(CONTENDERS[name](int(port), int(count))))
        return
    options.modules = options.python_client and unpacked(options.python_client)
    compare(options)


if __name__ == "__main__":
    main()

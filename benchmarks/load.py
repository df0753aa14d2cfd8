"""Load on an embedded broker of its own process from floor/load.c: what it takes in and gives out, and at what cost."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.support import Floor, compiled
from mqclient import _schema
from mqclient._impl import select

LATEST, EARLIEST = 2**63 - 1, 2**64 - 1
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Request:
    """What is sent again and again: the bytes before it and itself, its replies, and the messages that it moves."""

    door: str
    greeting: bytes
    greeted: int
    frame: bytes
    replies: int
    messages: int


@dataclass(frozen=True)
class Spent:
    """What one run took, in seconds, for so many messages."""

    messages: int
    seconds: float
    broker_cpu: float
    bytes: int

    @property
    def rate(self) -> float:
        return self.messages / self.seconds

    @property
    def cpu(self) -> float:
        """Microseconds of the broker's processor time per message."""
        return 1e6 * self.broker_cpu / self.messages


class BrokerProcess:
    """`python -m mqclient.broker`, and what it has used so far."""

    def __init__(self, process: subprocess.Popen[str], doors: int) -> None:
        assert process.stdout is not None
        self.process = process
        lines = [process.stdout.readline().strip() for _ in range(doors)]
        self.addresses = dict(line.split("=", 1) for line in lines)

    def port(self, door: str) -> int:
        return int(self.addresses[door].rpartition(":")[2])

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory(self) -> int:
        """Bytes that it holds now."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def run(self, request: Request, total: int, window: int = 4) -> Spent:
        """Send the request so often; what that took."""
        with tempfile.TemporaryDirectory(prefix="mqclient-load-") as folder:
            greeting, frame = Path(folder) / "greeting", Path(folder) / "frame"
            greeting.write_bytes(request.greeting)
            frame.write_bytes(request.frame)
            numbers = [request.greeted, str(frame), request.replies, window, total]
            command = [compiled("load"), self.port(request.door), greeting, *numbers]
            before = self.cpu()
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
            spent = self.cpu() - before
        if done.returncode:
            raise RuntimeError(f"the load ended with {done.returncode}: {done.stderr}")
        seconds, size = done.stdout.split()
        return Spent(total * request.messages, float(seconds), spent, int(size))


@contextmanager
def broker(*options: str) -> Iterator[BrokerProcess]:
    """A broker process with both doors, killed at the end."""
    command = [sys.executable, "-m", "mqclient.broker", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield BrokerProcess(process, 3)
        finally:
            process.kill()


@dataclass(frozen=True)
class BrokerLoad(Floor):
    """One round of a request on a running broker: its processor nanoseconds per message."""

    process: BrokerProcess | None = None
    request: Request | None = None
    total: int = 100

    def round(self) -> float:
        assert self.process is not None
        assert self.request is not None
        return self.process.run(self.request, self.total).cpu * 1000


# -------------------------------------------------------------------------------------------------------- requests


def rocketmq_batch(topic: str, count: int, size: int) -> Request:
    """A batch send of so many messages."""
    remoting = select("native").remoting
    builder = remoting.BatchBuilder()
    builder.add_many([b"x" * size] * count, [b""] * count)
    frame = remoting.encode_send(1, "load", topic, 0, b"", builder.seal(), born_at=1, code=320, batch=True)
    return Request("broker-a", b"", 0, frame, 1, count)


def rocketmq_single(topic: str, size: int) -> Request:
    remoting = select("native").remoting
    properties = remoting.encode_properties({"UNIQ_KEY": "7F00000100002A139A5518B4AAC20000", "WAIT": "true"})
    frame = remoting.encode_send(1, "load", topic, 0, properties, b"x" * size, born_at=1)
    return Request("broker-a", b"", 0, frame, 1, 1)


def rocketmq_pull(topic: str, count: int) -> Request:
    """A pull of the queue's first messages, of which there must be enough."""
    remoting = select("native").remoting
    frame = remoting.encode_pull(1, "load", topic, 0, 0, max_messages=count, sys_flag=4, subscription="*")
    return Request("broker-a", b"", 0, frame, 1, count)


def command(kind: int, name: str, **fields: Any) -> bytes:
    body = _schema.message(name)(**fields).SerializeToString()
    return bytes(select("native").pulsar.encode_command(kind, body))


def connect() -> bytes:
    return command(2, "CommandConnect", client_version="load", protocol_version=21)


def pulsar_send(topic: str, bodies: Sequence[bytes]) -> Request:
    """An entry with these messages."""
    pulsar = select("native").pulsar
    builder = pulsar.BatchBuilder(len(bodies), 1 << 22)
    builder.add_many(bodies)
    payload, count = builder.seal()
    metadata = pulsar.encode_metadata("load", 0, 1, num_messages=count)
    frame = pulsar.encode_send(1, 0, metadata, payload, num_messages=count)
    producer = command(5, "CommandProducer", topic=topic, producer_id=1, request_id=1)
    return Request("pulsar_url", connect() + producer, 2, frame, 1, count)


def pulsar_receive(topic: str, count: int, entries: int) -> Request:
    """A reader from the topic's start, which grants permits for so many entries of `count` messages at a time."""
    start = {"ledgerId": EARLIEST, "entryId": EARLIEST}
    fields = {"topic": topic, "subscription": "load", "subType": 0, "consumer_id": 1, "request_id": 1}
    subscribe = command(4, "CommandSubscribe", **fields, durable=False, start_message_id=start)
    flow = select("native").pulsar.encode_flow(1, count * entries)
    return Request("pulsar_url", connect() + subscribe, 2, flow, entries, count * entries)


def main() -> None:
    """Measure all of them on a fresh broker and print a table."""
    body = b"x" * 100
    with broker(*sys.argv[1:]) as running:
        runs = [
            ("RocketMQ in, batches of 32 x 100 B", rocketmq_batch("in", 32, 100), 20_000),
            ("RocketMQ in, batches of 1,000 x 100 B", rocketmq_batch("in2", 1000, 100), 1_000),
            ("RocketMQ in, single sends of 100 B", rocketmq_single("single", 100), 20_000),
            ("RocketMQ in, for the pulls", rocketmq_batch("out", 1024, 128), 4),
            ("RocketMQ out, pulls of 1,024 x 128 B", rocketmq_pull("out", 1024), 2_000),
            ("Pulsar in, entries of 1,000 x 100 B", pulsar_send("in", [body] * 1000), 1_000),
            ("Pulsar in, entries of one x 100 B", pulsar_send("in1", [body]), 20_000),
            ("Pulsar out, entries of 1,000 x 100 B", pulsar_receive("in", 1000, 4), 250),
        ]
        for name, request, total in runs:
            spent = running.run(request, total, 4 if "single" not in name else 64)
            print(f"{name:40} {spent.rate:12,.0f} msg/s {spent.cpu:8.3f} us broker CPU {spent.bytes:14,} bytes back")
        print(f"memory: {running.memory() / 1e6:,.0f} MB")


if __name__ == "__main__":
    main()

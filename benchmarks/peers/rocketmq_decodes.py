"""Decoding side by side: `MessageDecoder.decodes` of the Java client, and ours, on the same bodies of pull replies.

`python -m benchmarks.peers.rocketmq_decodes --jars FOLDER [--rounds N] [--messages N] [--real 5.5.0]`

The bodies are recorded when it begins: 128 bytes, a tag, a key and a property of the user's own, as a broker (embedded,
or of that release) gives them to a consumer. Processor time of the process for a message. `usual`: body, tag and keys
are asked of each message. `fields`: beside them every field, one attribute after the other. `properties`: beside body,
tag and keys all properties, once.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.peers.rocketmq import BODY, broker, given, real
from mqclient import rocketmq
from mqclient._impl import select
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting import requests

TOPIC: Final = "decodes"
MOST: Final = {"usual": 0.25, "fields": None, "properties": 1.1}
"""Line -> times the Java client's processor time, if there is a bound."""
FIELDS: Final = (
    "topic", "queue_id", "offset", "physical_offset", "flag", "sys_flag", "born_at", "stored_at", "born_host",
    "store_host", "attempts", "prepared_transaction_offset", "body_crc",
)  # fmt: skip


def recorded(name_server: str, count: int) -> Iterator[bytes]:
    """The bodies of the replies by which a consumer gets so many messages."""
    with rocketmq.Client(name_server) as client, client.producer("recorder") as producer, client.admin() as admin:
        admin.create_topic(TOPIC, queues=1)
        messages = [
            rocketmq.Message(TOPIC, BODY, tag=f"t{number % 3}", keys=[f"key-{number}"], properties={"color": "red"})
            for number in range(count)
        ]
        results = producer.send_many(messages, timeout=30)
        assert all(result.ok for result in results)
        queue = producer.send(messages[0]).queue
        while sum(ends["max"] or 0 for ends in admin.offsets(TOPIC).values()) < count:
            time.sleep(0.1)
        (address,) = [one.addresses[0] for one in admin.cluster() if one.name == queue.broker_name]
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port))) as sock:
        offset = 0
        while offset < count:
            body = asked(sock, queue, offset, count - offset)
            offset += len(select("native").remoting.decode_messages(body))
            yield body


def asked(sock: socket.socket, queue: MessageQueue, offset: int, count: int) -> bytes:
    remoting = select("native").remoting
    sock.sendall(requests.peek(remoting, 1, "recorder", queue, offset, count))
    reader = remoting.FrameReader()
    while True:
        for frame in reader.feed(sock.recv(1 << 20)):
            assert frame.code == 0, frame.remark
            body: bytes = frame.body
            return body


def usual(messages: Any) -> None:
    for message in messages:
        message.body  # noqa: B018
        message.tag  # noqa: B018
        message.keys  # noqa: B018


def fields(messages: Any, every: Callable[[Any], Any] = attrgetter(*FIELDS)) -> None:
    for message in messages:
        message.body  # noqa: B018
        message.tag  # noqa: B018
        message.keys  # noqa: B018
        every(message)


def properties(messages: Any) -> None:
    for message in messages:
        message.body  # noqa: B018
        message.tag  # noqa: B018
        message.keys  # noqa: B018
        message.properties  # noqa: B018


LINES: Final[dict[str, Callable[[Any], None]]] = {"usual": usual, "fields": fields, "properties": properties}


def ours(line: str, bodies: list[bytes], count: int) -> float:
    """Nanoseconds of this process for a message."""
    decode, touch = select("native").remoting.decode_messages, LINES[line]

    def run(least: int) -> int:
        done = 0
        while done < least:
            for body in bodies:
                messages = decode(body)
                touch(messages)
                done += len(messages)
        return done

    run(count // 10)
    before = time.process_time_ns()
    done = run(count)
    return (time.process_time_ns() - before) / done


def read(path: Path) -> Iterator[bytes]:
    data = memoryview(path.read_bytes())
    while data:
        size = int.from_bytes(data[:4], "big")
        yield bytes(data[4 : 4 + size])
        data = data[4 + size :]


def round_of(line: str, path: Path, options: Any) -> float:
    """In a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peers.rocketmq_decodes", "--round", line]
    if line == "java":
        program = str(Path(__file__).with_name("RocketMQDecodes.java"))
        command = ["java", "-cp", f"{options.jars}/*", program]
    done = subprocess.run([*command, str(path), str(options.messages)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{line}: {done.stderr[-2000:]}"
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found["ns"]


def compare(options: Any, path: Path) -> None:
    found: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for line in ["java", *LINES]:
            found.setdefault(line, []).append(round_of(line, path, options))
    java = statistics.median(found["java"])
    print("| | Java | mqclient | ratio | asked |\n|---|---|---|---|---|")
    for line, most in MOST.items():
        mine = statistics.median(found[line])
        print(f"| {line} | {java:.0f} ns | {mine:.0f} ns | {mine / java:.2f} | {f'≤ {most}' if most else '—'} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=3_000_000)
    parser.add_argument("--recorded", type=int, default=1024, help="messages in the bodies")
    parser.add_argument("--name-server", help="brokers that are there already; by default an embedded one")
    parser.add_argument("--real", metavar="RELEASE", help="boot a real broker of this release")
    parser.add_argument("--jars", type=Path, help="a folder with the jars of a RocketMQ release")
    parser.add_argument("--round", nargs=3, help=argparse.SUPPRESS)
    options: Any = parser.parse_args()
    if options.round:
        line, name, count = options.round
        print(json.dumps({"ns": ours(line, list(read(Path(name))), int(count))}))
        return
    if options.jars is None:
        parser.error("--jars is needed: this compares with the Java client")
    where = real(options.real) if options.real else given(options.name_server) if options.name_server else broker()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "bodies"
        with where as name_server, path.open("wb") as file:
            for body in recorded(name_server, options.recorded):
                file.write(len(body).to_bytes(4, "big") + body)
        compare(options, path)


if __name__ == "__main__":
    main()

"""SIGKILL under load, again and again on one folder: no acknowledged message lost, no committed offset moves back."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mqclient import _schema
from mqclient._impl import select
from mqclient.rocketmq.codes import Request
from tests.unit.broker.remoting.raw import Raw

MOMENTS = {"test": 2, "ci": 5, "soak": 100}
IMPL = select(os.environ.get("MQCLIENT_IMPL") or "native")


@contextmanager
def serving(
    folder: Path, *options: str, prefix: tuple[str, ...] = (), **more: Any
) -> Iterator[tuple[Any, dict[str, str]]]:
    """A broker process on this folder, and its addresses."""
    command = [*prefix, sys.executable, "-m", "mqclient.broker", "--data", str(folder), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **more) as process:
        try:
            assert process.stdout is not None
            lines = [process.stdout.readline().strip() for _ in range(3)]
            yield process, dict(line.split("=", 1) for line in lines)
        finally:
            process.kill()


class Load:
    """What a broker was sent and has acknowledged, until it was gone."""

    def __init__(self) -> None:
        self.sent = 0
        self.stored: dict[int, bytes] = {}
        """Offset to body."""
        self.committed = -1
        self.entries: dict[int, bytes] = {}
        self.marked = -1
        self.progress = threading.Semaphore(0)

    def until_gone(self, work: Any, address: str) -> threading.Thread:
        def run() -> None:
            with suppress(OSError, EOFError):
                work(address)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def send(self, address: str) -> None:
        """Single messages and batches in turn, each acknowledged before the next."""
        with Raw(IMPL.remoting, address) as raw:
            names = {"a": "producers", "b": "orders", "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0, "i": ""}
            while True:
                bodies = [b"%d" % (self.sent + index) for index in range(1 + self.sent % 4)]
                self.sent += len(bodies)
                if len(bodies) == 1:
                    answer = raw.ask(Request.SEND_MESSAGE_V2, bodies[0], **names)
                else:
                    builder = IMPL.remoting.BatchBuilder()
                    builder.add_many(bodies, [b""] * len(bodies))
                    answer = raw.ask(Request.SEND_BATCH_MESSAGE, builder.seal(), **names, m="true")
                assert answer.code == 0, answer.remark
                first = int(answer.field("queueOffset"))
                self.stored |= {first + index: body for index, body in enumerate(bodies)}
                self.progress.release()

    def commit(self, address: str) -> None:
        with Raw(IMPL.remoting, address) as raw:
            place = {"consumerGroup": "g", "topic": "orders", "queueId": "0"}
            raw.pull("g", "orders", 0)
            while True:
                offset = self.committed + 1
                assert raw.ask(Request.UPDATE_CONSUMER_OFFSET, b"", **place, commitOffset=offset).code == 0
                self.committed = offset
                self.progress.release()

    def produce(self, address: str) -> None:
        """Pulsar: an entry, its receipt, a cumulative acknowledgement with an answer."""
        codec = IMPL.pulsar
        with Frames(address) as frames:
            frames.open("events", "s")
            while True:
                body = b"%d" % len(self.entries)
                frames.send(codec.encode_send(1, len(self.entries), codec.encode_metadata("p", 0, 1), body))
                ledger, entry = frames.next(7)[3:5]
                self.entries[entry] = body
                frames.send(codec.encode_ack(1, [(ledger, entry)], cumulative=True, request_id=9))
                frames.next(38)
                self.marked = entry
                self.progress.release()


class Frames:
    """A bare Pulsar connection."""

    def __init__(self, address: str) -> None:
        host, _, port = address.removeprefix("pulsar://").partition(":")
        self._socket = socket.create_connection((host, int(port)), 10)
        self._reader = IMPL.pulsar.FrameReader()
        self._events: list[Any] = []

    def __enter__(self) -> Frames:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def tell(self, kind: int, name: str, **fields: Any) -> None:
        self.send(IMPL.pulsar.encode_command(kind, _schema.message(name)(**fields).SerializeToString()))

    def open(self, topic: str, subscription: str) -> None:
        """A producer and a consumer, both with the id 1."""
        self.tell(2, "CommandConnect", client_version="test", protocol_version=21)
        self.tell(5, "CommandProducer", topic=topic, producer_id=1, request_id=1)
        self.tell(4, "CommandSubscribe", topic=topic, subscription=subscription, subType=0, consumer_id=1, request_id=2)
        self.next(13)

    def next(self, kind: int) -> Any:
        """The next event of this kind; others are passed over."""
        while True:
            for index, event in enumerate(self._events):
                if event[0] == kind:
                    del self._events[: index + 1]
                    return event
            data = self._socket.recv(65536)
            if not data:
                raise EOFError("the broker closed the connection")
            self._events += self._reader.feed(data)


def check(load: Load, addresses: dict[str, str]) -> None:
    """All that was acknowledged is there."""
    with Raw(IMPL.remoting, addresses["broker-a"]) as raw:
        found: dict[int, bytes] = {}
        while answer := raw.pull("reader", "orders", len(found)):
            if answer.code:
                break
            found |= {message.offset: message.body for message in raw.codec.decode_messages(answer.body)}
        assert {offset: found.get(offset) for offset in load.stored} == load.stored
        answer = raw.ask(Request.QUERY_CONSUMER_OFFSET, consumerGroup="g", topic="orders", queueId=0)
        assert int(answer.field("offset")) >= load.committed
    with Frames(addresses["pulsar_url"]) as frames:
        frames.open("events", "s")
        frames.tell(29, "CommandGetLastMessageId", consumer_id=1, request_id=3)
        _, body = frames.next(30)
        told = _schema.read_command(30, body)
        assert told.last_message_id.entryId >= max(load.entries)
        assert told.consumer_mark_delete_position.entryId >= load.marked


@pytest.mark.timeout(1800)
def test_what_was_acknowledged_survives_sigkill(tmp_path: Path, scale: str) -> None:
    random, load = Random(4), Load()
    with serving(tmp_path) as (_, addresses), Raw(IMPL.remoting, addresses["broker-a"]) as raw:
        raw.create_topic("orders", 1)
    for _ in range(MOMENTS[scale]):
        with serving(tmp_path) as (process, addresses):
            if load.stored:
                check(load, addresses)
            threads = [
                load.until_gone(load.send, addresses["broker-a"]),
                load.until_gone(load.commit, addresses["broker-a"]),
                load.until_gone(load.produce, addresses["pulsar_url"]),
            ]
            for _ in range(random.randrange(20, 400)):
                assert load.progress.acquire(timeout=60)
            process.send_signal(signal.SIGKILL)
            for thread in threads:
                thread.join(60)
    with serving(tmp_path) as (_, addresses):
        check(load, addresses)
    assert len(load.stored) > MOMENTS[scale]


def can_trace() -> bool:
    """Whether strace is there and may look at processes."""
    strace = shutil.which("strace")
    return strace is not None and subprocess.run([strace, "true"], capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not can_trace(), reason="there is no strace, or it may not trace")
def test_with_fsync_the_record_is_synced_between_its_write_and_its_receipt(tmp_path: Path) -> None:
    """The system calls of one send, in their order: written to the file, synced, then the answer leaves."""
    reading, writing = os.pipe()
    calls = "trace=writev,fdatasync,sendto,sendmsg"
    prefix = ("strace", "-D", "-f", "-s", "600", "-e", calls, "-o", f"/dev/fd/{writing}")
    with serving(tmp_path, "--fsync", prefix=prefix, pass_fds=(writing,)) as (process, addresses):
        os.close(writing)
        with Raw(IMPL.remoting, addresses["broker-a"]) as raw:
            raw.create_topic("orders", 1)
            raw.send("orders", b"the body that is looked for")
        process.terminate()
        process.wait(60)
    with open(reading, encoding="latin-1") as trace:  # ends with the tracer
        lines = [line for line in trace if "resumed" not in line]
    (start,) = [place for place, line in enumerate(lines) if "the body that is looked for" in line and "writev" in line]
    assert re.match(r"\d+ +fdatasync\(\d+\) += 0", lines[start + 1])
    (receipt,) = [place for place, line in enumerate(lines) if "queueOffset" in line]
    assert receipt > start + 1


def test_two_processes_cannot_share_a_folder(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, _):
        command = [sys.executable, "-m", "mqclient.broker", "--data", str(tmp_path)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode == 1
        wanted = f"mqclient.broker: the data folder '{tmp_path}' is in use by process {process.pid}: stop that broker, "
        assert second.stderr == wanted + "or give this one its own folder\n"

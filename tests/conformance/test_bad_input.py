"""Bytes and habits that no good client has: the broker answers or closes, says one line, and goes on serving others."""

from __future__ import annotations

import logging
import random
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar, rocketmq
from mqclient._impl import Impl
from mqclient.broker import EmbeddedBroker
from mqclient.rocketmq.codes import Request
from tests.differential.raw_pulsar import RawPulsar
from tests.unit.broker.remoting.raw import Raw, pull_fields

CONNECTIONS = {"test": 300, "ci": 10_000, "soak": 10_000}
NOISES = {"test": 40, "ci": 1000, "soak": 10_000}
COUNT = 200
PATIENCE = 60.0
"""Seconds, on a machine that does much else."""
MEMORY = 160 << 20
"""What the broker's process may grow by, whatever is done to it; one greedy client asked for 800 MB."""


@pytest.fixture(name="broker", scope="module")
def broker_fixture(codec: Impl) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(impl=codec) as broker:
        yield broker


def doors(broker: EmbeddedBroker | Process) -> dict[str, tuple[str, int]]:
    """Every port of a binary protocol."""
    places = [address.rpartition("/")[2] for name, address in broker.addresses().items() if name != "pulsar_rest"]
    return {place: (place.rpartition(":")[0], int(place.rpartition(":")[2])) for place in places}


def serves(broker: EmbeddedBroker | Process) -> None:
    """Both protocols, from end to end."""
    name = f"t{random.getrandbits(48):x}"
    addresses = broker.addresses()
    patient: dict[str, Any] = {"connect_timeout": PATIENCE / 3, "request_timeout": PATIENCE / 3}
    with (
        rocketmq.Client(addresses["name_server"], **patient) as client,
        client.producer("p") as producer,
    ):
        assert producer.send(rocketmq.Message(name, b"x"), timeout=PATIENCE).ok
    with (
        pulsar.Client(addresses["pulsar_url"], operation_timeout=PATIENCE, connect_timeout=PATIENCE) as other,
        other.producer(name, timeout=PATIENCE) as sender,
    ):
        sender.send(b"x", timeout=PATIENCE)


def closed(sock: socket.socket) -> bool:
    """Whether the broker ends this connection, possibly after some words."""
    sock.settimeout(PATIENCE)
    with suppress(ConnectionError):
        while sock.recv(65536):
            pass
        return True
    return True


def lines(caplog: pytest.LogCaptureFixture) -> int:
    """How many connections were said to be closed for their bytes; nothing else was said, and no stack trace."""
    assert all(record.exc_info is None for record in caplog.records)
    assert all(record.levelno == logging.INFO or "bad bytes" in record.getMessage() for record in caplog.records)
    return sum("bad bytes" in record.getMessage() for record in caplog.records)


def frames_of_noise(seed: int) -> list[bytes]:
    dice = random.Random(seed)
    return [b"\xff" * 4 + dice.randbytes(dice.randrange(1, 2000)) for _ in range(40)]


def test_random_bytes_close_with_one_line_each(broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    for address in doors(broker).values():
        caplog.clear()
        with caplog.at_level(logging.INFO, "mqclient.broker"):
            noises = frames_of_noise(address[1])
            for noise in noises:
                with socket.create_connection(address) as sock:
                    sock.sendall(noise)
                    assert closed(sock)
        assert lines(caplog) == len(noises)
    serves(broker)


@pytest.mark.parametrize("length", [0x7FFFFFFF, 0x10000000, 0xFFFFFFFF])
def test_lengths_beyond_all_measure_close_at_once(
    broker: EmbeddedBroker, length: int, caplog: pytest.LogCaptureFixture
) -> None:
    for address in doors(broker).values():
        caplog.clear()
        with caplog.at_level(logging.INFO, "mqclient.broker"), socket.create_connection(address) as sock:
            sock.sendall(length.to_bytes(4, "big") + b"\x00\x00\x00\x10")
            assert closed(sock)
        assert lines(caplog) == 1
    serves(broker)


def test_half_frames_wait_and_hurt_nobody(broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    halves = []
    with caplog.at_level(logging.INFO, "mqclient.broker"):
        for address in doors(broker).values():
            for cut in (1, 3, 4, 7, 100):
                half = socket.create_connection(address)
                half.sendall(((1 << 19).to_bytes(4, "big") + b"\x00\x00\x00\x7d" + b"{" * 200)[:cut])
                halves.append(half)
        serves(broker)
        for half in halves:
            half.close()
        serves(broker)
    assert not [record for record in caplog.records if record.exc_info]


# ---- in a process of its own, whose memory can be told


class Process:
    """`python -m mqclient.broker` and what it takes."""

    def __init__(self, log: Path, impl: str) -> None:
        command = [sys.executable, "-m", "mqclient.broker", "--impl", impl]
        with log.open("wb") as errors:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        self._addresses: dict[str, str] = {}
        assert self._process.stdout is not None
        while "pulsar_rest" not in self._addresses:
            line = self._process.stdout.readline().decode().strip()
            assert line, f"the broker did not start: {log.read_text()}"
            name, _, address = line.partition("=")
            self._addresses[name] = address

    def addresses(self) -> dict[str, str]:
        return self._addresses

    def memory(self) -> int:
        """Resident bytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) << 10

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)


@pytest.fixture(name="process")
def process_fixture(tmp_path: Path, codec: Impl) -> Iterator[Process]:
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is read from /proc")
    process = Process(tmp_path / "log", codec.name)
    yield process
    process.stop()
    assert "Traceback" not in (tmp_path / "log").read_text()


def room_for(connections: int) -> None:
    """Files that this process may open, and those that it starts."""
    needed = connections + 500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"a process may open {hard} files here, {needed} are needed: ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))


@pytest.fixture(name="connections")
def connections_fixture(scale: str) -> int:
    """Before `process`, which inherits how many files may be open."""
    room_for(CONNECTIONS[scale])
    return CONNECTIONS[scale]


@pytest.mark.timeout(300)
def test_idle_connections_and_half_frames_cost_others_nothing(connections: int, process: Process) -> None:
    """So many at once, over all doors: idle first, then each with a frame of which the most part never comes."""
    allowed = (24 << 20) + connections * (8 << 10)
    places = [*doors(process).values(), ("127.0.0.1", int(process.addresses()["pulsar_rest"].rpartition(":")[2]))]
    serves(process)
    before = process.memory()
    with ExitStack() as stack:
        idle = [
            stack.enter_context(socket.create_connection(places[number % len(places)])) for number in range(connections)
        ]
        serves(process)
        assert process.memory() - before < allowed
        half = (1 << 19).to_bytes(4, "big") + b"\x00\x00\x00\x7d" + b"{" * 300
        for sock in idle:
            sock.sendall(half)
        serves(process)
        assert process.memory() - before < allowed
    serves(process)


@pytest.mark.timeout(300)
def test_noise_leaves_no_memory_behind(process: Process, scale: str) -> None:
    dice = random.Random(4)
    places = list(doors(process).values())
    serves(process)
    before = process.memory()
    for number in range(NOISES[scale]):
        with socket.create_connection(places[number % len(places)]) as sock, suppress(ConnectionError):
            sock.sendall(dice.randbytes(dice.randrange(1, 20_000)))
            sock.shutdown(socket.SHUT_WR)
            assert closed(sock)
    serves(process)
    assert process.memory() - before < MEMORY


@pytest.mark.ci
def test_a_rocketmq_client_that_never_reads(process: Process, codec: Impl) -> None:
    """Pulls for 800 MB are asked for and nothing is read; others are served, and the memory stays where it was."""
    remoting = codec.remoting
    with (
        Raw(remoting, process.addresses()["broker-a"]) as good,
        Raw(remoting, process.addresses()["broker-a"]) as greedy,
    ):
        good.create_topic("much", 1)
        for _ in range(4):
            good.send("much", bytes(256 << 10))
        before = process.memory()
        fields = {name: str(value) for name, value in pull_fields("greedy", "much", 0).items()}
        frames = [remoting.encode_frame(int(Request.PULL_MESSAGE), number, fields=fields) for number in range(800)]
        _push(greedy._socket, b"".join(frames))
        for _ in range(50):
            assert good.ask(Request.GET_MAX_OFFSET, topic="much", queueId=0).field("offset") == "4"
        assert process.memory() - before < MEMORY
        # What it did not read is still there for it, once it reads.
        assert greedy.answer(600, 60).code == 0


def _push(sock: socket.socket, data: bytes) -> None:
    """Write as much as the peer takes."""
    sock.settimeout(1)
    view = memoryview(data)
    with suppress(TimeoutError):
        while view:
            view = view[sock.send(view[: 1 << 16]) :]
    sock.settimeout(None)


@pytest.mark.ci
def test_a_pulsar_consumer_that_never_reads(process: Process, codec: Impl) -> None:
    """It grants permits for everything; what waits for it is in the log, and not a second time in its connection."""
    url = process.addresses()["pulsar_url"]
    with pulsar.Client(url) as client, RawPulsar(codec.pulsar, url) as greedy:
        fields = {"topic": "much", "subscription": "greedy", "subType": 0, "initialPosition": 1, "consumer_id": 0}
        assert greedy.ask("SUBSCRIBE", **fields)[0] == "SUCCESS"
        greedy.write(codec.pulsar.encode_flow(0, 1_000_000))
        before = process.memory()
        with client.producer("much") as producer:
            for _ in range(COUNT):
                producer.send(bytes(1 << 20))
        assert process.memory() - before < (COUNT << 20) + MEMORY
        with client.consumer("much", "other", start="earliest") as consumer:
            assert len(consumer.receive(timeout=20).body) == 1 << 20

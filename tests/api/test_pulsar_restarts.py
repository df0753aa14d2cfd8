"""A broker that is killed under load and comes back: nothing acknowledged is lost; deduplication, and what it is for.

Each time the answers are held back before the kill, so that the client does not know what was stored, and sends it
again.
"""

# ruff: noqa: SIM117 - who is inside of whom is the point here

from __future__ import annotations

import asyncio
import functools
import subprocess
import sys
import time
import urllib.error
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient.core.driver import Address
from mqclient.errors import DeadlineError
from mqclient.pulsar import aio
from mqclient.pulsar.client import ClientEngine
from tests.real.fixtures import ON_PULSAR
from tests.real.jars import Unavailable
from tests.real.pulsar import RealPulsar
from tests.support.proxy import CuttingProxy
from tests.support.pulsar_cluster import PulsarCluster

KILLS = {"test": 1, "ci": 1, "soak": 20}
ENTRIES: dict[str, dict[str, Any]] = {
    "batches": {"batch_max_messages": 10},
    "alone": {"batching": False},
    "in parts": {"batching": False, "chunking": True, "chunk_size": 500},
}
LONG = 180.0


class Embedded:
    """A process with a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.start()

    def start(self) -> None:
        """Again where it was before."""
        command = [sys.executable, "-m", "mqclient.broker", "--door", "pulsar", "--data", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        lines = [self._process.stdout.readline().strip() for _ in range(2)]
        addresses = dict(line.split("=", 1) for line in lines)
        self.url, self.rest = addresses["pulsar_url"], addresses["pulsar_rest"]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Real:
    """A standalone of its own."""

    def __init__(self, folder: Path) -> None:
        self._pulsar = RealPulsar(folder).__enter__()
        self.url, self.rest = self._pulsar.url, self._pulsar.rest
        self.start, self.kill = self._pulsar.restart, self._pulsar.jvm.kill


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=ON_PULSAR)])
def mortal(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if request.param == "embedded":
        broker: Any = Embedded(tmp_path_factory.mktemp("restarts"))
    elif "pulsar" not in str(request.config.getoption("--real", "")).split(","):
        pytest.skip("needs a real broker: run `make real`")
    else:
        try:
            broker = Real(tmp_path_factory.mktemp("restarts"))
        except Unavailable as error:
            pytest.skip(str(error))
    yield broker
    broker.kill()


def namespace(broker: Any, deduplication: bool) -> str:
    """One that has deduplication, or not."""
    name = f"public/{'once' if deduplication else 'perhaps-twice'}"
    rest = PulsarCluster(broker.url, real=broker).rest
    try:
        rest("PUT", f"namespaces/{name}")
    except urllib.error.HTTPError as error:
        if error.code != 409:  # it is there from the test before
            raise
    rest("POST", f"namespaces/{name}/deduplication", deduplication)
    return name


class Load:
    """One producer that sends all the time, one consumer that acknowledges all it gets."""

    def __init__(self, producer: aio.Producer, consumer: aio.Consumer, padding: int) -> None:
        self.producer = producer
        self.consumer = consumer
        self.padding = b"." * padding
        self.sent = 0
        self.stored: set[bytes] = set()
        self.seen: set[bytes] = set()
        self.stopping = False
        self.all_sent = False

    async def send(self) -> None:
        while not self.stopping:
            many = [b"%d" % number + self.padding for number in range(self.sent, self.sent + 25)]
            self.sent += 25
            outcomes = await self.producer.send_many(many, timeout=LONG)
            assert all(outcome.ok for outcome in outcomes), outcomes
            self.stored.update(many)
            await asyncio.sleep(0)
        self.all_sent = True

    async def receive(self) -> None:
        last = time.monotonic()
        while not (self.all_sent and self.stored <= self.seen):
            try:
                message = await self.consumer.receive(1)
            except DeadlineError:
                missing = sorted(self.stored - self.seen)[:5]
                assert time.monotonic() < last + LONG, (missing, self.consumer.diagnose())
                continue
            last = time.monotonic()
            self.seen.add(message.body)
            await self.consumer.ack(message)

    async def run(self, killing: Coroutine[Any, Any, None]) -> None:
        """All of it; the first that fails ends the others."""
        tasks = [asyncio.create_task(one) for one in (self.send(), self.receive(), killing)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def goes_on(self) -> None:
        """Something new was stored, and received."""
        stored, seen = len(self.stored), len(self.seen)
        await until(
            lambda: len(self.stored) >= stored + 50 and len(self.seen) > seen,
            lambda: (self.producer.diagnose(), self.consumer.diagnose(), len(self.seen)),
        )


async def until(true: Callable[[], bool], what: Callable[[], object] | None = None) -> None:
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, what() if what is not None else "nothing goes on"
        await asyncio.sleep(0.005)


async def kill_between_storing_and_answering(broker: Any, proxy: CuttingProxy, kills: int, load: Load) -> None:
    loop = asyncio.get_running_loop()
    for _ in range(kills):
        await load.goes_on()
        proxy.hold_answers()
        await until(lambda: proxy.held > 0)
        await loop.run_in_executor(None, broker.kill)
        proxy.cut()
        proxy.flow()
        await loop.run_in_executor(None, broker.start)
    await load.goes_on()
    load.stopping = True


def by_proxy(monkeypatch: pytest.MonkeyPatch, proxy: CuttingProxy) -> None:
    """Brokers name themselves in their answers to lookups: who came by the proxy goes on by it."""
    plain, address = ClientEngine.broker_address, Address("127.0.0.1", proxy.port, "proxy")
    monkeypatch.setattr(
        ClientEngine,
        "broker_address",
        lambda self, url: address if self.url.text.endswith(f":{proxy.port}") else plain(self, url),
    )


async def all_of(client: aio.Client, topic: str) -> list[bytes]:
    """What the topic holds."""
    bodies = []
    async with client.reader(topic, start="earliest") as reader:
        while await reader.has_message_available(60):
            bodies.append((await reader.receive(60)).body)
    return bodies


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("deduplication", [True, False], ids=["once", "perhaps twice"])
@pytest.mark.parametrize(
    "entries", ["batches", pytest.param("alone", marks=pytest.mark.ci), pytest.param("in parts", marks=pytest.mark.ci)]
)
async def test_killed_under_load(
    mortal: Any, topic: str, impl: str, scale: str, monkeypatch: pytest.MonkeyPatch, entries: str, deduplication: bool
) -> None:
    topic = f"persistent://{namespace(mortal, deduplication)}/{topic}"
    host, port = mortal.url.removeprefix("pulsar://").split(":")
    with CuttingProxy((host, int(port))) as proxy:
        by_proxy(monkeypatch, proxy)
        sending, receiving = f"pulsar://127.0.0.1:{proxy.port}", mortal.url
        async with aio.Client(receiving, impl=impl) as client, aio.Client(sending, impl=impl) as sender:
            await (await client.consumer(topic, "keeper")).close()  # else a broker drops what "s" has acknowledged
            async with client.consumer(topic, "s") as consumer:
                async with sender.producer(topic, send_timeout=0, **ENTRIES[entries]) as producer:
                    load = Load(producer, consumer, 1000 if entries == "in parts" else 10)
                    killing = kill_between_storing_and_answering(mortal, proxy, KILLS[scale], load)
                    await asyncio.wait_for(load.run(killing), 10 * LONG)
                    assert load.stored <= load.seen
            there = await all_of(client, topic)
    times = Counter(there)
    assert load.stored == set(there)
    numbers = [int(body.rstrip(b".")) for body in dict.fromkeys(there)]
    assert numbers == sorted(numbers), "what was sent again came out of order"
    assert (max(times.values()) > 1) is not deduplication, times.most_common(3)


async def test_a_message_of_which_some_parts_were_stored(
    mortal: Any, topic: str, impl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent again it is whole: a broker learns sequence ids anew from what it has stored, and takes all parts of it.

    It is the first message of one producer, and a later one of another.
    """
    topics = [f"persistent://{namespace(mortal, True)}/{topic}-{before}" for before in (0, 1)]
    body = bytes(range(250)) * 12_000
    options: dict[str, Any] = {"batching": False, "chunking": True, "chunk_size": 1_000_000, "send_timeout": 0}
    host, port = mortal.url.removeprefix("pulsar://").split(":")
    with CuttingProxy((host, int(port))) as proxy:
        by_proxy(monkeypatch, proxy)
        async with aio.Client(f"pulsar://127.0.0.1:{proxy.port}", impl=impl) as client:
            for before, name in enumerate(topics):
                async with client.producer(name, **options) as producer:
                    for _ in range(before):
                        await producer.send(b"before")
                    proxy.tap = stall_after(2_500_000, proxy)
                    sent = asyncio.create_task(producer.send(body, timeout=LONG))
                    await until(functools.partial(stored, mortal, name, before + 2))
                    await asyncio.to_thread(mortal.kill)
                    proxy.cut()
                    proxy.flow()
                    await asyncio.to_thread(mortal.start)
                    await sent
    async with aio.Client(mortal.url, impl=impl) as client:
        for before, name in enumerate(topics):
            assert await all_of(client, name) == [b"before"] * before + [body]


def stored(broker: Any, topic: str, entries: int) -> bool:
    """Whether the topic has these at least."""
    numbers = PulsarCluster(broker.url, real=broker).rest("GET", f"{topic.replace('://', '/')}/internalStats")
    return int(numbers["numberOfEntries"]) >= entries


def stall_after(most: int, proxy: CuttingProxy) -> Callable[[bytes], None]:
    """For a proxy's tap: after so many bytes it forwards nothing more."""
    seen = 0

    def tap(data: bytes) -> None:
        nonlocal seen
        seen += len(data)
        if seen > most:
            proxy.tap = None
            proxy.stall()

    return tap

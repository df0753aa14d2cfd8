"""Brokers that are killed, stopped and come back under load: a ledger of sends against receipts against deliveries.

Nothing acknowledged is lost, nothing arrives that failed for certain, each queue keeps the order of a key, and a broker
that is back gets messages again at once.
"""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient import rocketmq
from mqclient.errors import MQError
from mqclient.rocketmq import Message, TransactionState
from mqclient.rocketmq.codes import Request
from mqclient.rocketmq.remoting.bodies import read_body
from mqclient.rocketmq.remoting.routes import parse_route
from tests.real.fixtures import ON_ROCKETMQ
from tests.real.jars import Unavailable
from tests.real.process import accepts
from tests.real.rocketmq import RealRocketMQ
from tests.support.seen import unique

ROUNDS = {"test": 1, "ci": 3, "soak": 100}
LONG = 120.0
BACK = {"test": 20.0, "ci": 20.0, "soak": 1.0}
"""Seconds from the probe to the first acknowledgement, 95 of 100: one on a quiet machine, and these are not."""
LOG = logging.getLogger("tests.restarts")
KEYS = 4
SERVE = """
import signal, sys
from mqclient.broker import EmbeddedBroker
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
quick = {"transactionTimeOut": 500, "transactionCheckInterval": 500, "transactionCheckMax": 100_000}
with EmbeddedBroker(doors=["rocketmq"], brokers=2, data=sys.argv[1], **quick) as broker:
    print(broker.name_server, flush=True)
    signal.sigwait({signal.SIGTERM})
"""


class Embedded:
    """One process with a folder: its two brokers fall and rise together."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.start(0)

    def start(self, _: int) -> set[str]:
        """Again where it was before; whom that concerns."""
        command = [sys.executable, "-c", SERVE, str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.name_server = self._process.stdout.readline().strip()
        return {"broker-a", "broker-b"}

    def end(self, _: int, clean: bool) -> None:
        if clean:
            self._process.terminate()
        else:
            self._process.kill()
        self._process.wait(LONG)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def close(self) -> None:
        self.end(0, clean=False)


class Real:
    """Two brokers of their own, behind a name server that stays."""

    def __init__(self, folder: Path) -> None:
        self._cluster = RealRocketMQ(folder).__enter__()
        self.name_server = self._cluster.name_server

    def start(self, number: int) -> set[str]:
        broker = self._cluster.brokers[number]
        broker.start()
        return {broker.name}

    def end(self, number: int, clean: bool) -> None:
        broker = self._cluster.brokers[number]
        if clean:
            broker.stop()
        else:
            broker.kill()

    def close(self) -> None:
        self._cluster.stop()


@pytest.fixture(params=["embedded", pytest.param("real", marks=ON_ROCKETMQ)])
def mortal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "embedded":
        cluster: Any = Embedded(tmp_path)
    elif "rocketmq" not in str(request.config.getoption("--real", "")).split(","):
        pytest.skip("needs a real broker: run `make real`")
    else:
        try:
            cluster = Real(tmp_path)
        except Unavailable as error:
            pytest.skip(str(error))
    yield cluster
    cluster.close()


class Ledger:
    """What was sent, what is known of it, and what arrived."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stored: set[bytes] = set()
        self.refused: set[bytes] = set()
        """These failed for certain: they may never arrive."""
        self.acks: deque[tuple[float, str]] = deque(maxlen=100_000)
        self.kinds: Counter[str] = Counter()
        self.seen: Counter[bytes] = Counter()
        self.order: dict[Any, list[int]] = defaultdict(list)
        self.stopping = threading.Event()

    def ack(self, body: bytes, receipt: Any) -> None:
        with self.lock:
            self.stored.add(body)
            self.kinds[body.split(b"-")[0].decode()] += 1
            self.acks.append((time.monotonic(), receipt.queue.broker_name))

    def failed(self, body: bytes, error: MQError) -> None:
        if not error.outcome_unknown:
            with self.lock:
                self.refused.add(body)

    def handle(self, messages: Any) -> None:
        with self.lock:
            for message in messages:
                self.seen[message.body] += 1
                if message.body.startswith(b"ordered-") and self.seen[message.body] == 1:
                    _, key, number = message.body.split(b"-")
                    self.order[message.queue, key].append(int(number))


class Senders:
    """The four ways, each in a thread of its own; the first that fails otherwise than as it may ends the test."""

    def __init__(self, client: rocketmq.Client, topic: str, ledger: Ledger) -> None:
        self._ledger = ledger
        self._topic = topic
        self._producer = client.producer(unique("p"))
        self._decided = client.transactional_producer(unique("tx"), check=self._state)
        self.errors: list[BaseException] = []
        ways = (self._sync, self._future, self._ordered, self._transactional)
        self._threads = [threading.Thread(target=self._run, args=(way,), daemon=True) for way in ways]
        for thread in self._threads:
            thread.start()

    def _run(self, way: Callable[[int], None]) -> None:
        number = 0
        try:
            while not self._ledger.stopping.is_set():
                way(number)
                number += 1
                self._ledger.stopping.wait(0.002)  # the ledger is about outcomes, not about rates
        except BaseException as error:
            self.errors.append(error)

    def _send(self, body: bytes, **options: Any) -> bool:
        try:
            receipt = self._producer.send(Message(self._topic, body), timeout=2, **options)
        except MQError as error:
            self._ledger.failed(body, error)
            return False
        self._ledger.ack(body, receipt)
        return True

    def _sync(self, number: int) -> None:
        self._send(b"sync-%d" % number)

    def _future(self, number: int) -> None:
        bodies = [b"future-%d-%d" % (number, place) for place in range(20)]
        futures = [(body, self._producer.submit(Message(self._topic, body))) for body in bodies]
        for body, future in futures:
            try:
                self._ledger.ack(body, future.result())
            except MQError as error:
                self._ledger.failed(body, error)

    def _ordered(self, number: int) -> None:
        """The next one only after this one is stored: it is sent until it is."""
        key = number % KEYS
        body = b"ordered-%d-%d" % (key, number)
        while not self._send(body, key=f"key-{key}"):
            if self._ledger.stopping.is_set():
                return
        self._ledger.refused.discard(body)

    @staticmethod
    def _state(message: Any) -> TransactionState:
        odd = int(message.body.split(b"-")[1]) % 2
        return TransactionState.ROLLBACK if odd else TransactionState.COMMIT

    def _transactional(self, number: int) -> None:
        body = b"decided-%d" % number
        try:
            transaction = self._decided.begin(Message(self._topic, body), timeout=2)
            if number % 2:
                transaction.rollback()
                self._ledger.refused.add(body)
            else:
                transaction.commit()
                self._ledger.ack(body, transaction.receipt)
        except MQError as error:
            self._ledger.failed(body, error)

    def end(self) -> None:
        """Send no more. The producers stay: a commit that a broker took to its grave is asked for when it is back."""
        self._ledger.stopping.set()
        for thread in self._threads:
            thread.join(LONG)
            assert not thread.is_alive(), "a sender hangs"
        if self.errors:
            raise self.errors[0]

    def close(self) -> None:
        self._producer.close()
        self._decided.close()


def until(met: Callable[[], bool], story: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not met():
        assert time.monotonic() < end, story()
        time.sleep(0.02)


def in_route(name_server: str, topic: str) -> set[str]:
    """The probe: the brokers that a name server tells now (request 105), and that take connections."""
    host, _, port = name_server.partition(":")
    asked = {"code": Request.GET_ROUTEINFO_BY_TOPIC, "flag": 0, "opaque": 1, "extFields": {"topic": topic}}
    header = json.dumps(asked).encode()
    frame = len(header).to_bytes(4, "big") + header
    try:
        with socket.create_connection((host, int(port)), timeout=10) as sock:
            sock.sendall(len(frame).to_bytes(4, "big") + frame)
            with sock.makefile("rb") as reply:
                answer = reply.read(int.from_bytes(reply.read(4), "big"))
    except OSError:
        return set()
    body = answer[4 + int.from_bytes(answer[1:4], "big") :]
    brokers = parse_route(topic, read_body(body)).brokers if body else {}
    return {name for name, numbers in brokers.items() if accepts(int(numbers[0].rpartition(":")[2]))}


def one_round(mortal: Any, number: int, topic: str, ledger: Ledger) -> float:
    """One broker ends and comes back; the seconds from the probe to its first acknowledgement."""
    kinds = ledger.kinds.copy()
    until(lambda: all(ledger.kinds[kind] >= kinds[kind] + 5 for kind in kinds), lambda: (kinds, ledger.kinds))
    mortal.end(number % 2, clean=number % 4 >= 2)
    whom: set[str] = mortal.start(number % 2)
    until(lambda: whom <= in_route(mortal.name_server, topic), lambda: (whom, in_route(mortal.name_server, topic)))
    probed = time.monotonic()
    back: dict[str, float] = {}

    def all_back() -> bool:
        with ledger.lock:
            for when, name in ledger.acks:
                if when >= probed:
                    back.setdefault(name, when)
        return whom <= set(back)

    until(all_back, lambda: (whom, back, ledger.kinds))
    return max(back[name] for name in whom) - probed


@pytest.mark.timeout(4 * 3600)  # each wait has a limit of its own; a real broker takes a minute to come back
def test_brokers_that_are_killed_and_stopped_under_load(mortal: Any, scale: str) -> None:
    topic, ledger = unique("restarts"), Ledger()
    with rocketmq.Client(mortal.name_server) as client:
        with client.admin() as admin:
            admin.create_topic(topic, 2)
        consumer = client.push_consumer(unique("g"), topic, ledger.handle, start="first", orderly=True, batch=8)
        senders = Senders(client, topic, ledger)
        until(lambda: len(ledger.kinds) == 4, lambda: (ledger.kinds, senders.errors))
        try:
            took = [one_round(mortal, number, topic, ledger) for number in range(ROUNDS[scale])]
            kinds = ledger.kinds.copy()
            until(lambda: all(ledger.kinds[kind] > kinds[kind] for kind in kinds), lambda: (kinds, ledger.kinds))
        finally:
            senders.end()
        until(
            lambda: ledger.stored <= ledger.seen.keys(),
            lambda: (sorted(ledger.stored - ledger.seen.keys())[:20], consumer.diagnose()),
        )
        consumer.close()
        senders.close()
    LOG.info("first acknowledgement after the probe: %s; stored %s", sorted(took), ledger.kinds)
    assert ledger.refused & ledger.seen.keys() == set()
    for place, numbers in ledger.order.items():
        assert numbers == sorted(numbers), place
    assert sorted(took)[int(0.95 * (len(took) - 1))] <= BACK[scale], took

"""What only a process of its own shows of a Pulsar client: exits without close, pickles, Ctrl-C."""

from __future__ import annotations

import multiprocessing
import pickle
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from mqclient import pulsar as face
from mqclient.broker import EmbeddedBroker
from mqclient.pulsar import aio
from tests.support.pulsar_cluster import PulsarCluster

WITHIN = 60.0

EXIT = """
import sys
from mqclient import pulsar
client = pulsar.Client(sys.argv[1])
producer = client.producer(sys.argv[2], linger=5.0)
for number in range(50):
    producer.submit(b"%d" % number)
"""
EXIT_ASYNC = """
import asyncio, sys
from mqclient.pulsar import aio
async def main():
    client = aio.Client(sys.argv[1])
    producer = await client.producer(sys.argv[2], linger=5.0)
    tasks = [asyncio.create_task(producer.send(b"%d" % number)) for number in range(50)]
    await asyncio.sleep(0)
asyncio.run(main())
"""
EXIT_CONSUMING = """
import sys
from mqclient import pulsar
client = pulsar.Client(sys.argv[1])
listening = client.consumer(sys.argv[2], "listening", start="earliest", listener=lambda message: None)
consumer = client.consumer(sys.argv[2], "s", start="earliest", ack_grouping=60.0)
for number in range(50):
    consumer.ack(consumer.receive(30))
"""


def run(program: str, *arguments: str) -> tuple[int, str]:
    # from 3.12 on, Python says that forks and threads are no friends
    line = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=WITHIN, check=False)
    return done.returncode, done.stdout + done.stderr


def test_exit_without_close_sends_what_it_can(pulsar: PulsarCluster, topic: str) -> None:
    with face.Client(pulsar.url) as client, client.consumer(topic, "s") as consumer:
        assert run(EXIT, pulsar.url, topic) == (0, "")
        assert [consumer.receive(30).body for _ in range(50)] == [b"%d" % number for number in range(50)]


def test_exit_without_close_tells_acknowledgements(pulsar: PulsarCluster, topic: str) -> None:
    with face.Client(pulsar.url) as client, client.producer(topic) as producer:
        assert all(outcome.ok for outcome in producer.send_many([b"%d" % number for number in range(50)]))
        assert run(EXIT_CONSUMING, pulsar.url, topic) == (0, "")
        producer.send(b"after")
        with client.consumer(topic, "s") as consumer:
            assert consumer.receive(30).body == b"after"


@pytest.mark.parametrize("program", [EXIT, EXIT_ASYNC], ids=["sync", "async"])
def test_exit_without_close_says_what_was_not_sent(program: str) -> None:
    """The broker opens a producer, and gives no receipts: exit must neither hang nor be silent."""
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as broker:
        broker.control.drop("SEND", times=1000)
        began = time.monotonic()
        code, words = run(program, broker.pulsar_url, "orders")
        took = time.monotonic() - began
    assert code == 0, words
    assert "messages were unsent, or unanswered: 50 of the producer of persistent://public/default/orders" in words
    assert "Traceback" not in words
    assert took < 15


QUIET = """
import logging, sys, threading
from mqclient import pulsar
if len(sys.argv) > 3:
    logging.basicConfig()
done = threading.Event()
def handle(message):
    done.set()
    raise ValueError("a handler's bug")
with pulsar.Client(sys.argv[1], auth=pulsar.token("a-secret-token")) as client:
    with client.consumer(sys.argv[2], "s", listener=handle, start="earliest"):
        client.producer(sys.argv[2]).send(b"a-secret-body")
        assert done.wait(30)
"""


def test_it_logs_nothing_unless_asked_to_and_then_no_secrets(pulsar: PulsarCluster, topic: str) -> None:
    assert run(QUIET, pulsar.url, topic) == (0, "")
    code, words = run(QUIET, pulsar.url, f"{topic}-told", "aloud")
    assert code == 0
    assert "WARNING:mqclient.pulsar" in words
    assert "a handler's bug" in words
    assert "a-secret" not in words


WAITING = EXIT.replace("for number", "print('open', flush=True)\ninput()\nfor number")


def test_exit_when_the_broker_is_gone() -> None:
    broker = EmbeddedBroker(doors=["pulsar"], impl="pure").start()
    line = [sys.executable, "-c", WAITING, broker.pulsar_url, "orders"]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            broker.stop()
            began = time.monotonic()
            _, words = process.communicate("\n", timeout=WITHIN)
        finally:
            process.kill()
            broker.stop()
    assert process.returncode == 0, words
    assert "50 of the producer of persistent://public/default/orders" in words
    assert "Traceback" not in words
    assert time.monotonic() - began < 15


def work(client: Any, topic: str, name: str) -> None:
    """In a process of multiprocessing: nothing is closed."""
    producer = client.producer(topic)
    for number in range(10):
        producer.submit(f"{name}-{number}".encode())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_multiprocessing(pulsar: PulsarCluster, topic: str, method: str) -> None:
    context: Any = multiprocessing.get_context(method)
    with face.Client(pulsar.url, operation_timeout=40.0) as client, client.consumer(topic, "s") as consumer:
        workers = [context.Process(target=work, args=(client, topic, f"child-{number}")) for number in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(WITHIN)
        assert [worker.exitcode for worker in workers] == [0, 0]
        seen = sorted(consumer.receive(30).body for _ in range(20))
    assert seen == sorted(f"child-{child}-{number}".encode() for child in range(2) for number in range(10))


FORKING = """
import os, sys, threading
from mqclient import pulsar
client = pulsar.Client(sys.argv[1])
producer = client.producer(sys.argv[2])
producer.send(b"parent-0")
stopping, sent = threading.Event(), 0
def load():
    global sent
    while not stopping.is_set():
        sent += 1
        producer.send(b"parent-%d" % sent)
thread = threading.Thread(target=load)
thread.start()
children = []
for child in range(4):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            bodies = [b"child-%d-%d" % (child, number) for number in range(10)]
            assert all(one.ok for one in producer.send_many(bodies, timeout=30))
            producer.send(b"child-%d-10" % child, timeout=30)
            producer.close()
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    children.append(pid)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
stopping.set()
thread.join()
print(codes, sent)
client.close()
"""


def test_forked_workers_use_the_producer_of_their_parent(pulsar: PulsarCluster, topic: str) -> None:
    """As preloaded applications do, while the parent's threads go on sending: each message arrives once."""
    with face.Client(pulsar.url) as client, client.consumer(topic, "s") as consumer:
        code, words = run(FORKING, pulsar.url, topic)
        assert code == 0, words
        assert words.startswith("[0, 0, 0, 0]"), words
        sent = int(words.split()[-1])
        expected = [f"parent-{number}" for number in range(sent + 1)]
        expected += [f"child-{child}-{number}" for child in range(4) for number in range(11)]
        got = [consumer.receive(30) for _ in expected]
        assert sorted(message.body.decode() for message in got) == sorted(expected)
        assert len({message.producer_name for message in got}) == 5


def test_a_pickled_client_connects_when_it_is_used(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    given: dict[str, Any] = {"auth": face.token("secret"), "operation_timeout": 41.0, "impl": impl}
    with face.Client(pulsar.url, **given) as client:
        data, threads = pickle.dumps(client), threading.active_count()
        there = pickle.loads(data)
        assert threading.active_count() == threads
        with there, there.producer(topic) as producer, client.consumer(topic, "s", start="earliest") as consumer:
            producer.send(b"x")
            assert consumer.receive(30).body == b"x"
            assert there._engine.operation_timeout == 41.0
            assert there._engine.impl is client._engine.impl
            for one in (producer, consumer):
                with pytest.raises(TypeError, match="cannot be pickled: make another one in the other process"):
                    pickle.dumps(one)


async def test_a_pickled_client_of_a_loop(pulsar: PulsarCluster, topic: str, impl: str) -> None:
    async with aio.Client(pulsar.url, impl=impl) as client, client.producer(topic) as producer:
        there = pickle.loads(pickle.dumps(client))
        async with there, there.reader(topic, start="earliest") as reader:
            await producer.send(b"x")
            assert (await reader.receive(30)).body == b"x"


CALLS = {
    "receive": "empty.receive()",
    "receive_many": "empty.receive_many(10)",
    "iteration": "next(iter(empty))",
    "ack_confirmed": "taken.ack_confirmed(message, timeout=60)",
    "last_message_id": "taken.last_message_id(timeout=60)",
    "seek": "taken.seek(0, timeout=60)",
    "send": "stuck.send(b'x', timeout=60)",
    "send_many": "stuck.send_many([b'x'] * 3, timeout=60)",
    "future": "stuck.submit(b'x').result(60)",
    "flush": "stuck.submit(b'x'); stuck.flush()",
    "close": "stuck.close()",
    "open": "silent.producer(topic, timeout=60)",
    "transaction": "silent.transaction(timeout=60)",
}
INTERRUPT = """
import os, signal, socket, sys, threading, time
from mqclient import pulsar
url, topic, calls = sys.argv[1], sys.argv[2], sys.argv[3:]
sent = 0.0
def note(number, frame):
    global sent
    sent = time.monotonic()
    signal.default_int_handler(number, frame)
signal.signal(signal.SIGINT, note)
nobody = socket.create_server(("127.0.0.1", 0), backlog=100)
silent = pulsar.Client("pulsar://127.0.0.1:%d" % nobody.getsockname()[1], connect_timeout=60.0, operation_timeout=60.0)
client = pulsar.Client(url, operation_timeout=60.0)
empty = client.consumer(topic + "-empty", "s")
client.producer(topic).send(b"x")
taken = client.consumer(topic, "s", start="earliest")
message = taken.receive(30)
stuck = client.producer(topic + "-stuck")
print("ready", flush=True)
sys.stdin.readline()
for call in calls:
    threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        exec(call)
        print("no interrupt in", call, flush=True)
    except KeyboardInterrupt:
        print(f"{time.monotonic() - sent:.4f} {call}", flush=True)
os._exit(0)
"""


def test_ctrl_c_ends_every_blocking_call_at_once() -> None:
    with EmbeddedBroker(doors=["pulsar"], impl="pure") as broker:
        line = [sys.executable, "-c", INTERRUPT, broker.pulsar_url, "orders", *CALLS.values()]
        with subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                for request in ("SEND", "ACK", "GET_LAST_MESSAGE_ID", "SEEK", "CLOSE_PRODUCER"):
                    broker.control.drop(request, times=1000)
                words, errors = process.communicate("\n", timeout=WITHIN)
            finally:
                process.kill()
    assert process.returncode == 0, errors
    took = {told: float(seconds) for seconds, _, told in (line.partition(" ") for line in words.splitlines())}
    assert list(took) == list(CALLS.values())
    late = [told for told, seconds in took.items() if seconds > 0.05]
    assert len(late) <= 2, took  # a busy machine wakes somebody late now and then, not whoever waits
    assert max(took.values()) < 2, took

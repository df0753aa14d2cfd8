"""What only one face has, or only a process of its own shows: coroutine handlers on threads, signals, forks, exits."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

import pytest

from mqclient import rocketmq
from mqclient.rocketmq import Message, aio
from tests.api.conftest import RocketMQCluster

WITHIN = 60.0
SERVE = """
import signal, sys, time
from mqclient import rocketmq
def handle(messages):
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # until it runs
        time.sleep(0.01)
    print("got", flush=True)
with rocketmq.Client(sys.argv[1]) as client:
    consumer = client.push_consumer("serving", sys.argv[2], handle, start="first")
    print(consumer.run(grace=5.0), flush=True)
"""
SERVE_ASYNC = """
import asyncio, signal, sys
from mqclient.rocketmq import aio
async def handle(messages):
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        await asyncio.sleep(0.01)
    print("got", flush=True)
async def main():
    async with aio.Client(sys.argv[1]) as client:
        consumer = await client.push_consumer("serving-async", sys.argv[2], handle, start="first")
        print(await consumer.run(grace=5.0), flush=True)
asyncio.run(main())
"""


def filled(client: rocketmq.Client, count: int) -> str:
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    with client.admin() as admin:
        admin.create_topic(topic, 1)
    with client.producer("p") as producer:
        for number in range(count):
            producer.send(rocketmq.Message(topic, b"%d" % number))
    return topic


@pytest.mark.parametrize("orderly", [False, True])
def test_a_coroutine_runs_on_a_loop_of_its_worker(rocketmq: RocketMQCluster, impl: str, orderly: bool) -> None:
    from mqclient import rocketmq as face

    loops: list[Any] = []
    done, lock = threading.Event(), threading.Lock()

    async def handle(messages: Any) -> None:
        await asyncio.sleep(0.01)
        with lock:
            loops.append((threading.current_thread(), asyncio.get_running_loop()))
            if len(loops) == 8:
                done.set()
        if messages[0].body == b"3" and not messages[0].attempts:
            raise ValueError("not yet")

    with face.Client(rocketmq.name_server, impl=impl) as client:
        topic = filled(client, 8)
        with client.push_consumer(
            f"g-{topic}", topic, handle, start="first", batch=1, threads=2, orderly=orderly, suspend=0.01
        ) as consumer:
            assert done.wait(WITHIN)
            assert consumer.diagnose()["failed"] == 1
    assert len({thread for thread, _ in loops}) == len({id(loop) for _, loop in loops})


@pytest.mark.parametrize("program", [SERVE, SERVE_ASYNC], ids=["sync", "async"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_a_report(rocketmq: RocketMQCluster, program: str, number: signal.Signals) -> None:
    from mqclient import rocketmq as face

    with face.Client(rocketmq.name_server) as client:
        topic = filled(client, 1)
    line = [sys.executable, "-c", program, rocketmq.name_server, topic]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "got\n"
            process.send_signal(number)
            out, errors = process.communicate(timeout=WITHIN)
        finally:
            process.kill()
    assert out.startswith("StopReport(finished=True, handled=1,"), errors
    assert process.returncode == 0


EXIT = """
import sys
from mqclient import rocketmq
client = rocketmq.Client(sys.argv[1])
producer = client.producer("hasty", linger=5.0)
for number in range(50):
    producer.submit(rocketmq.Message(sys.argv[2], b"%d" % number))
"""
EXIT_ASYNC = """
import asyncio, sys
from mqclient.rocketmq import aio
async def main():
    client = aio.Client(sys.argv[1])
    producer = await client.producer("hasty")
    tasks = [asyncio.create_task(producer.send(aio.Message(sys.argv[2], b"%d" % n))) for n in range(50)]
    await asyncio.sleep(0)
asyncio.run(main())
"""


def run(program: str, *arguments: str) -> tuple[int, str]:
    line = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=WITHIN, check=False)
    return done.returncode, done.stdout + done.stderr


def stored(name_server: str, topic: str) -> int:
    from mqclient import rocketmq as face

    with face.Client(name_server) as client, client.admin() as admin:
        return sum((ends["max"] or 0) - (ends["min"] or 0) for ends in admin.offsets(topic).values())


def test_exit_without_close_sends_what_it_can(rocketmq: RocketMQCluster) -> None:
    from mqclient import rocketmq as face

    with face.Client(rocketmq.name_server) as client:
        topic = filled(client, 0)
    assert run(EXIT, rocketmq.name_server, topic) == (0, "")
    assert stored(rocketmq.name_server, topic) == 50


@pytest.mark.parametrize("program", [EXIT, EXIT_ASYNC], ids=["sync", "async"])
def test_exit_without_close_says_what_was_not_sent(program: str) -> None:
    """The broker takes a connection and nothing else: exit must neither hang nor be silent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        code, words = run(program, f"127.0.0.1:{silent.getsockname()[1]}", "orders")
        took = time.monotonic() - began
    assert code == 0
    assert "50 of producer 'hasty'" in words
    assert "Traceback" not in words
    assert took < 10


CALLS = {
    "receive": "puller.receive()",
    "receive_many": "puller.receive_many(10)",
    "receive_batch": "puller.receive_batch()",
    "iteration": "next(puller)",
    "pop": "popper.receive()",
    "pop_many": "popper.receive_many(10)",
    "send": "stuck.send(message, timeout=60)",
    "send_many": "stuck.send_many([message] * 3, timeout=60)",
    "request": "producer.request(message, timeout=60)",
    "flush": "stuck.submit(message); stuck.flush()",
    "close": "pusher.close(grace=60)",
    "admin": "stuck_client.admin().topics(timeout=60)",
    "open": "stuck_client.pull_consumer('other', topic, timeout=60)",
}
INTERRUPT = """
import os, signal, socket, sys, threading, time
from mqclient import rocketmq
name_server, topic, nothing, calls = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
sent = 0.0
def note(number, frame):
    global sent
    sent = time.monotonic()
    signal.default_int_handler(number, frame)
signal.signal(signal.SIGINT, note)
silent = socket.create_server(("127.0.0.1", 0), backlog=100)
patient = {"request_timeout": 60.0}
stuck_client = rocketmq.Client("127.0.0.1:%d" % silent.getsockname()[1], **patient)
stuck = stuck_client.producer("stuck", send_timeout=60.0)
client = rocketmq.Client(name_server, **patient)
producer = client.producer("asker")
message = rocketmq.Message(topic, b"x")
busy = threading.Event()
def handle(messages):
    busy.set()
    time.sleep(600)
pusher = client.push_consumer("pushing-" + topic, topic, handle, start="first")
assert busy.wait(30)
puller = client.pull_consumer("pulling-" + topic, nothing)
popper = client.pop_consumer("popping-" + topic, nothing)
for call in calls:
    threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        exec(call)
        print("no interrupt in", call, flush=True)
    except KeyboardInterrupt:
        print(f"{time.monotonic() - sent:.4f} {call}", flush=True)
os._exit(0)
"""


def test_ctrl_c_ends_every_blocking_call_at_once(rocketmq: RocketMQCluster) -> None:
    from mqclient import rocketmq as face

    with face.Client(rocketmq.name_server) as client:
        topic, nothing = filled(client, 1), filled(client, 0)
    code, words = run(INTERRUPT, rocketmq.name_server, topic, nothing, *CALLS.values())
    assert code == 0, words
    took = {line.split(" ", 1)[1]: float(line.split(" ", 1)[0]) for line in words.splitlines()}
    assert list(took) == list(CALLS.values())
    assert max(took.values()) < 0.05, took


def work(producer: Any, topic: str, name: str) -> None:
    """In a process of multiprocessing: nothing is closed."""
    for number in range(10):
        producer.submit(Message(topic, f"{name}-{number}".encode()))


def test_a_pickled_producer_connects_when_it_is_used(rocketmq: RocketMQCluster, impl: str) -> None:
    from mqclient import rocketmq as face

    with face.Client(rocketmq.name_server, impl=impl, client_id="given@1") as client:
        topic = filled(client, 0)
        with client.producer("p", compression=None) as producer:
            data = pickle.dumps(producer)
        threads = threading.active_count()
        there = pickle.loads(data)
        assert threading.active_count() == threads
        with there:
            assert there.group == "p"
            assert there.send(Message(topic, b"x")).ok
            assert there._own.client_id != "given@1"  # of an id there is one
        again = pickle.loads(pickle.dumps(client))
        assert again.client_id != client.client_id
        again.close()
        with pytest.raises(TypeError, match="a PullConsumer cannot be pickled"):
            pickle.dumps(client.pull_consumer(f"g-{topic}", topic))
    assert threading.active_count() <= threads


async def test_a_pickled_producer_of_a_loop_connects_in_another(rocketmq: RocketMQCluster, impl: str) -> None:
    async with aio.Client(rocketmq.name_server, impl=impl) as client, client.producer("p") as producer:
        data = pickle.dumps(producer)
    there = await asyncio.to_thread(pickle.loads, data)
    async with there:
        assert (await there.send(Message(f"made-{uuid.uuid4().hex[:8]}", b"x"))).ok


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_of_multiprocessing(rocketmq: RocketMQCluster, method: str) -> None:
    from mqclient import rocketmq as face

    context: Any = multiprocessing.get_context(method)
    with face.Client(rocketmq.name_server) as client, client.producer("parent") as producer:
        topic = filled(client, 1)
        producer.send(Message(topic, b"parent"))
        workers = [context.Process(target=work, args=(producer, topic, f"child-{number}")) for number in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(WITHIN)
        assert [worker.exitcode for worker in workers] == [0, 0]
        assert producer.send(Message(topic, b"after")).ok
    assert stored(rocketmq.name_server, topic) == 23


PRELOADED = """
import os, signal, sys, time
from mqclient import rocketmq
name_server, topic, served = sys.argv[1:]
client = rocketmq.Client(name_server)          # as gunicorn --preload and Celery do it: before the workers are forked
producer = client.producer("web")
producer.send(rocketmq.Message(topic, b"master"))
seen = client.push_consumer("master-" + topic, topic, lambda messages: None)
def worker(number):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    producer.send(rocketmq.Message(topic, b"worker %d" % number))
    with client.pull_consumer("workers-" + topic, topic, start="first") as consumer:
        print(client.client_id, flush=True)
        signal.pause()
children = []
for number in range(3):
    pid = os.fork()
    if pid == 0:
        worker(number)
        os._exit(1)
    children.append(pid)
ids = {client.client_id}
print(client.client_id, flush=True)
sys.stdin.readline()
assert producer.send(rocketmq.Message(topic, b"master again")).ok
for pid in children:
    os.kill(pid, signal.SIGTERM)
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
print(codes, flush=True)
assert seen.diagnose()["queues"]
client.close()
"""


def test_workers_of_a_preloaded_application(rocketmq: RocketMQCluster) -> None:
    from mqclient import rocketmq as face

    with face.Client(rocketmq.name_server) as client:
        topic = filled(client, 0)
    quiet = ("-W", "ignore::DeprecationWarning")  # from 3.12 on, Python says that forks and threads are no friends
    line = [sys.executable, *quiet, "-c", PRELOADED, rocketmq.name_server, topic, "x"]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            ids = {process.stdout.readline().strip() for _ in range(4)}
            out, errors = process.communicate("\n", timeout=WITHIN)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    assert len(ids) == 4  # each its own
    assert out.splitlines() == ["[0, 0, 0]"]
    assert errors == ""
    assert stored(rocketmq.name_server, topic) == 5

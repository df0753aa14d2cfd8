"""What only one face has, or only a process of its own shows: coroutine handlers on threads, SIGTERM."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import uuid
from typing import Any

import pytest

from mqclient import rocketmq
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

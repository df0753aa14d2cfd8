"""The official Pulsar client and ours on one embedded broker in its own process: rates and processor time a message.

`python -m benchmarks.peers.pulsar [--rounds N] [--messages N]`; needs `pip install pulsar-client`.

Equal settings: 100-byte bodies, batches of up to 1,000 messages or 128 KiB, 20,000 pending, receiver queue 1,000. The
two alternate, each round on a topic of its own, each measured in a process of its own so that `getrusage` counts only
its client. Every round counts what arrived; a round that loses or doubles a message is an error, not a result.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

BODY = bytes(100)
CHUNK = 20_000
Round = dict[str, float]


def official(url: str, topic: str, count: int) -> list[Round]:
    """Send with `send_async`, receive and acknowledge one by one."""
    pulsar = import_module("pulsar")  # has no types, and is there only for this comparison
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe(topic, "billing", receiver_queue_size=1000)
    batching = {"batching_enabled": True, "batching_max_messages": 1000, "batching_max_allowed_size_in_bytes": 131072}
    producer = client.create_producer(topic, block_if_queue_full=True, max_pending_messages=20_000, **batching)
    sent, all_sent = [0], threading.Event()

    def on_sent(result: Any, message_id: Any) -> None:
        sent[0] += 1
        if sent[0] == count:
            all_sent.set()

    def send() -> None:
        for _ in range(count):
            producer.send_async(BODY, on_sent)
        producer.flush()
        assert all_sent.wait(60), f"{sent[0]} of {count} were acknowledged"

    def receive_one() -> None:
        for _ in range(count):
            consumer.acknowledge(consumer.receive(30_000))

    rounds = [measured(send, count), measured(receive_one, count)]
    client.close()
    return rounds


def ours(url: str, topic: str, count: int) -> list[Round]:
    """Send with `send_many`, receive and acknowledge one by one."""
    from mqclient import pulsar

    with pulsar.Client(url) as client:
        consumer = client.consumer(topic, "billing", receiver_queue=1000)
        producer = client.producer(topic, batch_max_messages=1000, batch_max_bytes=131072)

        def send() -> None:
            for _ in range(count // CHUNK):
                results = producer.send_many([BODY] * CHUNK)
                assert all(result.ok for result in results)

        def receive_one() -> None:
            for _ in range(count):
                consumer.ack(consumer.receive(30))

        return [measured(send, count), measured(receive_one, count)]


LINES = ("send", "receive + ack")
CLIENTS: dict[str, Callable[[str, str, int], list[Round]]] = {"pulsar-client": official, "mqclient": ours}


def measured(work: Callable[[], None], count: int) -> Round:
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    work()
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"rate": count / seconds, "cpu_us": cpu / count * 1e6}


@contextmanager
def broker() -> Iterator[str]:
    """An embedded broker as a process of its own; its Pulsar address."""
    command = [sys.executable, "-m", "mqclient.broker", "--door", "pulsar"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip().partition("=")[2]
        process.terminate()


def one_round(client: str, url: str, topic: str, count: int) -> list[Round]:
    command = [sys.executable, "-m", __spec__.name, "--client", client, "--url", url, "--topic", topic]
    done = subprocess.run([*command, "--messages", str(count)], capture_output=True, text=True, check=True, timeout=300)
    rounds: list[Round] = json.loads(done.stdout.splitlines()[-1])
    return rounds


def compare(rounds: int, count: int) -> None:
    """Alternate, then print the medians of each line and their ratios."""
    found: dict[str, list[list[Round]]] = {client: [] for client in CLIENTS}
    for number in range(rounds):
        for client in CLIENTS:
            with broker() as url:  # a fresh one, so that no round pays for the messages of another
                found[client].append(one_round(client, url, f"peers-{number}", count))
    print("| | pulsar-client 3.13.0 | mqclient | ratio |\n|---|---|---|---|")
    for index, line in enumerate(LINES):
        rate, cpu = (
            {name: statistics.median(one[index][key] for one in found[name]) for name in CLIENTS}
            for key in ("rate", "cpu_us")
        )
        cells = [f"{rate[name] / 1000:,.0f} k/s, {cpu[name]:.2f} µs CPU" for name in CLIENTS]
        faster, cheaper = (figure["mqclient"] / figure["pulsar-client"] for figure in (rate, cpu))
        print(f"| {line} | {cells[0]} | {cells[1]} | {faster:.1f} × the rate, {cheaper:.2f} × the CPU |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--client", choices=list(CLIENTS), help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--topic", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        print(json.dumps(CLIENTS[options.client](options.url, options.topic, options.messages)))
    else:
        compare(options.rounds, options.messages)


if __name__ == "__main__":
    main()

"""What tests of this directory share: reading back what Spark wrote, and waiting for it."""

from __future__ import annotations

import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mqclient import pulsar, rocketmq

HERE = Path(__file__).parent


def environment(python: str = sys.executable) -> dict[str, str]:
    """For a process that drives Spark, and for Spark's own."""
    ours = {"PYTHONPATH": str(HERE.parent.parent), "PYSPARK_PYTHON": str(HERE / "worker_python")}
    return {**os.environ, **ours, "WORKER_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"}


def taken(client: rocketmq.Client, topic: str) -> list[Any]:
    """Every message of a RocketMQ topic."""
    with client.admin() as admin:
        ends = {queue: (has["min"] or 0, has["max"] or 0) for queue, has in admin.offsets(topic).items()}
    wanted = sum(stop - start for start, stop in ends.values())
    found: list[Any] = []
    with client.pull_consumer("taker", assign=ends) as consumer:
        while len(found) < wanted:
            batch = consumer.receive_batch(timeout=10)
            assert batch is not None
            found += list(batch)
    return found


def received(client: pulsar.Client, topic: str) -> list[Any]:
    found: list[Any] = []
    with client.reader(topic, start="earliest") as reader:
        while reader.has_message_available():
            found += reader.receive_many(10_000, timeout=10)
    return found


def wait(true: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def deduplicating(rest: str, namespace: str) -> None:
    """A namespace where what was sent twice is stored once."""
    try:
        ask(rest, "PUT", f"namespaces/{namespace}", b"{}")
    except urllib.error.HTTPError as error:
        if error.code != 409:  # another module of this worker has made it
            raise
    ask(rest, "POST", f"namespaces/{namespace}/deduplication", b"true")


def ask(rest: str, method: str, path: str, body: bytes) -> None:
    request = urllib.request.Request(f"{rest}/admin/v2/{path}", body, method=method)
    request.add_header("Content-Type", "application/json")
    urllib.request.urlopen(request, timeout=30).close()


def replay(checkpoint: Path) -> None:
    """As if the driver had died after the last batch was written and before that was noted."""
    last = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (checkpoint / "commits" / f".{last.name}.crc").unlink(missing_ok=True)

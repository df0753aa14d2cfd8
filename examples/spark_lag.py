"""A stream catches up with a backlog while more comes in: a listener tells how far it is behind.

python examples/spark_lag.py [PICTURE.svg]        a broker in the box; needs a JDK and mqclient[spark]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker

BACKLOG = 200_000
LIMIT = 30_000
WIDTH, HEIGHT, EDGE = 720, 240, 48


def send(name_server: str, stop: threading.Event) -> None:
    """The backlog at once, then two thousand orders a second."""
    with rocketmq.Client(name_server) as client, client.producer("shop") as producer:
        for first in range(0, BACKLOG, 10_000):
            orders = [rocketmq.Message("orders", b"order %d" % number) for number in range(first, first + 10_000)]
            producer.send_many(orders, raise_on_error=True)
        while not stop.wait(0.1):
            producer.send_many([rocketmq.Message("orders", b"one more")] * 200)


def run(broker: EmbeddedBroker, checkpoint: str, reports: list[Any]) -> None:
    """Until the stream has caught up."""
    from pyspark.sql import SparkSession

    import mqclient.spark

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.python.unix.domain.socket.enabled", "true").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    mqclient.spark.register(spark)
    caught_up = threading.Event()

    def told(report: Any) -> None:
        reports.append(report)
        print(report, flush=True)
        if report.behind < LIMIT // 10:
            caught_up.set()

    listener = mqclient.spark.lag_listener(told)
    spark.streams.addListener(listener)
    orders = (
        spark.readStream.format("mq-rocketmq")
        .options(nameServer=broker.name_server, topic="orders", startingOffsets="earliest")
        .options(maxOffsetsPerTrigger=LIMIT, columns="value,timestamp", consumerGroup="spark-orders")
        .load()
    )
    query = orders.writeStream.format("noop").queryName("orders").option("checkpointLocation", checkpoint).start()
    deadline = time.monotonic() + 200
    while not caught_up.wait(0.2) and query.isActive:
        if time.monotonic() > deadline:
            raise SystemExit("the stream did not catch up")
    query.stop()
    spark.streams.removeListener(listener)
    spark.stop()
    if not caught_up.is_set():
        raise SystemExit(str(query.exception()))


def picture(reports: Sequence[Any]) -> str:
    """Rows of each batch as bars, what is behind as a line."""
    most, step = max(max(report.behind, report.rows) for report in reports), (WIDTH - 2 * EDGE) / len(reports)

    def y(value: float) -> float:
        return float(HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * value / most)

    bars = "".join(
        f'<rect x="{EDGE + step * number + 1:.1f}" y="{y(report.rows):.1f}" width="{max(1, step - 2):.1f}" '
        f'height="{HEIGHT - EDGE - y(report.rows):.1f}" fill="#9ecae1"/>'
        for number, report in enumerate(reports)
    )
    points = " ".join(f"{EDGE + step * (at + 0.5):.1f},{y(report.behind):.1f}" for at, report in enumerate(reports))
    text = (
        f'<text x="{EDGE}" y="24">one query, {len(reports)} batches: rows of each (bars), rows behind (line)</text>'
        f'<text x="{EDGE - 6}" y="{y(most) + 4:.0f}" text-anchor="end">{most / 1000:.0f} k</text>'
        f'<text x="{EDGE - 6}" y="{y(0) + 4:.0f}" text-anchor="end">0</text>'
        f'<text x="{EDGE}" y="{HEIGHT - EDGE + 20}">batch {reports[0].batch}</text>'
        f'<text x="{WIDTH - EDGE}" y="{HEIGHT - EDGE + 20}" text-anchor="end">batch {reports[-1].batch}</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{bars}'
        f'<polyline points="{points}" fill="none" stroke="#d94801" stroke-width="2"/>{text}</svg>\n'
    )


def main(target: str | None) -> None:
    stop, reports = threading.Event(), []  # type: ignore[var-annotated]
    with EmbeddedBroker() as broker, tempfile.TemporaryDirectory() as checkpoint:
        with rocketmq.Client(broker.name_server) as client, client.admin() as admin:
            admin.create_topic("orders", queues=2)
        sender = threading.Thread(target=send, args=(broker.name_server, stop))
        sender.start()
        try:
            run(broker, checkpoint, reports)
        finally:
            stop.set()
            sender.join()
        with rocketmq.Client(broker.name_server) as client, client.admin() as admin:
            for queue, progress in sorted(admin.progress("spark-orders", "orders").items()):
                print(f"what operators see: queue {queue.queue_id} consumed up to {progress.consumed}")
    if target is not None:
        Path(target).write_text(picture(reports), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)

"""RocketMQ → Spark → Pulsar: orders are counted in windows while they come in; the totals go out as messages.

python examples/spark_pipeline.py [SECONDS]        a broker in the box; needs a JDK and mqclient[spark]
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from typing import Any

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker

CITIES = ("Berlin", "Lagos", "Lima", "Osaka")
WIDTH = 40
PATIENCE = 120.0
"""Seconds for the first batch: a busy machine takes its time for starting Python workers."""


def generate(name_server: str, stop: threading.Event) -> None:
    """About two thousand orders a second, until told to stop."""
    with rocketmq.Client(name_server) as client, client.producer("shop") as producer:
        while not stop.wait(0.1):
            orders = [{"city": random.choice(CITIES), "amount": random.randint(1, 100)} for _ in range(200)]
            producer.send_many([rocketmq.Message("orders", json.dumps(order).encode()) for order in orders])


def start(broker: EmbeddedBroker, checkpoint: str) -> Any:
    """The session and the running query."""
    from pyspark.sql import SparkSession, functions

    import mqclient.spark

    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.driver.host", "127.0.0.1")
    spark = builder.config("spark.python.unix.domain.socket.enabled", "true").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    mqclient.spark.register(spark)

    orders = (
        spark.readStream.format("mq-rocketmq")
        .option("nameServer", broker.name_server)
        .option("topic", "orders")
        .option("startingOffsets", "earliest")
        .option("columns", "value,timestamp")
        .load()
        .selectExpr("timestamp", "from_json(cast(value as string), 'city string, amount int') as sold")
        .selectExpr("timestamp", "sold.city", "sold.amount")
    )
    totals = (
        orders.withWatermark("timestamp", "1 second")
        .groupBy("city", functions.window("timestamp", "2 seconds"))
        .agg({"amount": "sum", "*": "count"})
        .selectExpr(
            "city as key",
            "to_json(struct(city, window.end as until, `count(1)` as orders, `sum(amount)` as amount)) as value",
        )
    )
    return spark, (
        totals.writeStream.format("mq-pulsar")
        .option("serviceUrl", broker.pulsar_url)
        .option("topic", "totals")
        .option("checkpointLocation", checkpoint)
        .outputMode("append")
        .start()
    )


def watch(query: Any, seconds: float) -> int:
    """One line for each batch, so long after the first one; how many orders were read."""
    shown, orders = -1, 0
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and query.isActive:
        progress = query.lastProgress
        if progress and progress["batchId"] > shown and progress["numInputRows"]:
            if not orders:
                until = time.monotonic() + seconds
            shown = progress["batchId"]
            rows, rate = progress["numInputRows"], progress["processedRowsPerSecond"]
            bar = "█" * min(WIDTH, round(rate / 250))
            orders += rows
            print(f"batch {shown:3}  {rows:6} orders  {rate:8.0f} a second  {bar}", flush=True)
        time.sleep(0.2)
    if query.exception() is not None:
        raise SystemExit(str(query.exception()))
    if not orders:
        raise SystemExit(f"no order came through Spark in {PATIENCE:.0f} s: {query.status['message']}")
    return orders


def latest_totals(url: str) -> list[Any]:
    """What came out last for each city."""
    found: dict[str | None, Any] = {}
    with pulsar.Client(url) as client, client.reader("totals", start="earliest") as reader:
        while reader.has_message_available():
            found |= {message.key: json.loads(message.body) for message in reader.receive_many(1000, timeout=5)}
    return [found[key] for key in sorted(found, key=str)]


def main(seconds: float) -> None:
    if shutil.which("java") is None:
        raise SystemExit("Spark needs a JDK (17 or newer), and there is no `java` here.")
    stop = threading.Event()
    with EmbeddedBroker() as broker, tempfile.TemporaryDirectory() as checkpoint:
        with rocketmq.Client(broker.name_server) as client, client.admin() as admin:
            admin.create_topic("orders", queues=2)
        generator = threading.Thread(target=generate, args=(broker.name_server, stop))
        generator.start()
        try:
            print("starting Spark …", flush=True)
            spark, query = start(broker, checkpoint)
            orders = watch(query, seconds)
            totals = latest_totals(broker.pulsar_url)
            query.stop()
            spark.stop()
        finally:
            stop.set()
            generator.join()
    print(f"\n{orders} orders read from RocketMQ; the last totals that Pulsar has:")
    for total in totals:
        print(f"  {total['city']:8} until {total['until'][11:19]}  {total['orders']:6} orders  {total['amount']:8}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 25.0)

"""A driver of its own process that tries one thing: `python -m tests.spark.script WHAT JSON`, under any PySpark.

It prints what came of it as JSON in its last line. It is given name_server and url of a broker, and folder.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mqclient import pulsar, rocketmq
from tests.spark.pipeline import session
from tests.spark.support import received, taken, wait

COUNT = 200
ONCE = {"deliveryGuarantee": "exactly-once"}


def rows(spark: Any, count: int = COUNT) -> Any:
    return spark.range(0, count, numPartitions=2).selectExpr("cast(id as string) as value")


def arrived(given: dict[str, str], system: str, topic: str) -> Counter[int]:
    if system == "mq-rocketmq":
        with rocketmq.Client(given["name_server"]) as client:
            return Counter(int(message.body) for message in taken(client, topic))
    with pulsar.Client(given["url"]) as pulsar_client:
        return Counter(int(message.body) for message in received(pulsar_client, topic))


def address(given: dict[str, str], system: str) -> dict[str, str]:
    return {"nameServer": given["name_server"]} if system == "mq-rocketmq" else {"serviceUrl": given["url"]}


def create(given: dict[str, str], *topics: str) -> None:
    with rocketmq.Client(given["name_server"]) as client, client.admin() as admin:
        for topic in topics:
            admin.create_topic(topic, 2)


def batch(spark: Any, given: dict[str, str], prefix: str) -> dict[str, Any]:
    """Written and read again, both systems."""
    create(given, f"{prefix}-batch")
    found: dict[str, Any] = {}
    for system in ("mq-rocketmq", "mq-pulsar"):
        options = {**address(given, system), "topic": f"{prefix}-batch"}
        rows(spark).write.format(system).options(**options).mode("append").save()
        wait(lambda system=system: arrived(given, system, f"{prefix}-batch").total() >= COUNT)  # type: ignore[misc]
        frame = spark.read.format(system).options(**options).load()
        found[f"{system} written"] = arrived(given, system, f"{prefix}-batch") == Counter(range(COUNT))
        found[f"{system} read"] = sorted(int(row.value) for row in frame.select("value").collect()) == list(
            range(COUNT)
        )
    return found


def cluster(given: dict[str, str]) -> dict[str, Any]:
    """Batches of both systems on executors that are JVMs of their own."""
    return batch(session(given["master"], {"spark.cores.max": "2"}), given, "cluster")


def error(do: Callable[[], Any]) -> str:
    try:
        do()
    except Exception as caught:
        return str(caught)
    return ""


def version(given: dict[str, str]) -> dict[str, Any]:
    """Any PySpark: batch, streams, writers, and what not every version has, which works or says what is needed."""
    import mqclient.spark

    spark = session("local[2]", {"spark.sql.python.filterPushdown.enabled": "true"})
    prefix = "pyspark-" + spark.version.replace(".", "-")
    found: dict[str, Any] = {"version": spark.version, **batch(spark, given, prefix)}
    create(given, f"{prefix}-out")
    writers = {
        "mq-rocketmq": mqclient.spark.rocketmq_writer(given["name_server"], topic=f"{prefix}-out"),
        "mq-pulsar": mqclient.spark.pulsar_writer(given["url"], topic=f"{prefix}-out"),
    }

    def stream(system: str, **options: str) -> Any:
        source = spark.readStream.format(system).options(**address(given, system), topic=f"{prefix}-batch", **options)
        return source.option("startingOffsets", "earliest").load().select("value").writeStream

    def run(stream: Any, name: str) -> bool:
        query = stream.option("checkpointLocation", f"{given['folder']}/{name}").trigger(availableNow=True).start()
        return bool(query.awaitTermination(240))

    for system, writer in writers.items():
        found[f"{system} streamed"] = run(stream(system).foreachBatch(writer), system)
        found[f"{system} sent"] = arrived(given, system, f"{prefix}-out") == Counter(range(COUNT))
    sink = stream("mq-rocketmq").format("mq-pulsar").options(serviceUrl=given["url"], topic=f"{prefix}-sink")
    found["stream write"] = error(lambda: run(sink, "sink")) or arrived(
        given, "mq-pulsar", f"{prefix}-sink"
    ) == Counter(range(COUNT))
    limited = stream("mq-rocketmq", maxOffsetsPerTrigger="150").format("noop")
    found["limit"] = error(lambda: run(limited, "limited")) or len(list(batches(given, "limited"))) == 2
    options = {**address(given, "mq-rocketmq"), "topic": f"{prefix}-batch", "filterPushdown": "true"}
    frame = spark.read.format("mq-rocketmq").options(**options)
    found["filters"] = (
        error(lambda: frame.load().where("queue = 1").count()) or frame.load().where("queue = 1").count() == COUNT // 2
    )
    return found


def batches(given: dict[str, str], name: str) -> Iterator[Path]:
    """What a query that ended has noted as done."""
    return (Path(given["folder"]) / name / "commits").glob("[0-9]*")


def connect(given: dict[str, str]) -> dict[str, Any]:
    """Over Spark Connect: register, read, write, a stream through the sink that writes once."""
    from pyspark.sql import SparkSession

    import mqclient.spark

    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    mqclient.spark.register(spark)
    found = batch(spark, given, "connect")
    source = spark.readStream.format("mq-rocketmq").options(**address(given, "mq-rocketmq"), topic="connect-batch")
    topic = "persistent://public/once/connect"
    sink = source.option("startingOffsets", "earliest").load().select("value").writeStream.format("mq-pulsar")
    sink = sink.options(serviceUrl=given["url"], topic=topic, checkpointLocation=f"{given['folder']}/connect", **ONCE)
    query = sink.trigger(availableNow=True).start()
    found["stream"] = bool(query.awaitTermination(240))
    found["stream written"] = arrived(given, "mq-pulsar", topic) == Counter(range(COUNT))
    spark.stop()
    return found


def speculation(given: dict[str, str]) -> dict[str, Any]:
    """A slow task has a second attempt beside it, on another worker: both send what they can under one name."""
    settings = {
        "spark.cores.max": "2",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10",
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.25",
        "spark.speculation.minTaskRuntime": "100ms",
    }
    spark = session(given["master"], settings)
    found: dict[str, Any] = {}
    for name, more in (("once", ONCE), ("least", {})):
        topic = f"persistent://public/once/speculation-{name}"
        marks = f"{given['folder']}/attempts-{name}"

        def slow(batches: Iterator[Any], marks: str = marks) -> Iterator[Any]:
            import os
            import time

            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            first = False
            if context.partitionId() == 1:
                os.makedirs(marks, exist_ok=True)
                first = not os.listdir(marks)
                os.makedirs(f"{marks}/{context.attemptNumber()}")
                if not first:
                    time.sleep(3)  # or it might be done, and the first be ended, before that one's sink has begun
            for number, batch in enumerate(batches):
                yield batch
                until = time.monotonic() + 120
                # The first attempt goes on when the second is there, and has had the time to send.
                while first and number == 4 and len(os.listdir(marks)) < 2:
                    assert time.monotonic() < until
                    time.sleep(0.1)
                if first and number == 4:  # of ten
                    time.sleep(6)

        # Large, for between the two Python processes there are buffers of the JVM.
        frame = rows(spark).selectExpr("rpad(value, 8192, ' ') as value").mapInArrow(slow, "value string")
        frame.write.format("mq-pulsar").options(serviceUrl=given["url"], topic=topic, **more).mode("append").save()
        import os

        found[f"{name} attempts"] = len(os.listdir(marks))
        counts = arrived(given, "mq-pulsar", topic)
        found[f"{name} all"] = counts.keys() == set(range(COUNT))
        found[f"{name} twice"] = sum(count > 1 for count in counts.values())
    return found


if __name__ == "__main__":
    what: dict[str, Callable[[dict[str, str]], dict[str, Any]]] = {
        "cluster": cluster,
        "version": version,
        "connect": connect,
        "speculation": speculation,
    }
    print("\n" + json.dumps(what[sys.argv[1]](json.loads(sys.argv[2]))), flush=True)

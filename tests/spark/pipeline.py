"""A driver of its own process: RocketMQ into Pulsar, twice, by the plain sink and by the one that writes once.

Its one argument is JSON: master, name_server, url, topic, least, once (topics), checkpoint, settings. What a message
says is where it was read, `queue:offset`, so every place of the source is told from every other.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def session(master: str, settings: dict[str, str]) -> Any:
    from pyspark.sql import SparkSession

    import mqclient.spark

    fixed = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "600m",
        "spark.executor.memory": "600m",
        "spark.executor.cores": "1",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master(master).appName("pipeline").config(map={**fixed, **settings}).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    mqclient.spark.register(spark)
    return spark


def start(spark: Any, given: dict[str, Any], name: str, topic: str, **options: str) -> Any:
    source = spark.readStream.format("mq-rocketmq").options(nameServer=given["name_server"], topic=given["topic"])
    source = source.options(startingOffsets="earliest", maxOffsetsPerTrigger=500, columns="queue,offset")
    frame = source.load().selectExpr("concat(queue, ':', offset) as value")
    sink = frame.writeStream.format("mq-pulsar").options(serviceUrl=given["url"], topic=topic, **options)
    return sink.option("checkpointLocation", f"{given['checkpoint']}/{name}").queryName(name).start()


def main(given: dict[str, Any]) -> None:
    spark = session(given["master"], given.get("settings", {}))
    queries = [
        start(spark, given, "least", given["least"]),
        start(spark, given, "once", given["once"], deliveryGuarantee="exactly-once"),
    ]
    print("running", flush=True)
    while all(query.isActive for query in queries):
        time.sleep(0.2)
    raise SystemExit("\n".join(str(query.exception()) for query in queries))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

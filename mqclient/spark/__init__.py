"""RocketMQ and Pulsar for PySpark: `mqclient.spark.register(spark)`, then formats "mq-rocketmq" and "mq-pulsar".

spark.read.format("mq-rocketmq").option("nameServer", "127.0.0.1:9876").option("topic", "orders").load()
"""

from __future__ import annotations

from typing import Any

__all__ = ["register"]


def register(spark: Any) -> None:
    """Make both formats known to a session."""
    from mqclient.spark.formats import PulsarFormat, RocketmqFormat

    for format in (RocketmqFormat, PulsarFormat):
        spark.dataSource.register(format)

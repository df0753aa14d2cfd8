"""RocketMQ and Pulsar for PySpark: `mqclient.spark.register(spark)`, then formats "mq-rocketmq" and "mq-pulsar".

spark.read.format("mq-rocketmq").option("nameServer", "127.0.0.1:9876").option("topic", "orders").load()
frame.write.format("mq-pulsar").options(serviceUrl="pulsar://127.0.0.1:6650", topic="out").mode("append").save()
stream.writeStream.foreachBatch(mqclient.spark.rocketmq_writer(nameServer="127.0.0.1:9876", topic="out")).start()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.spark.writers import send_partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.listener import StreamingQueryListener

    from mqclient.spark.progress import Report
    from mqclient.spark.writers import BatchWriter

__all__ = ["lag_listener", "pulsar_writer", "register", "rocketmq_writer", "send_partition"]


def register(spark: Any) -> None:
    """Make both formats known to a session."""
    from pyspark.errors import AnalysisException

    from mqclient.spark.formats import PulsarFormat, RocketmqFormat

    for format in (RocketmqFormat, PulsarFormat):
        try:
            spark.dataSource.register(format)
        except AnalysisException as error:
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
                raise  # else PySpark 4.0, which has discovered it and does not let it be replaced


def rocketmq_writer(name_server: str | None = None, **options: Any) -> BatchWriter:
    """For `foreachBatch`: a callable (frame, batch id) that sends to RocketMQ; options as of the sink "mq-rocketmq"."""
    return _writer("mq-rocketmq", {"nameServer": name_server, **options})


def pulsar_writer(service_url: str | None = None, **options: Any) -> BatchWriter:
    """For `foreachBatch`: a callable (frame, batch id) that sends to Pulsar; options as of the sink "mq-pulsar"."""
    return _writer("mq-pulsar", {"serviceUrl": service_url, **options})


def lag_listener(told: Callable[[Report], object] | None = None) -> StreamingQueryListener:
    """For `spark.streams.addListener`: tells after each trigger how far the queries' sources of ours are behind.

    Without `told` the reports are logged.
    """
    from mqclient.spark.progress import lag_listener

    return lag_listener(told)


def _writer(format: str, options: dict[str, Any]) -> BatchWriter:
    from mqclient.spark.writers import BatchWriter

    # Python's spelling is Spark's but for the case of its words: name_server is nameServer.
    given = {name.replace("_", ""): str(value) for name, value in options.items() if value is not None}
    return BatchWriter(format, given)

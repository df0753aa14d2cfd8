"""Credentials are nowhere but in the processes that use them: not in plans, event logs, checkpoints or errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from tests.spark.support import received
from tests.spark.test_batch import fill

SECRET = "hush-4711-do-not-tell"


@pytest.mark.ci
def test_a_token_is_never_written_down(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, pulsar_client: Any, topic: str, tmp_path: Path
) -> None:
    fill(rocketmq_client, topic, 20)
    given = {"serviceUrl": broker.pulsar_url, "topic": topic, "token": SECRET}
    stream = spark.readStream.format("mq-rocketmq").options(nameServer=broker.name_server, topic=topic)
    frame = stream.option("startingOffsets", "earliest").load().select("value")
    checkpoint = tmp_path / "checkpoint"
    sink = frame.writeStream.format("mq-pulsar").options(**given, checkpointLocation=str(checkpoint))
    query = sink.trigger(availableNow=True).start()
    assert query.awaitTermination(280)
    assert len(received(pulsar_client, topic)) == 20
    seen = [str(progress) for progress in query.recentProgress]

    read = spark.read.format("mq-pulsar").options(**given).load()
    assert read.count() == 20
    read.createOrReplaceTempView("hidden")
    seen += [row.plan for row in spark.sql("explain extended select * from hidden").collect()]
    read.select("value").write.format("mq-pulsar").options(**{**given, "topic": f"{topic}-out"}).mode("append").save()

    # Errors of the driver and of a task, with whatever Spark says around them.
    for bad in ({"topicc": "x"}, {"serviceUrl": "pulsar://127.0.0.1:1", "timeoutSeconds": "1"}):
        with pytest.raises(Exception, match=r"topicc|127\.0\.0\.1:1") as caught:
            read.select("value").write.format("mq-pulsar").options(**{**given, **bad}).mode("append").save()
        seen.append(repr(caught.value) + str(caught.value))
    assert not [text for text in seen if SECRET in text]
    files = [path for folder in (checkpoint, event_log(spark)) for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    assert any(topic.encode() in path.read_bytes() or b"SparkListenerTaskEnd" in path.read_bytes() for path in files)


def event_log(spark: Any) -> Path:
    return Path(urlparse(spark.conf.get("spark.eventLog.dir")).path)

"""Streams in a real Spark: exact over restarts, replays and limits, from one system into the other."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.spark import rocketmq_writer
from tests.spark.support import received, replay, taken, wait
from tests.spark.test_batch import fill


def rocketmq_stream(spark: Any, broker: EmbeddedBroker, topic: str, **options: Any) -> Any:
    stream = spark.readStream.format("mq-rocketmq").options(nameServer=broker.name_server, topic=topic, **options)
    return stream.option("startingOffsets", "earliest").load().select("key", "value", "properties")


def into_pulsar(frame: Any, broker: EmbeddedBroker, topic: str, checkpoint: Path) -> Any:
    sink = frame.writeStream.format("mq-pulsar").options(serviceUrl=broker.pulsar_url, topic=topic)
    return sink.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()


def test_rocketmq_into_pulsar_goes_on_exactly_where_it_ended(
    spark: Any,
    broker: EmbeddedBroker,
    rocketmq_client: rocketmq.Client,
    pulsar_client: pulsar.Client,
    topic: str,
    tmp_path: Path,
) -> None:
    fill(rocketmq_client, topic, 300)
    frame = rocketmq_stream(spark, broker, topic, maxOffsetsPerTrigger=120)
    first = into_pulsar(frame, broker, topic, tmp_path)
    assert first.awaitTermination(280)
    assert [progress["numInputRows"] for progress in first.recentProgress if progress["numInputRows"]] == [120, 120, 60]
    assert Counter(int(message.body) for message in received(pulsar_client, topic)) == Counter(range(300))

    fill(rocketmq_client, topic, 50)
    assert into_pulsar(frame, broker, topic, tmp_path).awaitTermination(280)
    assert len(received(pulsar_client, topic)) == 350

    # The driver died after the last batch was written and before it was noted: that batch, and it alone, comes again.
    replay(tmp_path)
    assert into_pulsar(frame, broker, topic, tmp_path).awaitTermination(280)
    counts = Counter(int(message.body) for message in received(pulsar_client, topic))
    assert counts == Counter(range(300)) + Counter(range(50)) + Counter(range(50))


def test_pulsar_from_now_on_by_for_each_batch(
    spark: Any,
    broker: EmbeddedBroker,
    rocketmq_client: rocketmq.Client,
    pulsar_client: pulsar.Client,
    topic: str,
    tmp_path: Path,
) -> None:
    with rocketmq_client.admin() as admin:
        admin.create_topic(topic, 1)
    with pulsar_client.producer(topic) as producer:
        producer.send(b"before")
        frame = spark.readStream.format("mq-pulsar").options(serviceUrl=broker.pulsar_url, topic=topic).load()
        writer = rocketmq_writer(broker.name_server, topic=topic)
        query = (
            frame.select("value").writeStream.foreachBatch(writer).option("checkpointLocation", str(tmp_path)).start()
        )
        try:
            wait(lambda: query.lastProgress is not None)
            producer.send_many([b"%d" % number for number in range(10)])
            wait(lambda: len(taken(rocketmq_client, topic)) >= 10)
            producer.send(b"last")
            wait(lambda: len(taken(rocketmq_client, topic)) >= 11)
        finally:
            query.stop()
    assert [message.body for message in taken(rocketmq_client, topic)] == [b"%d" % n for n in range(10)] + [b"last"]


@pytest.mark.parametrize("system", ["rocketmq", "pulsar"])
def test_what_was_written_before_is_processed(
    spark: Any,
    broker: EmbeddedBroker,
    rocketmq_client: rocketmq.Client,
    pulsar_client: pulsar.Client,
    topic: str,
    tmp_path: Path,
    system: str,
) -> None:
    seen: list[int] = []

    def write(batch: Any, number: int) -> None:
        seen.extend(int(row.value) for row in batch.select("value").collect())

    with rocketmq_client.producer("writer") as one, pulsar_client.producer(topic) as other:
        with rocketmq_client.admin() as admin:
            admin.create_topic(topic, 2)
        address = {"nameServer": broker.name_server} if system == "rocketmq" else {"serviceUrl": broker.pulsar_url}
        frame = spark.readStream.format(f"mq-{system}").options(topic=topic, **address).load()
        query = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path)).start()
        try:
            query.processAllAvailable()  # it begins with what is new
            for number in range(10):
                time.sleep(0.015 * number)  # of idling, in which the source looks ever more rarely
                if system == "rocketmq":
                    one.send(rocketmq.Message(topic, b"%d" % number))
                else:
                    other.send(b"%d" % number)
                query.processAllAvailable()
                assert seen == list(range(number + 1))
        finally:
            query.stop()


def test_what_a_stream_cannot_do_is_told(spark: Any, broker: EmbeddedBroker, topic: str, tmp_path: Path) -> None:
    frame = spark.readStream.format("rate").load().selectExpr("cast(value as string) as value")
    sink = frame.writeStream.format("mq-pulsar").options(serviceUrl=broker.pulsar_url, topicc=topic)
    query = sink.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    with pytest.raises(Exception, match=r"no option 'topicc'. Did you mean 'topic'"):
        query.awaitTermination(280)

"""Sources in a real Spark: patterns, conditions that reach the planning, limits, lag, queues that come later."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.spark import lag_listener
from mqclient.spark.progress import Report
from tests.spark.support import ask, wait
from tests.spark.test_batch import fill, numbers, pulsar_read, rocketmq_read

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def test_conditions_of_the_query_reach_the_planning(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    fill(rocketmq_client, topic, 20)
    fill(rocketmq_client, f"{topic}-more", 6)
    reader = rocketmq_read(spark, broker, "").options(topicPattern=f"{topic}.*", tag="odd", filterPushdown="true")
    spark.conf.set(PUSHDOWN, "true")
    try:
        frame = reader.load().where(f"topic = '{topic}' and queue = 1 and offset >= 3 and offset < 7")
        assert frame.rdd.getNumPartitions() == 1
        assert numbers(frame) == [7, 9, 11, 13]
    finally:
        spark.conf.set(PUSHDOWN, "false")


def test_conditions_on_times_and_partitions_reach_the_planning(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, pulsar_client: pulsar.Client, topic: str
) -> None:
    fill(rocketmq_client, f"{topic}-early", 4)
    time.sleep(0.1)
    between = int(time.time() * 1000)
    time.sleep(0.1)
    fill(rocketmq_client, f"{topic}-late", 6)
    ask(broker.pulsar_rest, "PUT", f"persistent/public/default/{topic}/partitions", b"3")
    with pulsar_client.producer(topic) as producer:
        producer.send_many([(b"%d" % number, f"key {number}") for number in range(30)])
    spark.conf.set(PUSHDOWN, "true")
    try:
        reader = rocketmq_read(spark, broker, "").options(topicPattern=f"{topic}.*", filterPushdown="true")
        frame = reader.load()
        assert frame.rdd.getNumPartitions() == 4
        late = frame.where(f"timestamp >= timestamp_millis({between})")
        assert late.rdd.getNumPartitions() == 2
        assert numbers(late) == list(range(6))
        whole = pulsar_read(spark, broker, topic, filterPushdown="true").load()
        assert numbers(whole) == list(range(30))
        some = whole.where("partition in (0, 2) and ledgerId >= 0")
        assert (whole.rdd.getNumPartitions(), some.rdd.getNumPartitions()) == (3, 2)
        assert numbers(some) == sorted(int(bytes(row.value)) for row in whole.collect() if row.partition in (0, 2))
    finally:
        spark.conf.set(PUSHDOWN, "false")


def test_a_session_that_was_told_nothing_finds_the_formats(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, pulsar_client: pulsar.Client, topic: str
) -> None:
    fill(rocketmq_client, topic, 3)
    with pulsar_client.producer(topic) as producer:
        producer.send_many([b"%d" % number for number in range(5)])
    fresh = spark.newSession()
    assert numbers(rocketmq_read(fresh, broker, topic).load()) == [0, 1, 2]
    assert numbers(pulsar_read(fresh, broker, topic, minPartitions=2).load()) == list(range(5))


def test_limits_lag_and_a_subscription_that_is_told(
    spark: Any, broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str, tmp_path: Path
) -> None:
    with pulsar_client.producer(topic, batch_max_messages=10) as producer:
        producer.send_many([b"%d" % number for number in range(95)])
    told: list[Report] = []
    listener = lag_listener(told.append)
    spark.streams.addListener(listener)
    try:
        stream = spark.readStream.format("mq-pulsar").options(serviceUrl=broker.pulsar_url, topic=topic)
        frame = stream.options(startingOffsets="earliest", maxOffsetsPerTrigger=40, subscriptionName="watchers").load()
        sink = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).queryName("limited")
        query = sink.trigger(availableNow=True).start()
        assert query.awaitTermination(250)
        wait(lambda: bool(told) and told[-1].behind == 0)
    finally:
        spark.streams.removeListener(listener)
    rows = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    assert rows == [40, 40, 15]
    assert [one.behind for one in told][:3] == [6, 2, 0]
    assert {one.query for one in told} == {"limited"}
    # The last batch is told to the broker with the first one of the next run.
    with pulsar_client.consumer(topic, "watchers", start="earliest") as consumer:
        assert consumer.receive(60).body == b"80"


def test_a_batch_waits_for_enough_rows(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    fill(rocketmq_client, topic, 3)
    stream = spark.readStream.format("mq-rocketmq").options(nameServer=broker.name_server, topic=topic)
    stream = stream.options(startingOffsets="earliest", minOffsetsPerTrigger=10, maxTriggerDelaySeconds=3600)
    sizes: list[int] = []
    sink = stream.load().writeStream.foreachBatch(lambda frame, _: sizes.append(frame.count()))
    query = sink.option("checkpointLocation", str(tmp_path)).start()
    try:
        wait(lambda: sizes == [3])
        fill(rocketmq_client, topic, 4)
        time.sleep(2)
        assert sizes == [3]
        fill(rocketmq_client, topic, 6)
        wait(lambda: sizes == [3, 10])
    finally:
        query.stop()


def test_queues_that_come_later_are_read_from_their_beginning(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    fill(rocketmq_client, topic, 4, queues=1)
    stream = spark.readStream.format("mq-rocketmq").options(nameServer=broker.name_server, topic=topic)
    options = {"startingOffsets": "earliest", "consumerGroup": f"{topic}-group", "maxBytesPerTrigger": "1000000"}

    def run() -> int:
        frame = stream.options(**options).load()
        sink = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
        query = sink.trigger(availableNow=True).start()
        assert query.awaitTermination(250)
        return sum(progress["numInputRows"] for progress in query.recentProgress)

    assert run() == 4
    fill(rocketmq_client, topic, 6, queues=2)
    assert run() == 6
    with rocketmq_client.admin() as admin:
        until = time.monotonic() + 60
        while 4 not in {at["committed"] for at in admin.offsets(topic, f"{topic}-group").values()}:
            assert time.monotonic() < until
            time.sleep(0.1)

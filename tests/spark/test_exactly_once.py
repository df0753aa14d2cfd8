"""Exactly once into Pulsar: tasks that fail after sending, frames of one batch, batches that come again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.spark import pulsar_sink, pulsar_writer
from mqclient.spark.write_options import write_options
from mqclient.spark.writers import task
from tests.spark.support import deduplicating, received, replay
from tests.spark.test_batch import fill

pytestmark = pytest.mark.ci
ROWS = 6000
ONCE = {"deliveryGuarantee": "exactly-once"}


@pytest.fixture(scope="module")
def url(broker: EmbeddedBroker) -> str:
    deduplicating(broker.pulsar_rest, "public/once")
    return broker.pulsar_url


@pytest.fixture
def once(topic: str) -> str:
    return f"persistent://public/once/{topic}"


def bodies(client: pulsar.Client, topic: str) -> Counter[int]:
    return Counter(int(message.body) for message in received(client, topic))


def failing(url: str, topic: str, **given: str) -> Any:
    """For mapInArrow: the tasks of our writer, of which the second fails twice, each time after some of its rows."""
    options = write_options({"serviceUrl": url, "topic": topic, **given}, pulsar_sink.OPTIONS, "mq-pulsar")

    def send(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        attempt, fails = context.attemptNumber(), context.partitionId() == 1 and context.attemptNumber() < 2

        def some() -> Iterator[Any]:
            for batch in batches:
                yield batch[: 1000 * (attempt + 1)] if fails else batch
                if fails:  # the sink comes back when all of that is acknowledged
                    raise RuntimeError("the task fails after it has sent")

        yield pa.RecordBatch.from_pydict({"rows": [task("mq-pulsar", options, some(), "query", "0")]})

    return send


def test_tasks_that_fail_after_sending(spark: Any, url: str, pulsar_client: pulsar.Client, once: str) -> None:
    rows = spark.range(0, ROWS, numPartitions=2).selectExpr("cast(id as string) as value")
    sent = rows.mapInArrow(failing(url, once, **ONCE), "rows bigint").collect()
    assert sum(row.rows for row in sent) == ROWS
    assert bodies(pulsar_client, once) == Counter(range(ROWS))
    # The same without the guarantee: what the failed attempts had sent is there again.
    rows.mapInArrow(failing(url, f"{once}-least"), "rows bigint").collect()
    again = Counter(range(ROWS)) + Counter(range(3000, 4000)) + Counter(range(3000, 5000))
    assert bodies(pulsar_client, f"{once}-least") == again


def test_batch_writes_do_not_get_into_each_other_s_way(
    spark: Any, url: str, pulsar_client: pulsar.Client, once: str
) -> None:
    rows = spark.range(0, 100, numPartitions=2).selectExpr("cast(id as string) as value")
    for _ in range(2):
        rows.write.format("mq-pulsar").options(serviceUrl=url, topic=once, **ONCE).mode("append").save()
    writer = pulsar_writer(url, topic=once, producer_name="mine", **ONCE)
    assert writer(rows) + writer(rows) == 200
    assert bodies(pulsar_client, once) == Counter(dict.fromkeys(range(100), 4))


def test_a_batch_that_comes_again(
    spark: Any,
    broker: EmbeddedBroker,
    url: str,
    rocketmq_client: rocketmq.Client,
    pulsar_client: pulsar.Client,
    topic: str,
    once: str,
    tmp_path: Path,
) -> None:
    fill(rocketmq_client, topic, 300)
    source = spark.readStream.format("mq-rocketmq").options(nameServer=broker.name_server, topic=topic)
    frame = source.option("startingOffsets", "earliest").load().select("value")
    writer = pulsar_writer(url, topic=f"{once}-each", producer_name="mine", **ONCE)

    def both(batch: Any, batch_id: int) -> None:
        writer(batch, batch_id)
        writer(batch.selectExpr("cast(cast(value as string) + 1000 as string) as value"), batch_id)

    def run() -> None:
        sink = frame.writeStream.format("mq-pulsar").options(serviceUrl=url, topic=once, **ONCE)
        each = frame.writeStream.foreachBatch(both)
        for name, stream in (("sink", sink), ("each", each)):
            query = stream.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True).start()
            assert query.awaitTermination(280)

    run()
    for name in ("sink", "each"):
        replay(tmp_path / name)
    fill(rocketmq_client, topic, 50)
    run()
    assert bodies(pulsar_client, once) == Counter(range(300)) + Counter(range(50))
    wanted = Counter(range(300)) + Counter(range(50))
    doubled = Counter({float(number): count for number, count in wanted.items()})
    doubled += Counter({number + 1000.0: count for number, count in wanted.items()})
    found = Counter(float(message.body) for message in received(pulsar_client, f"{once}-each"))
    assert found == doubled


def test_without_deduplication_nothing_is_promised(spark: Any, url: str, topic: str) -> None:
    rows = spark.range(10).selectExpr("cast(id as string) as value")
    with pytest.raises(Exception, match="deduplication is off for persistent://public/default"):
        rows.write.format("mq-pulsar").options(serviceUrl=url, topic=topic, **ONCE).mode("append").save()


def test_inside_a_batch_a_name_is_needed(
    spark: Any,
    broker: EmbeddedBroker,
    url: str,
    rocketmq_client: rocketmq.Client,
    topic: str,
    once: str,
    tmp_path: Path,
) -> None:
    fill(rocketmq_client, topic, 10)
    source = spark.readStream.format("mq-rocketmq").options(nameServer=broker.name_server, topic=topic)
    frame = source.option("startingOffsets", "earliest").load().select("value")

    def write(batch: Any, batch_id: int) -> None:
        batch.write.format("mq-pulsar").options(serviceUrl=url, topic=once, **ONCE).mode("append").save()

    stream = frame.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path))
    query = stream.trigger(availableNow=True).start()
    with pytest.raises(Exception, match="producerName"):
        query.awaitTermination(280)

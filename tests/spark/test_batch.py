"""Batch reads in a real Spark: what was sent is what is there, once, in its place, with all its columns."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker


def fill(client: rocketmq.Client, topic: str, count: int, queues: int = 2) -> dict[tuple[str, int], int]:
    """Messages numbered in their bodies; of each (broker, queue) how many it holds."""
    with client.admin() as admin:
        admin.create_topic(topic, queues)
        with client.producer("filler") as producer:
            for number in range(count):
                message = rocketmq.Message(
                    topic,
                    b"%d" % number,
                    tag="odd" if number % 2 else None,
                    keys=[f"k{number}"],
                    properties={"n": str(number)},
                )
                queue = rocketmq.MessageQueue(topic, "broker-a", number % queues)
                assert producer.send(message, queue=queue).ok
        return {(queue.broker_name, queue.queue_id): has["max"] or 0 for queue, has in admin.offsets(topic).items()}


def rocketmq_read(spark: Any, broker: EmbeddedBroker, topic: str, **options: Any) -> Any:
    return spark.read.format("mq-rocketmq").options(nameServer=broker.name_server, topic=topic, **options)


def pulsar_read(spark: Any, broker: EmbeddedBroker, topic: str, **options: Any) -> Any:
    return spark.read.format("mq-pulsar").options(serviceUrl=broker.pulsar_url, topic=topic, **options)


def numbers(frame: Any) -> list[int]:
    return sorted(int(bytes(row.value)) for row in frame.select("value").collect())


def test_rocketmq_rows(spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str) -> None:
    fill(rocketmq_client, topic, 101)
    frame = rocketmq_read(spark, broker, topic, arrowBatchRows=20).load()
    rows = {int(bytes(row.value)): row for row in frame.collect()}
    assert sorted(rows) == list(range(101))
    for number, row in rows.items():
        place = row.topic, row.broker, row.queue, row.offset
        assert place == (topic, "broker-a", number % 2, number // 2)
        assert (bytes(row.key), row.tag) == (b"k%d" % number, "odd" if number % 2 else None)
        assert row.properties["n"] == str(number)
    stored = {row.timestamp.year for row in rows.values()}
    assert min(stored) >= 2024


def test_rocketmq_ranges_columns_and_pieces(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    fill(rocketmq_client, topic, 40)
    starts = json.dumps({topic: {"broker-a": {"0": 3, "1": -1}}})
    stops = json.dumps({topic: {"broker-a": {"0": 13}}})
    reader = rocketmq_read(spark, broker, topic, startingOffsets=starts, endingOffsets=stops, maxRecordsPerPartition=4)
    frame = reader.option("columns", "value,messageId").load()
    assert frame.columns == ["value", "messageId"]
    assert frame.rdd.getNumPartitions() == 3
    assert numbers(frame) == list(range(6, 26, 2))


def test_rocketmq_with_a_schema_of_ones_own(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    fill(rocketmq_client, topic, 4)
    frame = rocketmq_read(spark, broker, topic).schema("offset bigint, value binary").load()
    assert sorted((row.offset, bytes(row.value)) for row in frame.collect()) == [
        (0, b"0"),
        (0, b"1"),
        (1, b"2"),
        (1, b"3"),
    ]


@pytest.mark.parametrize("count", [0, 1, 2500])
def test_pulsar_rows(spark: Any, broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str, count: int) -> None:
    with pulsar_client.producer(topic) as producer:
        items = [(b"%d" % number, f"k{number}", {"n": str(number)}) for number in range(count)]
        ids = producer.send_many(items)
    frame = pulsar_read(spark, broker, topic).load()
    rows = {int(bytes(row.value)): row for row in frame.collect()}
    assert sorted(rows) == list(range(count))
    for number, row in rows.items():
        assert (row.ledgerId, row.entryId) == (ids[number].ledger, ids[number].entry)
        assert (bytes(row.key), row.properties) == (b"k%d" % number, {"n": str(number)})
        assert row.topic == f"persistent://public/default/{topic}"


def test_pulsar_ranges_inside_of_entries(
    spark: Any, broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    with pulsar_client.producer(topic, batch_max_messages=10) as producer:
        ids = producer.send_many([b"%d" % number for number in range(40)])
    for first, last in ((4, 27), (11, 14), (19, 29), (20, 21)):
        starts, stops = (json.dumps({topic: [at.ledger, at.entry, at.batch_index]}) for at in (ids[first], ids[last]))
        frame = pulsar_read(spark, broker, topic, startingOffsets=starts, endingOffsets=stops).load()
        assert numbers(frame) == list(range(first + 1, last + 1)), (first, last)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nameserverr": "x"}, "has no option 'nameserverr'. Did you mean 'nameServer'?"),
        ({"columns": "value,ofset"}, "has no column 'ofset'. Did you mean 'offset'?"),
        ({"startingOffsets": "soon"}, 'neither "earliest", "latest" nor a JSON object'),
        ({"topic": ""}, 'needs .option("topic", …)'),
        ({"maxRecordsPerPartition": "-1"}, "not a whole number above 0"),
    ],
)
def test_wrong_options_are_told_before_anything_runs(
    spark: Any, broker: EmbeddedBroker, change: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match="ConfigError") as caught:
        spark.read.format("mq-rocketmq").options(**{"nameServer": broker.name_server, "topic": "t", **change}).load()
    assert message in str(caught.value)


def test_offsets_that_are_gone_are_an_error(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    fill(rocketmq_client, topic, 4)
    starts = json.dumps({topic: {"broker-a": {"0": 100}}})
    with pytest.raises(Exception, match=r"offset 100 of .* is not there: it has 0 to 2"):
        rocketmq_read(spark, broker, topic, startingOffsets=starts).load().count()
    assert numbers(rocketmq_read(spark, broker, topic, startingOffsets=starts, failOnDataLoss="false").load()) == [1, 3]

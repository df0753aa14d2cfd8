"""Writing from a real Spark: every row arrives with what its columns say; mistakes are told before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.spark import pulsar_writer, rocketmq_writer, send_partition
from tests.spark.support import received, taken, wait


def frame(spark: Any, count: int) -> Any:
    return spark.range(0, count, numPartitions=2).selectExpr(
        "cast(id as string) as value",
        "concat('k', id) as key",
        "map('n', cast(id as string)) as properties",
    )


def test_rocketmq(spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str) -> None:
    with rocketmq_client.admin() as admin:
        admin.create_topic(topic, 2)
    sink = frame(spark, 1000).write.format("mq-rocketmq").option("nameServer", broker.name_server)
    sink.option("topic", topic).option("tag", "paid").mode("append").save()
    found = taken(rocketmq_client, topic)
    assert sorted(int(message.body) for message in found) == list(range(1000))
    for message in found:
        number = message.body.decode()
        assert (message.tag, message.keys[0], message.property("n")) == ("paid", f"k{number}", number)
    ids = {message.property("sparkRow") for message in found}
    assert len(ids) == 1000
    assert len({one.split("/")[0] for one in ids}) == 1
    assert {tuple(one.split("/")[1:3]) for one in ids} == {("0", "0"), ("0", "1")}


def test_pulsar(spark: Any, broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str) -> None:
    rows = frame(spark, 1000)
    timed = rows.selectExpr("*", "timestamp_millis(1700000000123 + cast(value as bigint)) as eventTime")
    timed.write.format("mq-pulsar").options(serviceUrl=broker.pulsar_url, topic=topic).mode("append").save()
    found = received(pulsar_client, topic)
    assert sorted(int(message.body) for message in found) == list(range(1000))
    for message in found:
        number = int(message.body)
        assert (message.key, message.properties["n"]) == (f"k{number}", str(number))
        assert message.event_time == 1700000000123 + number


def test_columns_choose_queue_and_time(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    with rocketmq_client.admin() as admin:
        admin.create_topic(topic, 4)
    rows = spark.range(40).selectExpr(
        "cast(id as string) as value", "cast(id % 4 as int) as queue", "if(id = 7, 1, null) as delaySeconds"
    )
    rows.write.format("mq-rocketmq").options(nameServer=broker.name_server, topic=topic).mode("append").save()
    wait(lambda: len(taken(rocketmq_client, topic)) == 40)
    found = {int(message.body): message for message in taken(rocketmq_client, topic)}
    assert {number: message.queue_id for number, message in found.items()} == {n: n % 4 for n in range(40)}
    waited = {number for number, message in found.items() if message.stored_at - message.born_at >= 900}
    assert waited == {7}


def test_a_column_chooses_the_topic(
    spark: Any, broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str
) -> None:
    rows = spark.range(30).selectExpr(
        "cast(cast(id as string) as binary) as value", f"concat('{topic}-', id % 3) as topic"
    )
    rows.write.format("mq-pulsar").option("serviceUrl", broker.pulsar_url).mode("append").save()
    assert [len(received(pulsar_client, f"{topic}-{number}")) for number in range(3)] == [10, 10, 10]


def test_writers_for_for_each_batch(
    spark: Any,
    broker: EmbeddedBroker,
    rocketmq_client: rocketmq.Client,
    pulsar_client: pulsar.Client,
    topic: str,
) -> None:
    with rocketmq_client.admin() as admin:
        admin.create_topic(topic, 1)
    assert rocketmq_writer(broker.name_server, topic=topic)(frame(spark, 100), 7) == 100
    assert pulsar_writer(service_url=broker.pulsar_url, topic=topic, max_in_flight_bytes=2000)(frame(spark, 100)) == 100
    assert pulsar_writer(broker.pulsar_url, topic=topic)(frame(spark, 0)) == 0
    assert sorted(int(message.body) for message in taken(rocketmq_client, topic)) == list(range(100))
    assert sorted(int(message.body) for message in received(pulsar_client, topic)) == list(range(100))


def test_for_each_partition(spark: Any, broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str) -> None:
    url = broker.pulsar_url
    frame(spark, 50).foreachPartition(lambda rows: send_partition(rows, "mq-pulsar", serviceUrl=url, topic=topic))
    found = received(pulsar_client, topic)
    assert sorted(message.properties["n"] for message in found) == sorted(map(str, range(50)))


@pytest.mark.parametrize(
    ("columns", "options", "mode", "message"),
    [
        ("id", {"topic": "t"}, "append", "cannot write a column 'id'"),
        ("cast(id as string) as valeu", {"topic": "t"}, "append", "Did you mean 'value'?"),
        ("id as value", {"topic": "t"}, "append", "column 'value' as string or binary, not as bigint: cast it"),
        ("'x' as value, 'y' as queue", {"topic": "t"}, "append", "not as string: cast it"),
        ("'x' as key", {"topic": "t"}, "append", "needs a column 'value'"),
        ("'x' as value", {}, "append", 'needs .option("topic", …), or a column'),
        ("'x' as value", {"topic": "t"}, "overwrite", 'only appends: .mode("append")'),
        ("'x' as value", {"topic": "t"}, "error", "mode"),
        ("'x' as value", {"topic": "t"}, "ignore", "mode"),
        (
            "'x' as value",
            {"topic": "t", "deliveryGuarantee": "exactly-once"},
            "append",
            "no option 'deliveryguarantee'",
        ),
        ("'x' as value", {"topic": "t", "tagg": "x"}, "append", "Did you mean 'tag'?"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(
    spark: Any, broker: EmbeddedBroker, columns: str, options: dict[str, str], mode: str, message: str
) -> None:
    sink = spark.range(1).selectExpr(*columns.split(", ")).write.format("mq-rocketmq").options(**options).mode(mode)
    error = "ConfigError" if mode in ("append", "overwrite") else "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"
    with pytest.raises(Exception, match=error) as caught:
        sink.option("nameServer", broker.name_server).save()
    assert message in str(caught.value)


def test_a_row_that_is_refused_fails_the_task_with_its_place(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    with rocketmq_client.admin() as admin:
        admin.create_topic(topic, 1)
    rows = spark.range(3).selectExpr("if(id = 1, '', 'x') as value")
    with pytest.raises(Exception, match=r"row 1 of task .*: not stored: an empty or null value cannot be sent"):
        rows.coalesce(1).write.format("mq-rocketmq").options(nameServer=broker.name_server, topic=topic).mode(
            "append"
        ).save()

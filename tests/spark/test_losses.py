"""What retention took before a stream read it, and topics made anew: an error with the cure, or passed over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mqclient import pulsar, rocketmq
from mqclient.broker import EmbeddedBroker
from tests.spark.support import ask
from tests.spark.test_batch import fill

pytestmark = pytest.mark.ci


class Stream:
    """A query that is started again and again from its checkpoint, until it has read what is there."""

    def __init__(self, spark: Any, checkpoint: Path, system: str, **given: str) -> None:
        self._source = spark.readStream.format(system).options(**{"startingOffsets": "earliest", **given})
        self._checkpoint = str(checkpoint)

    def run(self, **options: str) -> list[int]:
        found: list[int] = []

        def keep(batch: Any, _: int) -> None:
            found.extend(int(bytes(row.value)) for row in batch.collect())

        frame = self._source.options(**options).load().select("value")
        query = frame.writeStream.foreachBatch(keep).option("checkpointLocation", self._checkpoint)
        query.trigger(availableNow=True).start().awaitTermination(240)
        return sorted(found)


def test_what_was_trimmed(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    stream = Stream(spark, tmp_path, "mq-rocketmq", nameServer=broker.name_server, topic=topic)
    fill(rocketmq_client, topic, 4)
    assert stream.run() == [0, 1, 2, 3]
    fill(rocketmq_client, topic, 20)
    services: Any = broker._doors[0].services[0]  # type: ignore[attr-defined]
    log = services.broker.topics[topic].queues[1].log
    broker.control.call(log.trim, 5)  # 2 of the first four, then 1, 3, 5
    with pytest.raises(Exception, match=r"queue 1: offsets 2 to 12 are not all there, it has 5 to 12.*failOnDataLoss"):
        stream.run()
    assert stream.run(failOnDataLoss="false") == sorted({*range(20)} - {1, 3, 5})
    assert stream.run() == []


def test_a_topic_made_anew(
    spark: Any, broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str, tmp_path: Path
) -> None:
    stream = Stream(spark, tmp_path, "mq-rocketmq", nameServer=broker.name_server, topic=topic)
    fill(rocketmq_client, topic, 40)
    assert stream.run() == list(range(40))
    with rocketmq_client.admin() as admin:
        admin.delete_topic(topic)
    with pytest.raises(Exception, match=f"there is no topic '{topic}'"):
        stream.run()
    fill(rocketmq_client, topic, 6)
    with pytest.raises(Exception, match=r"it was made anew\?.*failOnDataLoss"):
        stream.run()
    assert stream.run(failOnDataLoss="false") == list(range(6))
    fill(rocketmq_client, topic, 2)
    assert stream.run() == [0, 1]


def test_pulsar_goes_on_with_what_is_there(
    spark: Any, broker: EmbeddedBroker, pulsar_client: pulsar.Client, topic: str, tmp_path: Path
) -> None:
    """Brokers do not tell readers what was trimmed, nor a topic from its successor: whose ledgers come later."""
    stream = Stream(spark, tmp_path, "mq-pulsar", serviceUrl=broker.pulsar_url, topic=topic)

    def send(count: int) -> None:
        with pulsar_client.producer(topic) as producer:
            producer.send_many([b"%d" % number for number in range(count)])

    send(20)
    assert stream.run() == list(range(20))
    ask(broker.pulsar_rest, "DELETE", f"persistent/public/default/{topic}?force=true", b"")
    send(5)
    assert stream.run() == list(range(5))

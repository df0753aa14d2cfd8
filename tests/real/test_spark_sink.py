"""What Spark's tasks send, at real brokers: in its place, in its time, and on Pulsar once whatever was tried before."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from mqclient import pulsar, rocketmq
from mqclient.errors import ConfigError
from mqclient.spark import pulsar_sink, rocketmq_sink
from mqclient.spark.write_options import write_options
from mqclient.spark.writers import task
from tests.real.pulsar import RealPulsar
from tests.real.rocketmq import RealRocketMQ
from tests.spark.support import received, taken, wait

pa: Any = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")
ONCE = {"deliveryGuarantee": "exactly-once"}
VALUES = [str(number) for number in range(2500)]
_numbers = count()


def batch(values: list[str], **more: Any) -> Any:
    return pa.RecordBatch.from_pydict({"value": values, **more})


def to_pulsar(broker: RealPulsar, topic: str, batches: Any, number: str = "7", **given: str) -> int:
    options = write_options({"serviceUrl": broker.url, "topic": topic, **given}, pulsar_sink.OPTIONS, "mq-pulsar")
    return task("mq-pulsar", options, batches, "query", number)


@pytest.fixture(scope="module")
def deduplicating(real_pulsar: RealPulsar) -> RealPulsar:
    real_pulsar.request("PUT", "/namespaces/public/spark-once", b'{"replication_clusters": ["standalone"]}')
    real_pulsar.request("POST", "/namespaces/public/spark-once/deduplication", b"true")
    return real_pulsar


@pytest.fixture
def once() -> str:
    return f"persistent://public/spark-once/sink-{next(_numbers)}"


def bodies(broker: RealPulsar, topic: str) -> list[str]:
    with pulsar.Client(broker.url) as client:
        return [message.body.decode() for message in received(client, topic)]


@pytest.mark.real
@pytest.mark.xdist_group("pulsar")
def test_a_second_attempt_sends_what_is_missing(deduplicating: RealPulsar, once: str) -> None:
    assert to_pulsar(deduplicating, once, [batch(VALUES[:700])], **ONCE) == 700
    assert to_pulsar(deduplicating, once, [batch(VALUES[:300]), batch(VALUES[300:])], **ONCE) == 2500
    assert to_pulsar(deduplicating, once, [batch(VALUES)], **ONCE) == 2500
    assert to_pulsar(deduplicating, once, [batch(["next"])], "8", **ONCE) == 1
    assert to_pulsar(deduplicating, once, [batch(VALUES)], **ONCE) == 2500
    assert bodies(deduplicating, once) == [*VALUES, "next"]


@pytest.mark.real
@pytest.mark.xdist_group("pulsar")
def test_attempts_side_by_side(deduplicating: RealPulsar, once: str) -> None:
    sent, go, found = threading.Event(), threading.Event(), list[int]()

    def slow() -> Iterator[Any]:
        yield batch(VALUES[:1000])
        sent.set()
        assert go.wait(60)
        yield batch(VALUES[1000:2000])

    def second() -> Iterator[Any]:
        yield batch(VALUES[:1500])
        yield batch(VALUES[1500:])

    first = threading.Thread(target=lambda: found.append(to_pulsar(deduplicating, once, slow(), **ONCE)))
    other = threading.Thread(target=lambda: found.append(to_pulsar(deduplicating, once, second(), **ONCE)))
    first.start()
    assert sent.wait(60)
    other.start()
    other.join(1)
    assert other.is_alive()  # it waits for the name
    go.set()
    first.join(60)
    other.join(60)
    assert found == [2000, 2500]
    assert bodies(deduplicating, once) == VALUES


@pytest.mark.real
@pytest.mark.xdist_group("pulsar")
def test_without_deduplication_the_task_says_so(real_pulsar: RealPulsar) -> None:
    with pytest.raises(ConfigError, match="deduplication is off for persistent://public/default/sink-off"):
        to_pulsar(real_pulsar, "sink-off", [batch(["a"])], **ONCE)


@pytest.mark.real
@pytest.mark.xdist_group("pulsar")
def test_pulsar_rows_go_where_keys_and_times_say(deduplicating: RealPulsar, once: str) -> None:
    deduplicating.request("PUT", "/" + once.replace("://", "/") + "/partitions", b"3")
    keys = [f"key-{number}" for number in range(30)]
    with pulsar.Client(deduplicating.url) as client:
        with client.producer(once) as producer:
            producer.send_many([(b"by the client", key) for key in keys])
        for given in ({}, ONCE):
            assert to_pulsar(deduplicating, once, [batch(["by the sink"] * 30, key=keys)], **given) == 30
        for number in range(3):
            found = received(client, f"{once}-partition-{number}")
            ours = {message.key for message in found if message.body == b"by the sink"}
            assert ours == {message.key for message in found if message.body == b"by the client"} != set()
        with client.consumer(f"{once}-later", "s", type="shared") as consumer:
            rows = batch(["now", "soon"], delay=[None, 2])
            assert to_pulsar(deduplicating, f"{once}-later", [rows], **ONCE) == 2
            assert [consumer.receive(timeout=60).body for _ in range(2)] == [b"now", b"soon"]


@pytest.mark.real
@pytest.mark.xdist_group("rocketmq")
def test_rocketmq_rows_go_where_they_say(real_rocketmq: RealRocketMQ) -> None:
    topic = f"spark-sink-{next(_numbers)}"
    options = write_options(
        {"nameServer": real_rocketmq.name_server, "topic": topic, "tag": "paid"}, rocketmq_sink.OPTIONS, "mq-rocketmq"
    )
    maps = pa.array([[("n", value), ("UNIQ_KEY", "old")] for value in VALUES], pa.map_(pa.string(), pa.string()))
    with rocketmq.Client(real_rocketmq.name_server) as client:
        with client.admin() as admin:
            admin.create_topic(topic, 2)
        numbers = [number % 4 for number in range(len(VALUES))]
        assert task("mq-rocketmq", options, [batch(VALUES, queue=numbers, properties=maps)], "query", "7") == 2500
        wait(lambda: len(taken(client, topic)) == 2500)  # brokers index a message some time after they took it
        found = {message.body.decode(): message for message in taken(client, topic)}
        for number, value in enumerate(VALUES):
            message = found[value]
            assert (message.queue_id, message.tag, message.property("n")) == (number % 2, "paid", value)
            assert message.property("sparkRow") == f"query/7/0/{number}"
        rows = batch(["later", "in a second"], delaySeconds=[2.0, None], delayLevel=[None, 1])
        assert task("mq-rocketmq", options, [rows], "query", "8") == 2
        wait(lambda: len(taken(client, topic)) == 2502)

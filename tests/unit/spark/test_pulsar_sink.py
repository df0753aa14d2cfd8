"""Rows into Pulsar: the partition, the time and the properties that each asks for, and all of them once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

pytest.importorskip("pyspark")  # the messages that tasks give back are classes of its

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.errors import ConfigError
from mqclient.spark import numbered, pulsar_sink
from mqclient.spark.clients import CLIENTS
from mqclient.spark.sink import SinkError
from mqclient.spark.write_options import write_options
from mqclient.spark.writers import task
from tests.spark.support import ask, deduplicating
from tests.support.clients import pulsar_clients

pa: Any = pytest.importorskip("pyarrow")
MAP = pa.map_(pa.string(), pa.string())
EXACTLY = {"deliveryGuarantee": "exactly-once"}
_numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["pulsar"]) as embedded:
        deduplicating(embedded.pulsar_rest, "public/once")
        yield embedded
        CLIENTS.close()


client = pulsar_clients("module", "client")


@pytest.fixture
def topic() -> str:
    return f"persistent://public/once/sink-{next(_numbers)}"


def send(broker: EmbeddedBroker, topic: str, *batches: dict[str, Any], number: str = "7", **given: str) -> int:
    options = write_options(
        {"serviceUrl": broker.pulsar_url, "topic": topic, **given}, pulsar_sink.OPTIONS, "mq-pulsar"
    )
    made = [pa.RecordBatch.from_pydict(columns) for columns in batches]
    return task("mq-pulsar", options, made, "query", number)


def received(client: pulsar.Client, topic: str) -> list[Any]:
    found: list[Any] = []
    with client.reader(topic, start="earliest") as reader:
        while reader.has_message_available():
            found += reader.receive_many(10_000, timeout=10)
    return found


def bodies(client: pulsar.Client, topic: str) -> list[str]:
    return [message.body.decode() for message in received(client, topic)]


def test_rows_with_all_that_they_say(broker: EmbeddedBroker, client: pulsar.Client, topic: str) -> None:
    times = pa.array([1_700_000_000_123_000, None], pa.timestamp("us", tz="UTC"))
    maps = pa.array([[("x", "1")], None], MAP)
    columns = {"value": ["a", None], "key": ["k", None], "orderingKey": [b"o", None], "eventTime": times,
               "properties": maps}  # fmt: skip
    assert send(broker, topic, columns) == 2
    first, second = received(client, topic)
    assert (first.body, first.key, first.ordering_key, first.event_time) == (b"a", "k", b"o", 1_700_000_000_123)
    assert first.properties == {"x": "1", "sparkRow": "query/7/0/0"}
    assert (second.key, second.properties) == (None, {"sparkRow": "query/7/0/1"})


def test_keys_choose_partitions_as_everywhere(broker: EmbeddedBroker, client: pulsar.Client, topic: str) -> None:
    ask(broker.pulsar_rest, "PUT", topic.replace("://", "/") + "/partitions", b"3")
    keys = [f"key-{number}" for number in range(30)]
    with client.producer(topic) as producer:
        producer.send_many([(b"by the client", key) for key in keys])
    assert send(broker, topic, {"value": ["by the sink"] * 30, "key": keys}) == 30
    for number in range(3):
        found = received(client, f"{topic}-partition-{number}")
        ours = {message.key for message in found if message.body == b"by the sink"}
        assert ours == {message.key for message in found if message.body == b"by the client"} != set()


def test_a_row_chooses_its_partition(broker: EmbeddedBroker, client: pulsar.Client, topic: str) -> None:
    ask(broker.pulsar_rest, "PUT", topic.replace("://", "/") + "/partitions", b"3")
    columns = {"value": ["a", "b", "c", "d"], "partition": [2, None, 1, -1], "key": ["k"] * 4}
    assert send(broker, topic, columns) == 4
    assert [bodies(client, f"{topic}-partition-{number}") for number in range(3)] == [["b", "d"], ["c"], ["a"]]
    with pytest.raises(SinkError, match=r"row 1 of task .* has 3 partitions, none of number 3"):
        send(broker, topic, {"value": ["a", "b"], "partition": [0, 3]})


@pytest.mark.parametrize("given", [{}, EXACTLY])
def test_rows_that_come_later(broker: EmbeddedBroker, client: pulsar.Client, topic: str, given: dict[str, str]) -> None:
    hour = broker.house.clock.wall_ms() + 3_600_000
    at = pa.array([None, 1000 * hour], pa.timestamp("us", tz="UTC"))
    with client.consumer(topic, "s", type="shared") as consumer:
        assert send(broker, topic, {"value": ["now", "at"], "deliverAt": at, "key": ["k", None]}, **given) == 2
        assert send(broker, topic, {"value": ["x", "in"], "delay": [0, 3600]}, number="8", **given) == 2
        found = [consumer.receive(timeout=10) for _ in range(2)]
        assert [message.body for message in found] == [b"now", b"x"]
        assert (found[0].key, found[0].properties["sparkRow"]) == ("k", "query/7/0/0")
        broker.control.move_clock(7300)
        assert {consumer.receive(timeout=10).body for _ in range(2)} == {b"at", b"in"}


def test_once_whatever_happened_before(broker: EmbeddedBroker, client: pulsar.Client, topic: str) -> None:
    values = [str(number) for number in range(2500)]
    assert send(broker, topic, {"value": values[:700]}, **EXACTLY) == 700
    # The task is tried again, its rows come in other batches.
    assert send(broker, topic, {"value": values[:300]}, {"value": values[300:]}, **EXACTLY) == 2500
    assert bodies(client, topic) == values
    assert send(broker, topic, {"value": values}, **EXACTLY) == 2500
    assert bodies(client, topic) == values
    assert send(broker, topic, {"value": ["next"]}, number="8", **EXACTLY) == 1
    assert bodies(client, topic) == [*values, "next"]


def test_a_topic_without_deduplication_is_refused(broker: EmbeddedBroker) -> None:
    numbered.PROVEN.clear()
    with pytest.raises(ConfigError, match="deduplication is off for persistent://public/default/plain"):
        send(broker, "plain", {"value": ["a"]}, **EXACTLY)

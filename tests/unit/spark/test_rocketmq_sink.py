"""Rows into RocketMQ: the queue, the time and the properties that each of them asks for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

pytest.importorskip("pyspark")  # the messages that tasks give back are classes of its

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.spark import rocketmq_sink
from mqclient.spark.clients import CLIENTS
from mqclient.spark.sink import SinkError
from mqclient.spark.write_options import write_options
from mqclient.spark.writers import task
from tests.support.clients import rocketmq_clients

pa: Any = pytest.importorskip("pyarrow")
MAP = pa.map_(pa.string(), pa.string())
_numbers = count()


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(doors=["rocketmq"], brokers=2) as embedded:
        yield embedded
        CLIENTS.close()


client = rocketmq_clients("module", "client")


@pytest.fixture
def topic(client: rocketmq.Client) -> str:
    name = f"sink-{next(_numbers)}"
    with client.admin() as admin:
        admin.create_topic(name, 2)
    return name


def send(broker: EmbeddedBroker, topic: str, columns: dict[str, Any], **given: str) -> int:
    options = write_options(
        {"nameServer": broker.name_server, "topic": topic, **given}, rocketmq_sink.OPTIONS, "mq-rocketmq"
    )
    return task("mq-rocketmq", options, [pa.RecordBatch.from_pydict(columns)], "query", "7")


def by_queue(client: rocketmq.Client, topic: str) -> dict[tuple[str, int], list[Any]]:
    """Every message of a topic, by (broker, queue)."""
    with client.admin() as admin:
        ends = {queue: (has["min"] or 0, has["max"] or 0) for queue, has in admin.offsets(topic).items()}
    found: dict[tuple[str, int], list[Any]] = {}
    for queue, (start, stop) in ends.items():
        messages = found[queue.broker_name, queue.queue_id] = []
        with client.pull_consumer("taker", assign={queue: (start, stop)}) as consumer:
            while len(messages) < stop - start:
                batch = consumer.receive_batch(timeout=10)
                assert batch is not None
                messages += list(batch)
    return found


def taken(client: rocketmq.Client, topic: str) -> list[Any]:
    return [message for messages in by_queue(client, topic).values() for message in messages]


def test_rows_with_all_that_they_say(broker: EmbeddedBroker, client: rocketmq.Client, topic: str) -> None:
    maps = pa.array([[("x", "1"), ("UNIQ_KEY", "old")], None], MAP)
    columns = {"value": [b"a", b"b"], "key": ["k1 k2", None], "tag": ["t", None], "properties": maps}
    assert send(broker, topic, columns) == 2
    found = {message.body: message for message in taken(client, topic)}
    first, second = found[b"a"], found[b"b"]
    assert (first.keys, first.tag, first.property("x")) == (("k1", "k2"), "t", "1")
    assert first.property("sparkRow") == "query/7/0/0"
    assert (second.keys, second.tag, second.property("sparkRow")) == ((), None, "query/7/0/1")
    assert first.property("UNIQ_KEY") != "old"


def test_a_row_chooses_its_queue(broker: EmbeddedBroker, client: rocketmq.Client, topic: str) -> None:
    def bodies(broker_name: str, queue: int) -> list[bytes]:
        return [message.body for message in by_queue(client, topic)[broker_name, queue]]

    assert send(broker, topic, {"value": ["a", "b", "d"], "queue": [3, 0, 3]}) == 3
    assert (bodies("broker-b", 1), bodies("broker-a", 0)) == ([b"a", b"d"], [b"b"])
    send(broker, topic, {"value": ["x", "y"], "queue": [1, 1], "broker": ["broker-b", "broker-a"]})
    assert (bodies("broker-b", 1), bodies("broker-a", 1)) == ([b"a", b"d", b"x"], [b"y"])
    assert send(broker, topic, {"value": ["z"] * 4}, queue="2") == 4
    assert bodies("broker-b", 0) == [b"z"] * 4
    assert send(broker, topic, {"value": ["any", "where"], "queue": [None, -1]}) == 2
    assert len(taken(client, topic)) == 11


def test_rows_that_come_later(broker: EmbeddedBroker, client: rocketmq.Client, topic: str) -> None:
    soon = int((time.time() + 3) * 1000) * 1000
    columns = {"value": ["now", "late", "later"], "key": ["a", "b", "c"], "deliverAt": pa.array(
        [None, soon, 0], pa.timestamp("us", tz="UTC"))}  # fmt: skip
    assert send(broker, topic, columns) == 3
    assert sorted(message.body for message in taken(client, topic)) == [b"later", b"now"]
    assert send(broker, topic, {"value": ["in an hour"]}, delayLevel="17", tag="t") == 1
    assert send(broker, topic, {"value": ["in a second"], "delay": [0.5]}) == 1
    deadline = time.monotonic() + 30
    while len(found := taken(client, topic)) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    late = next(message for message in found if message.body == b"late")
    assert (late.keys, late.property("sparkRow")) == (("b",), "query/7/0/1")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"value": ["a", "b", ""]}, "row 2 of task query/7/0, topic '{}': not stored: an empty or null value"),
        (
            {"value": ["a", "b"], "queue": [0, 9]},
            "row 1 of task query/7/0, topic '{}': not stored: there is no such queue",
        ),
        ({"value": ["a"], "queue": [1], "broker": ["nobody"]}, "it has broker-a:0, broker-a:1, broker-b:0, broker-b:1"),
        ({"value": ["a", "x" * 5_000_000], "delayLevel": [0, 1]}, "row 1 of task query/7/0, topic '{}': not stored"),
    ],
)
def test_a_row_that_cannot_be_sent(broker: EmbeddedBroker, topic: str, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(SinkError) as caught:
        send(broker, topic, columns)
    assert message.format(topic) in str(caught.value)


def test_what_a_broker_refuses(broker: EmbeddedBroker, topic: str) -> None:
    broker.control.answer("SEND_BATCH_MESSAGE", 2, "full", times=99)
    try:
        with pytest.raises(SinkError, match=r"row 0 and 1 that went with it of task query/7/0") as caught:
            send(broker, topic, {"value": ["a", "b"]}, timeoutSeconds="2")
    finally:
        broker.control.clear()
    assert "full" in str(caught.value)

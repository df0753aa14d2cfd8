"""A task's rows on their way out: by topic, in pieces, every one accounted for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any, NamedTuple

import pytest

from mqclient.errors import ConfigError, LinkError
from mqclient.spark import options, pulsar_sink, rocketmq_sink
from mqclient.spark.options import WriteOptions, write_options
from mqclient.spark.schema import check_sink
from mqclient.spark.sink import Place, SinkError, write

pa: Any = pytest.importorskip("pyarrow")
PLACE = Place("query", "7", 3)


class Run(NamedTuple):
    start: int
    stop: int
    outcome: Any = None

    @property
    def ok(self) -> bool:
        return self.outcome is None


class Broker:
    """Keeps what is sent, and refuses some of it."""

    def __init__(self, refuse: str = "") -> None:
        self.sent: list[tuple[str, list[dict[str, Any]], Mapping[str, str]]] = []
        self.opened = 0
        self._refuse = refuse

    @contextmanager
    def open(self, given: WriteOptions, place: Place) -> Iterator[Any]:
        self.opened += 1
        yield self._send

    def _send(self, topic: str, batch: Any, names: Mapping[str, str]) -> list[Run]:
        self.sent.append((topic, batch.to_pylist(), names))
        return [Run(0, len(batch), LinkError("away") if topic == self._refuse else None)]


def asked(**given: str) -> WriteOptions:
    return write_options({"nameServer": "a:1", **given}, options.ROCKETMQ_SINK, "mq-rocketmq")


def send(broker: Broker, given: WriteOptions, *batches: dict[str, Any], names: Mapping[str, str] | None = None) -> int:
    made = [pa.RecordBatch.from_pydict(batch) for batch in batches]
    return write(made, given, names or rocketmq_sink.NAMES, PLACE, broker.open)


def test_rows_go_to_the_topic_of_the_option_or_of_their_column() -> None:
    broker = Broker()
    assert send(broker, asked(), {"value": ["a", "b", "c"], "topic": ["x", "y", "x"]}) == 3
    assert [(topic, [row["value"] for row in rows]) for topic, rows, _ in broker.sent] == [
        ("x", ["a", "c"]),
        ("y", ["b"]),
    ]
    broker = Broker()
    assert send(broker, asked(topic="z"), {"value": ["a", "b"], "topic": ["x", "y"]}) == 2
    assert [(topic, len(rows)) for topic, rows, _ in broker.sent] == [("z", 2)]
    with pytest.raises(ConfigError, match="a row without a topic"):
        send(Broker(), asked(), {"value": ["a", "b"], "topic": ["x", None]})


def test_nothing_is_opened_for_nothing() -> None:
    broker = Broker()
    assert send(broker, asked(topic="t"), {"value": pa.array([], pa.string())}) == 0
    assert broker.opened == 0


def test_large_batches_go_in_pieces() -> None:
    broker = Broker()
    values = ["x" * 96] * 100
    assert send(broker, asked(topic="t", maxInFlightBytes="1000"), {"value": values}, {"value": ["y"]}) == 101
    sizes = [len(rows) for _, rows, _ in broker.sent]
    assert sizes == [10] * 10 + [1]


def test_the_tag_of_the_option_wins() -> None:
    broker = Broker()
    send(broker, asked(topic="t", tag="paid"), {"value": ["a"], "tag": ["void"], "key": ["k"]})
    _, rows, names = broker.sent[0]
    assert (rows, names) == (
        [{"value": "a", "tag": "paid", "key": "k"}],
        {"body": "value", "keys": "key", "tag": "tag"},
    )


def test_ids_follow_the_rows_over_batches_and_are_made_again() -> None:
    def keys(*batches: dict[str, Any]) -> list[str]:
        broker = Broker()
        send(broker, asked(topic="t", tracking="true"), *batches)
        return [row["key"] for _, rows, _ in broker.sent for row in rows]

    batches = ({"value": ["a", "b"], "key": ["k", None]}, {"value": ["c"], "key": [b"bytes"]}, {"value": ["d"]})
    found = keys(*batches)
    assert found == ["k query/7/3/0", "query/7/3/1", "bytes query/7/3/2", "query/7/3/3"]
    assert keys(*batches) == found


def test_times_become_milliseconds_whatever_their_label_says() -> None:
    broker = Broker()
    when = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=timezone.utc)
    times = pa.array([when, None], pa.timestamp("us", tz="Asia/Tokyo"))
    send(broker, asked(topic="t"), {"value": ["a", "b"], "eventTime": times}, names=pulsar_sink.NAMES)
    assert [row["eventTime"] for row in broker.sent[0][1]] == [int(when.timestamp() * 1000), 0]


def test_a_refusal_names_rows_task_and_cause() -> None:
    given = asked(topic="bad")
    with pytest.raises(SinkError, match=r"rows 2 to 3 of task query/7/3 were not stored: away"):
        send(
            Broker("bad"),
            asked(),
            {"value": ["a", "b"], "topic": ["t", "t"]},
            {"value": ["c", "d"], "topic": ["bad"] * 2},
        )
    with pytest.raises(SinkError, match=r"rows 0 to 0 of task"):
        send(Broker("bad"), given, {"value": ["a"]})
    with pytest.raises(SinkError, match=r"1 of the rows from 0 on of task query/7/3 for topic 'bad'"):
        send(Broker("bad"), asked(), {"value": ["a", "b"], "topic": ["t", "bad"]})


@pytest.mark.parametrize(
    ("fields", "topic", "message"),
    [
        ([("value", "string"), ("colour", "string")], "t", "cannot write a column 'colour'"),
        ([("value", "string"), ("tags", "string")], "t", "Did you mean 'tag'?"),
        ([("value", "int")], "t", "as string or binary, not as int"),
        ([("key", "string")], "t", "needs a column 'value'"),
        ([("value", "binary")], None, "or a column 'topic'"),
    ],
)
def test_what_a_sink_cannot_take(fields: list[tuple[str, str]], topic: str | None, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_sink(fields, rocketmq_sink.COLUMNS, topic, "mq-rocketmq")
    assert message in str(caught.value)

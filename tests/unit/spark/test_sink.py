"""A task's rows on their way out: by topic, in pieces, every one accounted for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from mqclient.errors import LinkError
from mqclient.spark import sink, write_options
from mqclient.spark.rows import Place, Shaper
from mqclient.spark.sink import Refused, SinkError, among, write
from mqclient.spark.write_options import WriteOptions

pa: Any = pytest.importorskip("pyarrow")
PLACE = Place("query", "7", 3)


class Run(NamedTuple):
    start: int
    stop: int
    outcome: Any = None

    @property
    def ok(self) -> bool:
        return self.outcome is None


class Outcome(NamedTuple):
    ok: bool


class Broker:
    """Keeps what is sent, and refuses some of it."""

    def __init__(self, refuse: str = "") -> None:
        self.sent: list[tuple[str, list[dict[str, Any]]]] = []
        self.opened = 0
        self._refuse = refuse

    @contextmanager
    def open(self, given: WriteOptions, place: Place) -> Iterator[Any]:
        self.opened += 1
        yield self

    def send(self, topic: str, batch: Any, /) -> None:
        rows = batch.to_pylist()
        self.sent.append((topic, rows))
        sink.check([Run(at, at + 1, LinkError("away") if row["value"] == self._refuse else None)
                    for at, row in enumerate(rows)])  # fmt: skip


def asked(**given: str) -> WriteOptions:
    given = {"nameServer": "a:1", "tracking": "false", **given}
    return write_options.write_options(given, write_options.ROCKETMQ_SINK, "mq-rocketmq")


def send(broker: Broker, given: WriteOptions, *batches: dict[str, Any]) -> int:
    made = [pa.RecordBatch.from_pydict(batch) for batch in batches]
    return write(made, given, Shaper(write_options.ROCKETMQ_COLUMNS, given, PLACE, "f"), PLACE, broker.open)


def test_rows_go_to_the_topic_of_the_option_or_of_their_column() -> None:
    broker = Broker()
    assert send(broker, asked(), {"value": ["a", "b", "c"], "topic": ["x", "y", "x"]}) == 3
    assert [(topic, [row["value"] for row in rows]) for topic, rows in broker.sent] == [("x", ["a", "c"]), ("y", ["b"])]
    broker = Broker()
    assert send(broker, asked(topic="z"), {"value": ["a", "b"], "topic": ["x", "y"]}) == 2
    assert [(topic, len(rows)) for topic, rows in broker.sent] == [("z", 2)]


def test_nothing_is_opened_for_nothing() -> None:
    broker = Broker()
    assert send(broker, asked(topic="t"), {"value": pa.array([], pa.string())}) == 0
    assert broker.opened == 0


def test_large_batches_go_in_pieces() -> None:
    broker = Broker()
    values = ["x" * 96] * 100
    assert send(broker, asked(topic="t", maxInFlightBytes="1000"), {"value": values}, {"value": ["y"]}) == 101
    assert [len(rows) for _, rows in broker.sent] == [10] * 10 + [1]


def test_ids_go_on_over_batches_and_pieces() -> None:
    broker = Broker()
    given = asked(topic="t", tracking="true", maxInFlightBytes="300")
    send(broker, given, {"value": ["x" * 100] * 5}, {"value": ["y", "z"]})
    found = [dict(row["properties"])["sparkRow"] for _, rows in broker.sent for row in rows]
    assert found == [f"query/7/3/{number}" for number in range(7)]


def test_a_refusal_names_row_task_topic_and_cause() -> None:
    with pytest.raises(SinkError, match=r"row 3 of task query/7/3, topic 'y': not stored: away"):
        send(
            Broker("bad"),
            asked(),
            {"value": ["a", "b"], "topic": ["x", "y"]},
            {"value": ["c", "bad"], "topic": ["x", "y"]},
        )
    with pytest.raises(SinkError, match=r"row 1 of task query/7/3, topic None: not stored: it has no topic"):
        send(Broker(), asked(), {"value": ["a", "b"], "topic": ["x", None]})
    with pytest.raises(SinkError, match=r"row 2 and 4 that went with it of task") as caught:
        raise_for_a_run()
    assert isinstance(caught.value.__cause__, LinkError)


def raise_for_a_run() -> None:
    class Whole(Broker):
        def send(self, topic: str, batch: Any, /) -> None:
            sink.check([Run(0, 2), Run(2, 7, LinkError("away"))])

    send(Whole(), asked(topic="t"), {"value": ["a"] * 7})


def test_rows_among_others_are_told_by_their_own_number() -> None:
    with pytest.raises(Refused) as caught, among(pa.array([4, 6, 9])), among(pa.array([0, 2])):
        sink.check_each([Outcome(True), LinkError("away")])
    assert (caught.value.row, caught.value.rows) == (9, 1)

"""Exactly once: what a second attempt of a task sends, whatever the first one had time for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mqclient.errors import ConfigError, LinkError, MQError
from mqclient.spark import numbered, write_options
from mqclient.spark.numbered import Numbered
from mqclient.spark.rows import Place

pa: Any = pytest.importorskip("pyarrow")
COLUMNS = {"body": "value"}


class Broker:
    """What one name sent to one topic, as a broker with deduplication keeps it."""

    def __init__(self, dedup: bool = True) -> None:
        self.stored: list[str] = []
        self.last = -1
        self.busy = 0
        self.fail_after = -1
        self.names: list[str] = []
        self._dedup = dedup

    def producer(self, topic: str, *, name: str, timeout: float, send_timeout: float) -> Any:
        self.names.append(name)
        if self.busy:
            self.busy -= 1
            error = MQError("taken")
            error.code = numbered.BUSY
            raise error
        return Producer(self)

    def store(self, first: int, rows: list[str]) -> tuple[int, int]:
        """An entry: as a whole, or not at all."""
        if self._dedup:
            if first <= self.last:
                return -1, -1
            self.last = first + len(rows) - 1
        self.stored += rows
        return 1, len(self.stored)


class Outcome:
    ok = True


class Producer:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.last_sequence_id = broker.last
        self.closed = False

    def send_arrow(self, batch: Any, *, columns: Any, sequence_id: int, timeout: float) -> list[numbered.Run]:
        values = batch.column("value").to_pylist()
        runs = []
        for start in range(0, len(values), 3):  # entries of three
            if self._broker.fail_after == len(self._broker.stored) // 3:
                raise LinkError("the task's process is gone")
            self._broker.store(sequence_id + start, values[start : start + 3])
            runs.append(numbered.Run(start, min(start + 3, len(values)), Outcome()))
        return runs

    def send_many(self, messages: list[dict[str, Any]], *, timeout: float) -> list[Outcome]:
        for message in messages:
            self._broker.store(message["sequence_id"], [message["body"]])
        return [Outcome() for _ in messages]

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def nothing_proven() -> Iterator[None]:
    numbered.PROVEN.clear()
    yield
    numbered.PROVEN.clear()


def asked(**given: str) -> write_options.WriteOptions:
    given = {"serviceUrl": "pulsar://a:1", "topic": "t", "deliveryGuarantee": "exactly-once", **given}
    return write_options.write_options(given, write_options.PULSAR_SINK, "mq-pulsar")


def attempt(broker: Any, *batches: list[str], number: str = "7", **given: str) -> list[Any]:
    made = [pa.RecordBatch.from_pydict({"value": values}) for values in batches]
    with Numbered(broker, "t", asked(**given), Place("query", number, 3)) as producer:
        return [producer.send_arrow(batch, columns=COLUMNS) for batch in made]


VALUES = [f"v{number}" for number in range(20)]


@pytest.mark.parametrize("entries", range(6))
@pytest.mark.parametrize("cut", [1, 7, 20])
def test_a_second_attempt_sends_what_is_missing(entries: int, cut: int) -> None:
    """The first attempt ends after so many entries; the second has its rows in batches of another size."""
    broker = Broker()
    broker.fail_after = entries
    with pytest.raises(LinkError):
        attempt(broker, VALUES[:11], VALUES[11:])
    broker.fail_after = -1
    runs = attempt(broker, *(VALUES[start : start + cut] for start in range(0, 20, cut)))
    assert broker.stored == VALUES
    assert set(broker.names) == {"spark-query-3"}
    for found, start in zip(runs, range(0, 20, cut), strict=True):
        rows = [row for run in found for row in range(run.start, run.stop)]
        assert rows == list(range(len(VALUES[start : start + cut])))
        assert all(run.ok for run in found)


def test_batches_go_on_and_a_late_attempt_adds_nothing() -> None:
    broker = Broker()
    attempt(broker, VALUES[:10])
    attempt(broker, VALUES[10:], number="8", producerName="mine")
    attempt(broker, VALUES[:10])
    assert broker.stored == VALUES
    assert broker.last == (8 << 32) + 9
    assert broker.names[-1] == "spark-query-3"
    assert "mine-query-3" in broker.names


def test_rows_that_travel_alone_are_numbered_with_the_others() -> None:
    broker = Broker()
    attempt(broker, VALUES[:4])
    with Numbered(broker, "t", asked(), Place("query", "7", 3)) as producer:
        producer.send_arrow(pa.RecordBatch.from_pydict({"value": VALUES[:2]}), columns=COLUMNS)
        outcomes = producer.send_many([{"body": value} for value in VALUES[2:8]])
    assert broker.stored == VALUES[:8]
    assert [outcome.ok for outcome in outcomes] == [True] * 6


def test_without_deduplication_the_task_fails_and_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"deduplication is off for t\. Turn it on") as caught:
        attempt(Broker(dedup=False), VALUES)
    assert "at-least-once" in str(caught.value)
    assert not numbered.PROVEN


def test_the_broker_is_asked_once_whether_it_deduplicates() -> None:
    broker = Broker()
    attempt(broker, VALUES[:3], VALUES[3:])
    assert len(broker.names) == 2
    attempt(broker, VALUES, number="8")
    assert len(broker.names) == 3


def test_a_name_in_use_is_waited_for() -> None:
    broker, slept = Broker(), list[float]()
    broker.busy = 3
    place, now = Place("query", "7", 3), [0.0]
    with Numbered(broker, "t", asked(), place, clock=lambda: now[0], sleep=slept.append):
        assert len(slept) == 3
    broker.busy = 1
    now[0] = 1000.0
    times = iter([0.0, 601.0])
    with (
        pytest.raises(MQError, match="taken"),
        Numbered(broker, "t", asked(), place, clock=lambda: next(times), sleep=slept.append),
    ):
        pass

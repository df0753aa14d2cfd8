"""Writers for foreachBatch and foreachPartition, without Spark: what they check, which names their rows get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import mqclient.spark
from mqclient.errors import ConfigError
from mqclient.spark import sink, writers
from mqclient.spark.rows import Place, Shaper
from mqclient.spark.write_options import WriteOptions, write_options

pa: Any = pytest.importorskip("pyarrow")
pyspark: Any = pytest.importorskip("pyspark")
ONCE = {"deliveryGuarantee": "exactly-once"}


class Frame:
    """Two tasks, run at once."""

    def __init__(self, run: str | None = "run 1", fail: bool = False) -> None:
        field = SimpleNamespace(name="value", dataType=SimpleNamespace(simpleString=lambda: "string"))
        self.schema = SimpleNamespace(fields=[field])
        properties = {"spark.jobGroup.id": run}
        self.sparkSession = SimpleNamespace(_sc=SimpleNamespace(getLocalProperty=properties.get) if run else None)
        self._fail = fail

    def mapInArrow(self, function: Callable[[Iterator[Any]], Iterator[Any]], schema: str) -> Any:
        assert schema == "rows bigint"
        if self._fail:
            raise RuntimeError("a task failed")
        found = []
        for values in (["a", "b"], ["c"]):
            batches = [pa.RecordBatch.from_pydict({"value": values})]
            found += [SimpleNamespace(**row) for made in function(iter(batches)) for row in made.to_pylist()]
        return SimpleNamespace(collect=lambda: found)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Place, list[Any]]]:
    """What tasks hand to the sink."""
    found: list[tuple[Place, list[Any]]] = []

    def write(batches: Iterable[Any], options: WriteOptions, shaper: Shaper, place: Place, opened: Any) -> int:
        rows = [row for batch in batches for row in batch.to_pylist()]
        found.append((place, rows))
        return len(rows)

    monkeypatch.setattr(sink, "write", write)
    return found


def task_of(monkeypatch: pytest.MonkeyPatch, partition: int, **properties: str) -> None:
    context = SimpleNamespace(getLocalProperty=properties.get, partitionId=lambda: partition)
    monkeypatch.setattr(pyspark, "TaskContext", SimpleNamespace(get=lambda: context))


def stream(monkeypatch: pytest.MonkeyPatch, partition: int, batch: str) -> None:
    names = {"sql.streaming.queryId": "query", "streaming.sql.batchId": batch}
    task_of(monkeypatch, partition, **names)


def test_a_writer_counts_and_its_calls_have_names_of_their_own(sent: list[Any]) -> None:
    writer = mqclient.spark.rocketmq_writer("a:1", topic="t", max_in_flight_bytes=1000)
    assert writer(Frame()) == 3
    assert writer(Frame()) == 3
    assert [[row["value"] for row in rows] for _, rows in sent] == [["a", "b"], ["c"]] * 2
    assert len({place.query for place, _ in sent}) == 2


def test_frames_of_one_batch_have_names_that_a_new_run_makes_again(sent: list[Any]) -> None:
    writer = mqclient.spark.pulsar_writer("pulsar://a:1", topic="t", producer_name="mine", **ONCE)

    def names(run: str | None, batch: int, *failing: bool) -> list[str]:
        sent.clear()
        for fail in failing:
            if fail:
                with pytest.raises(RuntimeError):
                    writer(Frame(run, fail=True), batch)
            else:
                writer(Frame(run), batch)
        return [place.query.partition(".")[2] for place, _ in sent[::2]]

    assert names("run 1", 4, False, True, False, False) == ["", "1", "2"]
    assert names("run 2", 4, False, False) == ["", "1"]
    assert names("run 2", 5, False) == [""]
    assert names(None, 5, False) == [""]


def test_a_place_is_what_spark_says(monkeypatch: pytest.MonkeyPatch) -> None:
    assert writers.place("mine", "7") == Place("mine", "7", 0)
    task_of(monkeypatch, 3)
    assert writers.place("mine", "7", turn=2) == Place("mine.2", "7", 3)
    stream(monkeypatch, 3, "12")
    assert writers.place("mine", "7") == Place("query", "12", 3)
    with pytest.raises(ConfigError, match="producerName"):
        writers.place("mine", "7", alone=False)


def test_a_batch_write_inside_a_batch_of_a_stream_needs_a_name(
    sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream(monkeypatch, 0, "12")
    given = {"serviceUrl": "pulsar://a:1", "topic": "t", **ONCE}
    for more, streaming in (({}, True), ({"producerName": "mine"}, False)):
        options = write_options({**given, **more}, writers.SINKS["mq-pulsar"].OPTIONS, "mq-pulsar")
        writers.task("mq-pulsar", options, [], "mine", "0", streaming=streaming)
    options = write_options(given, writers.SINKS["mq-pulsar"].OPTIONS, "mq-pulsar")
    with pytest.raises(ConfigError, match="producerName"):
        writers.task("mq-pulsar", options, [], "mine", "0")
    with pytest.raises(ConfigError, match="producerName"):
        mqclient.spark.pulsar_writer("pulsar://a:1", topic="t", **ONCE)


def test_a_frame_is_checked_before_anything_is_sent(sent: list[Any]) -> None:
    with pytest.raises(ConfigError, match=r"needs \.option"):
        mqclient.spark.rocketmq_writer("a:1")(Frame())
    with pytest.raises(ConfigError, match="no option 'topicc'"):
        mqclient.spark.rocketmq_writer("a:1", topicc="t")
    assert sent == []


class Row(SimpleNamespace):
    def asDict(self) -> dict[str, Any]:
        return self.__dict__


def test_rows_of_a_partition(sent: list[Any]) -> None:
    rows = [Row(value="a", properties={"x": "1"}), Row(value="b", properties=None)]
    assert mqclient.spark.send_partition(rows, "mq-rocketmq", name_server="a:1", topic="t") == 2
    assert [row["properties"] for row in sent[0][1]] == [[("x", "1")], []]
    with pytest.raises(ConfigError, match="there are mq-rocketmq, mq-pulsar"):
        mqclient.spark.send_partition(rows, "rocketmq")
    with pytest.raises(ConfigError, match="pulsar_writer"):
        mqclient.spark.send_partition(rows, "mq-pulsar", serviceUrl="pulsar://a:1", topic="t", **ONCE)

"""The classes that Spark calls for reads, called as Spark does, without its JVM."""

from __future__ import annotations

import json
import pickle
import signal
import threading
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="pyspark is not installed")

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.errors import ConfigError
from mqclient.spark import reading, rocketmq_source
from mqclient.spark.formats import RocketmqFormat
from mqclient.spark.plan import Limit
from mqclient.spark.read_options import ReadOptions
from mqclient.spark.reading import FilteringReader, Part, Reader, StreamReader, reader, record_batches, stream_reader
from tests.unit.spark.test_filters import GreaterThan
from tests.unit.spark.test_rocketmq_source import asked, fill

SCHEMA = StructType([StructField("value", BinaryType()), StructField("offset", LongType())])
FORMAT = rocketmq_source.FORMAT


def values(source: Any, parts: list[InputPartition]) -> list[int]:
    """As tasks read: with a copy of the reader, a part at a time."""
    copy = pickle.loads(pickle.dumps(source))
    batches = [batch for part in pickle.loads(pickle.dumps(parts)) for batch in copy.read(part)]
    return sorted(int(value.as_py()) for batch in batches for value in batch.column("value"))


def test_a_batch(broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str) -> None:
    fill(rocketmq_client, topic, 6)
    source = reader(FORMAT, asked(broker, topic=topic), SCHEMA)
    assert type(source) is Reader
    assert values(source, source.partitions()) == list(range(6))
    assert list(record_batches(FORMAT, asked(broker, topic=topic), InputPartition(None), SCHEMA)) == []


def test_a_batch_that_hears_conditions(broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str) -> None:
    fill(rocketmq_client, topic, 6)
    source = reader(FORMAT, asked(broker, topic=topic, filterPushdown="true"), SCHEMA)
    assert isinstance(source, FilteringReader)
    wanted = [GreaterThan("offset", 1)]
    assert source.pushFilters(iter(wanted)) == wanted
    assert values(source, source.partitions()) == [2, 3, 4, 5]


def test_a_stream(broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str) -> None:
    fill(rocketmq_client, topic, 6)
    options = asked(broker, topic=topic, startingOffsets="earliest", maxOffsetsPerTrigger="4")
    source = stream_reader(FORMAT, options, SCHEMA)
    start = source.initialOffset()
    end = source.latestOffset(start, source.getDefaultReadLimit())
    first = values(source_of(options), source.partitions(start, json.loads(json.dumps(end))))
    source.commit(end)
    rest = source.latestOffset(end, reading.LIMITS.ReadAllAvailable())
    assert sorted(first + values(source_of(options), source.partitions(end, rest))) == list(range(6))
    assert len(first) == 4
    assert source.latestOffset(rest, None) is rest
    assert source.reportLatestOffset() == rest
    source.prepareForTriggerAvailableNow()
    source.stop()
    source_of(options).stop()


def source_of(options: ReadOptions) -> StreamReader:
    return StreamReader(FORMAT, options, SCHEMA)


def test_limits_as_spark_names_them(broker: EmbeddedBroker) -> None:
    limits = reading.LIMITS

    def of(**given: str) -> StreamReader:
        return source_of(asked(broker, topic="t", **given))

    assert type(of().getDefaultReadLimit()) is limits.ReadAllAvailable
    assert of(maxOffsetsPerTrigger="5").getDefaultReadLimit().max_rows == 5
    assert of(maxBytesPerTrigger="7").getDefaultReadLimit().max_bytes == 7
    both = of(maxOffsetsPerTrigger="5", maxBytesPerTrigger="7")
    assert both._limit(both.getDefaultReadLimit()) == Limit(5, 7)
    assert of(maxBytesPerTrigger="7")._limit(limits.ReadMaxBytes(7)) == Limit(None, 7)
    assert both._limit(limits.ReadAllAvailable()) is None


def test_before_4_2_the_end_of_the_last_batch_is_the_next_start(
    broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str
) -> None:
    fill(rocketmq_client, topic, 4)
    source = source_of(asked(broker, topic=topic, startingOffsets="earliest"))
    end = source.latestOffset()
    source.partitions(source.initialOffset(), end)
    assert source.latestOffset() is end
    source.stop()


def test_what_an_older_spark_cannot_do_is_told(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LIMITS", None)
    monkeypatch.setattr(reading, "PUSHES", False)
    limited = asked(broker, topic="t", maxOffsetsPerTrigger="5", minOffsetsPerTrigger="2")
    with pytest.raises(ConfigError, match=r"minOffsetsPerTrigger need PySpark 4\.2: .*The way out"):
        stream_reader(FORMAT, limited, SCHEMA)
    with pytest.raises(ConfigError, match=r"filterPushdown needs PySpark 4\.1"):
        reader(FORMAT, asked(broker, topic="t", filterPushdown="true"), SCHEMA)
    assert stream_reader(FORMAT, asked(broker, topic="t"), SCHEMA) is not None


def test_sigterm_ends_the_sources_process_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[Any] = []
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_DFL)
    monkeypatch.setattr(signal, "signal", lambda number, handler: installed.append(handler))
    reading.stop_on_sigterm()
    with pytest.raises(SystemExit):
        installed[0](signal.SIGTERM, None)
    elsewhere = threading.Thread(target=reading.stop_on_sigterm)
    elsewhere.start()
    elsewhere.join()
    monkeypatch.setattr(signal, "getsignal", lambda number: print)
    reading.stop_on_sigterm()
    assert len(installed) == 1


def test_a_part_holds_a_range_and_nothing_secret() -> None:
    assert vars(Part(7)) == {"range": 7, "value": None} or vars(Part(7)) == {"range": 7}
    assert RocketmqFormat.name() == FORMAT

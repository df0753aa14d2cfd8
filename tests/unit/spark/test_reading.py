"""The classes that Spark calls for reads, called as Spark does, without its JVM."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="pyspark is not installed")

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from mqclient import rocketmq
from mqclient.broker import EmbeddedBroker
from mqclient.errors import ConfigError, LinkError
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


def test_what_only_streams_or_only_batches_have_is_refused(broker: EmbeddedBroker) -> None:
    for name in ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger"):
        with pytest.raises(ConfigError, match=rf"options {name}: only streams have triggers.*endingOffsets"):
            reader(FORMAT, asked(broker, topic="t", **{name: "5"}), SCHEMA)
    for name, value in (("endingOffsets", "latest"), ("endingTimestamp", "5"), ("filterPushdown", "true")):
        with pytest.raises(ConfigError, match=rf"options {name}: only batches have them.*availableNow=True"):
            stream_reader(FORMAT, asked(broker, topic="t", **{name: value}), SCHEMA)
    assert stream_reader(FORMAT, asked(broker, topic="t", filterPushdown="false"), SCHEMA) is not None


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
    assert reading.stop_on_sigterm()
    with pytest.raises(SystemExit):
        installed[0](signal.SIGTERM, None)
    elsewhere = threading.Thread(target=reading.stop_on_sigterm)
    elsewhere.start()
    elsewhere.join()
    monkeypatch.setattr(signal, "getsignal", lambda number: print)
    assert not reading.stop_on_sigterm()
    assert len(installed) == 1


def test_only_a_source_whose_jvm_is_gone_leaves_at_once(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[int] = []
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_DFL)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(os, "_exit", left.append)
    for error, so_far in ((None, 0), (ValueError, 0), (EOFError, 1), (SystemExit, 2)):
        source = source_of(asked(broker, topic="t"))
        source.initialOffset()
        try:
            if error is not None:
                raise error
        except BaseException:
            source.stop()
        else:
            source.stop()
        assert left == [128 + signal.SIGTERM] * so_far


def test_brokers_that_do_not_answer_the_last_word_hold_nobody_up(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def silent() -> None:
        raise LinkError("gone")

    left: list[int] = []
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_DFL)
    monkeypatch.setattr(signal, "signal", lambda number, handler: None)
    monkeypatch.setattr(os, "_exit", left.append)
    source = source_of(asked(broker, topic="t"))
    monkeypatch.setattr(source.tracker, "close", silent)
    with pytest.raises(LinkError):
        source.stop()
    try:
        raise EOFError
    except EOFError:
        source.stop()
    assert "could not take its leave" in caplog.text
    assert left == [128 + signal.SIGTERM]


def framed(data: bytes) -> bytes:
    return struct.pack("!i", len(data)) + data


@pytest.mark.skipif(reading.LIMITS is None, reason="older ones speak with the source's process in another way")
@pytest.mark.parametrize("ending", ["sigterm", pytest.param("hung up", marks=pytest.mark.ci)])
def test_a_query_that_is_stopped_leaves_no_traceback(
    broker: EmbeddedBroker, rocketmq_client: rocketmq.Client, topic: str, tmp_path: Path, ending: str
) -> None:
    """The process of a stream's source, spoken to as the JVM does: which hangs up, or sends SIGTERM, or both."""
    from pyspark.sql.streaming import python_streaming_source_runner as runner

    fill(rocketmq_client, topic, 1)
    format = RocketmqFormat({"nameserver": broker.name_server, "topic": topic})
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "jvm"))
        listening.listen()
        listening.settimeout(120)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON_WORKER_FACTORY")}
        environment["PYTHON_WORKER_FACTORY_SOCK_PATH"] = str(tmp_path / "jvm")
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        command = [sys.executable, "-W", "ignore", "-m", runner.__name__]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        jvm, _ = listening.accept()
    with jvm, jvm.makefile("rb") as answers:
        version = ".".join(map(str, sys.version_info[:2]))
        opening = [framed(version.encode()), framed(str(tmp_path).encode()), struct.pack("!i", 0)]
        opening += [framed(pickle.dumps(format)), framed(SCHEMA.json().encode()), struct.pack("!i", 10_000)]
        jvm.sendall(b"".join(opening))
        assert struct.unpack("!ii", answers.read(8)) == (process.pid, 0)
        start = json.dumps({"v": 1, "start": "latest"}).encode()
        jvm.sendall(struct.pack("!i", runner.LATEST_OFFSET_ADMISSION_CONTROL_FUNC_ID) + framed(start))
        jvm.sendall(framed(json.dumps({"_type": "ReadAllAvailable"}).encode()))
        (size,) = struct.unpack("!i", answers.read(4))
        assert json.loads(answers.read(size))["q"][topic]
        if ending == "sigterm":
            process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=120)[1] == ""
    assert process.returncode == 128 + signal.SIGTERM


def test_a_part_holds_a_range_and_nothing_secret() -> None:
    assert vars(Part(7)) == {"range": 7, "value": None} or vars(Part(7)) == {"range": 7}
    assert RocketmqFormat.name() == FORMAT

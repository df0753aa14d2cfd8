"""The classes that Spark calls for a sink, called without it."""

from __future__ import annotations

import logging
import pickle
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")

from mqclient.errors import ConfigError
from mqclient.spark import writing
from mqclient.spark.write_options import PULSAR_SINK, write_options

OPTIONS = write_options({"serviceUrl": "pulsar://a:1", "topic": "t", "token": "hush"}, PULSAR_SINK, "mq-pulsar")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def task(format: str, options: Any, batches: Any, query: str, batch_id: str, *, streaming: bool) -> int:
        found.append((format, options, query, batch_id, streaming))
        return 5

    monkeypatch.setattr(writing, "task", task)
    return found


def test_a_batch_write_has_one_name_in_all_tasks(asked: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    writer = writing.Writer("mq-pulsar", OPTIONS)
    messages = [pickle.loads(pickle.dumps(writer)).write(iter(())) for _ in range(2)]
    assert asked[0] == asked[1] != writing.Writer("mq-pulsar", OPTIONS)
    assert asked[0][3:] == ("0", False)
    with caplog.at_level(logging.INFO):
        writer.commit(messages)
        writer.abort([messages[0], None])
    assert "10 rows written" in caplog.text
    assert "5 rows written by tasks of a job that failed" in caplog.text
    assert "hush" not in repr(asked) + repr(messages)


def test_the_sink_of_a_stream(asked: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    if writing.ARROW_STREAM is None:
        pytest.skip("PySpark 4.1 is needed")
    writer = writing.stream_writer("mq-pulsar", OPTIONS)
    message = writer.write(iter(()))
    assert asked[0][4] is True
    with caplog.at_level(logging.INFO):
        writer.commit([message], 7)
        writer.abort([message, None], 8)
    assert "5 rows written in batch 7" in caplog.text
    assert "5 rows written by tasks of batch 8, which failed" in caplog.text


def test_before_pyspark_4_1_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "ARROW_STREAM", None)
    with pytest.raises(ConfigError, match=r"needs PySpark 4\.1.*foreachBatch"):
        writing.stream_writer("mq-pulsar", OPTIONS)

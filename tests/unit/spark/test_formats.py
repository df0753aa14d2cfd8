"""The formats as Spark asks them: everything that is wrong is told by `schema()` or by the factory that comes first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark.sql.datasource", reason="pyspark is not installed")

from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from mqclient.errors import ConfigError
from mqclient.spark import pulsar_writer, register, rocketmq_writer
from mqclient.spark.formats import Format, PulsarFormat, RocketmqFormat

VALUE = StructType([StructField("value", BinaryType())])


def rocketmq(**given: str) -> Format:
    return RocketmqFormat({"nameServer": "127.0.0.1:1", "topic": "t", **given})


def pulsar(**given: str) -> Format:
    return PulsarFormat({"serviceUrl": "pulsar://127.0.0.1:1", "topic": "t", **given})


def test_names_and_columns() -> None:
    assert (RocketmqFormat.name(), PulsarFormat.name()) == ("mq-rocketmq", "mq-pulsar")
    assert rocketmq().schema().startswith("key binary, value binary, topic string, broker string, queue int")
    assert pulsar(columns="value,ledgerId").schema() == "value binary, ledgerId bigint"
    assert "properties" not in pulsar(includeHeaders="false").schema()


def test_readers_and_writers_are_made_without_a_broker() -> None:
    for source in (rocketmq(), pulsar()):
        assert source.reader(VALUE) is not None
        assert source.streamReader(VALUE) is not None
        assert source.writer(VALUE, overwrite=False) is not None
        assert source.streamWriter(VALUE, overwrite=False) is not None


@pytest.mark.parametrize("factory", ["reader", "streamReader"])
def test_a_schema_of_ones_own_is_checked(factory: str) -> None:
    for schema, message in (
        (StructType([StructField("offset", StringType())]), "column 'offset' of mq-rocketmq is bigint, not string"),
        (StructType([StructField("ofset", LongType())]), "Did you mean 'offset'"),
    ):
        with pytest.raises(ConfigError, match=message):
            getattr(rocketmq(), factory)(schema)
    with pytest.raises(ConfigError, match="a schema of your own: give one of them"):
        getattr(rocketmq(columns="offset"), factory)(VALUE)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: rocketmq(startingOfsets="x").schema(), "Did you mean 'startingOffsets'"),
        (lambda: rocketmq(startingOfsets="x").reader(VALUE), "Did you mean 'startingOffsets'"),
        (lambda: pulsar(columns="valeu").schema(), "Did you mean 'value'"),
        (lambda: rocketmq().writer(VALUE, overwrite=True), "only appends"),
        (lambda: pulsar().streamWriter(VALUE, overwrite=True), "only appends"),
        (lambda: pulsar(topicc="x").writer(VALUE, overwrite=False), "Did you mean 'topic'"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(ask: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ask()


def test_a_format_that_was_discovered_may_stay() -> None:
    """PySpark 4.0 lets no source be replaced."""
    errors = pytest.importorskip("pyspark.errors")

    def refuse(condition: str) -> None:
        def known_already(format: Any) -> None:
            raise errors.AnalysisException(f"[{condition}] Data source 'mq-rocketmq' already exists.")

        register(SimpleNamespace(dataSource=SimpleNamespace(register=known_already)))

    refuse("DATA_SOURCE_ALREADY_EXISTS")
    with pytest.raises(errors.AnalysisException, match="ELSE"):
        refuse("SOMETHING_ELSE")


def test_a_session_learns_both_formats() -> None:
    known: list[type[Format]] = []
    register(SimpleNamespace(dataSource=SimpleNamespace(register=known.append)))
    assert known == [RocketmqFormat, PulsarFormat]
    writers = [
        rocketmq_writer("127.0.0.1:1", topic="t", producer_group="g"),
        pulsar_writer("pulsar://127.0.0.1:1", topic="t"),
    ]
    assert all(callable(writer) for writer in writers)
    with pytest.raises(ConfigError, match="has no option 'topicc'"):
        rocketmq_writer("127.0.0.1:1", topicc="t")

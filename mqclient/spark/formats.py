"""Owns the classes that Spark calls: each checks its options, then hands on to its system's module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from mqclient.errors import ConfigError
from mqclient.spark import pulsar_source, rocketmq_source
from mqclient.spark.options import ReadOptions, read_options
from mqclient.spark.schema import check_fields, ddl

SYSTEMS: Mapping[str, Any] = {module.FORMAT: module for module in (rocketmq_source, pulsar_source)}


class Part(InputPartition):
    """What one task reads: a range and nothing secret."""

    def __init__(self, range: Any) -> None:
        self.range = range


class Reader(DataSourceReader):
    """A batch read: planned on the driver, then each range as record batches."""

    def __init__(self, format: str, options: ReadOptions, schema: Any) -> None:
        self._format = format
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        return [Part(range) for range in SYSTEMS[self._format].plan(self._options)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return record_batches(self._format, self._options, partition, self._schema)


class Format(DataSource):
    """What both formats do alike; subclasses say which system they are of."""

    format: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> str:
        return ddl(SYSTEMS[self.format].COLUMNS, self._read_options(), self.format)

    def reader(self, schema: Any) -> DataSourceReader:
        return Reader(self.format, self._checked(schema), schema)

    def _read_options(self) -> ReadOptions:
        return read_options(self.options, SYSTEMS[self.format].OPTIONS, self.format)

    def _checked(self, schema: Any) -> ReadOptions:
        """`schema()` is not called where the user gives one: everything is checked here again."""
        options = self._read_options()
        if options.columns and options.columns != tuple(schema.names):
            raise ConfigError("option columns and a schema of your own: give one of them.")
        fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        check_fields(fields, SYSTEMS[self.format].COLUMNS, self.format)
        return options


class RocketmqFormat(Format):
    """spark.read.format("mq-rocketmq")"""

    format = rocketmq_source.FORMAT


class PulsarFormat(Format):
    """spark.read.format("mq-pulsar")"""

    format = pulsar_source.FORMAT


def record_batches(format: str, options: ReadOptions, partition: Any, schema: Any) -> Iterator[Any]:
    """Runs in the task. Where nothing is planned, Spark runs one task all the same, with a partition of its own."""
    if not isinstance(partition, Part):
        return iter(())
    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    found: Iterator[Any] = SYSTEMS[format].read(options, partition.range, arrow_schema)
    return found

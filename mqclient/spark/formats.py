"""Owns the classes that Spark calls: each checks its options, then hands on to its system's module."""

from __future__ import annotations

from typing import Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceReader

from mqclient.errors import ConfigError
from mqclient.spark import pulsar_source, rocketmq_source
from mqclient.spark.read_options import ReadOptions, read_options
from mqclient.spark.reading import SYSTEMS, reader, stream_reader
from mqclient.spark.schema import check_fields, ddl
from mqclient.spark.write_options import WriteOptions, check_columns, write_options
from mqclient.spark.writers import SINKS
from mqclient.spark.writing import Writer, stream_writer


class Format(DataSource):
    """What both formats do alike; subclasses say which system they are of."""

    format: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return cls.format

    def schema(self) -> str:
        return ddl(SYSTEMS[self.format].COLUMNS, self._read_options(), self.format)

    def reader(self, schema: Any) -> DataSourceReader:
        return reader(self.format, self._checked(schema), schema)

    def streamReader(self, schema: Any) -> Any:
        return stream_reader(self.format, self._checked(schema), schema)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return Writer(self.format, self._checked_sink(schema, overwrite))

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        return stream_writer(self.format, self._checked_sink(schema, overwrite))

    def _checked_sink(self, schema: Any, overwrite: bool) -> WriteOptions:
        if overwrite:
            raise ConfigError(
                f'{self.format} only appends: .mode("append"), or .outputMode("append"). For other output modes: '
                ".foreachBatch(mqclient.spark.rocketmq_writer(…)) or pulsar_writer(…)."
            )
        sink = SINKS[self.format]
        options = write_options(self.options, sink.OPTIONS, self.format)
        fields = [(field.name, field.dataType.simpleString()) for field in schema.fields]
        check_columns(fields, sink.COLUMNS, options, self.format)
        return options

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

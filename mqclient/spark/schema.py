"""Owns which columns the sources have, and which of them a read is to give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from mqclient.errors import ConfigError
from mqclient.spark.arrow import Column
from mqclient.spark.read_options import ReadOptions

MAP: Final = "map<string,string>"
ROCKETMQ: Final = (
    Column("key", "binary", "keys"),
    Column("value", "binary", "body"),
    Column("topic", "string"),
    Column("broker", "string"),
    Column("queue", "int"),
    Column("offset", "bigint", "offset"),
    Column("timestamp", "timestamp", "stored_at"),
    Column("tag", "string", "tag"),
    Column("properties", MAP, "properties"),
    Column("bornTimestamp", "timestamp", "born_at", default=False),
    Column("messageId", "string", "message_id", default=False),
    Column("attempts", "int", "attempts", default=False),
    Column("sysFlag", "int", "sys_flag", default=False),
    Column("flag", "int", "flag", default=False),
)
PULSAR: Final = (
    Column("key", "binary", "key"),
    Column("value", "binary", "body"),
    Column("topic", "string"),
    Column("partition", "int"),
    Column("ledgerId", "bigint"),
    Column("entryId", "bigint"),
    Column("batchIndex", "int", "batch_index"),
    Column("timestamp", "timestamp", "published_at"),
    Column("properties", MAP, "properties"),
    Column("eventTime", "timestamp", "event_time", default=False),
    Column("orderingKey", "binary", "ordering_key", default=False),
    Column("sequenceId", "bigint", "sequence_id", default=False),
    Column("producerName", "string", default=False),
)


def by_name(columns: Sequence[Column]) -> dict[str, Column]:
    return {column.name: column for column in columns}


def ddl(columns: Sequence[Column], options: ReadOptions, format: str) -> str:
    """The schema that a read has unless the user gives one."""
    known = by_name(columns)
    names = options.columns or tuple(
        column.name for column in columns if column.default and (options.properties or column.type != MAP)
    )
    for name in names:
        checked(name, known, format, "option columns")
    return ", ".join(f"{name} {known[name].type}" for name in names)


def check_fields(fields: Sequence[tuple[str, str]], columns: Sequence[Column], format: str) -> None:
    """A schema that the user gave: a choice of columns with the types they have."""
    known = by_name(columns)
    for name, type_name in fields:
        column = checked(name, known, format, "the schema given")
        if type_name != column.type:
            raise ConfigError(f"the schema given: column {name!r} of {format} is {column.type}, not {type_name}.")


def checked(name: str, known: Mapping[str, Column], format: str, what: str) -> Column:
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"{what}: {format} has no column {name!r}.{hint} It has: {', '.join(known)}.")
    return known[name]

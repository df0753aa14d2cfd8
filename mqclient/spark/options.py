"""Owns the options of the Spark formats: their names and aliases, their checks, and errors that name the cure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from mqclient.errors import ConfigError

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
Position = str | dict[str, Any]
"""`earliest`, `latest`, or offsets by topic as the format writes them."""


class Option(NamedTuple):
    """One option: its name as documented, the spellings that mean the same, its default."""

    name: str
    aliases: tuple[str, ...] = ()
    default: str | None = None


NAME_SERVER: Final = Option("nameServer", ("namesrv", "name.server"))
SERVICE_URL: Final = Option("serviceUrl", ("service.url",))
TOPIC: Final = Option("topic", ("subscribe", "topics", "path"))
TOKEN: Final = (Option("token"), Option("tokenFile"), Option("tokenEnv"))
SPARKS_OWN: Final = frozenset({"checkpointlocation", "queryname"})
"""What Spark passes on although it is meant for itself."""
READ: Final = (
    TOPIC,
    Option("startingOffsets"),
    Option("endingOffsets", default=LATEST),
    Option("failOnDataLoss", default="true"),
    Option("columns"),
    Option("includeProperties", ("includeHeaders",), "true"),
    Option("arrowBatchRows", default="10000"),
    Option("arrowBatchBytes", default="2097152"),
    Option("timeoutSeconds", default="60"),
    Option("offsetPollIntervalMs", default="100"),
)
COUNTED: Final = (
    Option("maxRecordsPerPartition"),
    Option("minPartitions"),
    Option("maxOffsetsPerTrigger"),
    Option("minOffsetsPerTrigger"),
    Option("maxTriggerDelaySeconds", ("maxTriggerDelay",), "900"),
    Option("consumerGroup", ("groupId", "kafka.group.id"), "mqclient-spark"),
)
"""Where offsets are dense, so that they can be counted: RocketMQ."""
WRITE: Final = (
    TOPIC,
    Option("maxInFlightBytes", default="16777216"),
    Option("timeoutSeconds", ("sendTimeoutSeconds",), "60"),
)
ROCKETMQ_SOURCE: Final = (NAME_SERVER, *READ, *COUNTED)
ROCKETMQ_SINK: Final = (
    NAME_SERVER,
    *WRITE,
    Option("tag"),
    Option("tracking", default="false"),
    Option("producerGroup", default="mqclient-spark"),
)
PULSAR_SOURCE: Final = (SERVICE_URL, *READ, *TOKEN)
PULSAR_SINK: Final = (SERVICE_URL, *WRITE, *TOKEN)


class Secret:
    """A credential, or where to find one: never shown, and looked up only where a connection is made."""

    __slots__ = ("_kind", "_text")

    def __init__(self, kind: str, text: str) -> None:
        self._kind = kind
        self._text = text

    def reveal(self) -> str:
        if self._kind == "File":
            with open(self._text, encoding="utf-8") as file:
                return file.read().strip()
        if self._kind == "Env":
            value = os.environ.get(self._text)
            if value is None:
                raise ConfigError(f"option tokenEnv={self._text!r}: there is no such variable where the task runs")
            return value
        return self._text

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self._kind, self._text) == (other._kind, other._text)

    def __hash__(self) -> int:
        return hash((self._kind, self._text))


@dataclass(frozen=True)
class ReadOptions:
    """What a source was asked for, checked: `address` is the name server or the service URL."""

    address: str
    topics: tuple[str, ...]
    start: Position | None
    end: Position
    fail_on_data_loss: bool
    columns: tuple[str, ...]
    properties: bool
    batch_rows: int
    batch_bytes: int
    timeout: float
    poll: float
    token: Secret | None = None
    max_records: int | None = None
    min_partitions: int | None = None
    max_per_trigger: int | None = None
    min_per_trigger: int | None = None
    trigger_delay: float = 900.0
    group: str = "mqclient-spark"


@dataclass(frozen=True)
class WriteOptions:
    """What a sink was asked for, checked; an option wins over the column of its name."""

    address: str
    topic: str | None
    in_flight: int
    timeout: float
    tracking: bool
    token: Secret | None = None
    tag: str | None = None
    group: str = "mqclient-spark"


def read_options(given: Mapping[str, str], table: tuple[Option, ...], format: str) -> ReadOptions:
    """Check what the user gave for a read.

    >>> read_options({"nameserver": "127.0.0.1:9876", "topic": "orders"}, ROCKETMQ_SOURCE, "mq-rocketmq").topics
    ('orders',)
    """
    values = Values(given, table, format)
    topics = values.names("topic")
    if not topics:
        raise ConfigError(f'format {format} needs .option("topic", …): one topic, or several with commas between.')
    return ReadOptions(
        address=values.address(table),
        topics=topics,
        start=values.position("startingOffsets"),
        end=values.position("endingOffsets") or LATEST,
        fail_on_data_loss=values.flag("failOnDataLoss"),
        columns=values.names("columns"),
        properties=values.flag("includeProperties"),
        batch_rows=values.number("arrowBatchRows") or 1,
        batch_bytes=values.number("arrowBatchBytes") or 1,
        timeout=float(values.number("timeoutSeconds") or 60),
        poll=(values.number("offsetPollIntervalMs") or 100) / 1000,
        token=values.secret(),
        max_records=values.number("maxRecordsPerPartition"),
        min_partitions=values.number("minPartitions"),
        max_per_trigger=values.number("maxOffsetsPerTrigger"),
        min_per_trigger=values.number("minOffsetsPerTrigger"),
        trigger_delay=float(values.number("maxTriggerDelaySeconds") or 900),
        group=values.get("consumerGroup") or "mqclient-spark",
    )


def write_options(given: Mapping[str, str], table: tuple[Option, ...], format: str) -> WriteOptions:
    """Check what the user gave for a write."""
    values = Values(given, table, format)
    return WriteOptions(
        address=values.address(table),
        topic=values.get("topic"),
        in_flight=values.number("maxInFlightBytes") or 1,
        timeout=float(values.number("timeoutSeconds") or 60),
        tracking=values.flag("tracking"),
        token=values.secret(),
        tag=values.get("tag"),
        group=values.get("producerGroup") or "mqclient-spark",
    )


class Values:
    """Options by their documented names; Spark lower-cases keys, so case does not count."""

    def __init__(self, given: Mapping[str, str], table: tuple[Option, ...], format: str) -> None:
        self._format = format
        self._values = {option.name: option.default for option in table}
        names = {spelling.lower(): option.name for option in table for spelling in (option.name, *option.aliases)}
        for key, value in given.items():
            name = names.get(key.lower())
            if key.lower() in SPARKS_OWN:
                continue
            if name is None:
                spellings = {option.name.lower(): option.name for option in table}
                near = get_close_matches(key.lower(), spellings, 1)
                hint = f" Did you mean {spellings[near[0]]!r}?" if near else ""
                known = ", ".join(option.name for option in table)
                raise ConfigError(f"format {format} has no option {key!r}.{hint} It has: {known}.")
            self._values[name] = value

    def get(self, name: str) -> str | None:
        return self._values.get(name) or None

    def address(self, table: tuple[Option, ...]) -> str:
        name = table[0].name
        value = self.get(name)
        if value is None:
            raise ConfigError(f'format {self._format} needs .option("{name}", …).')
        return value

    def names(self, name: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in (self.get(name) or "").split(",") if part.strip())

    def number(self, name: str) -> int | None:
        text = self.get(name)
        if text is None:
            return None
        number = int(text) if text.strip().isdecimal() else 0
        if number < 1:
            raise ConfigError(f"option {name}={text!r} is not a whole number above 0.")
        return number

    def flag(self, name: str) -> bool:
        text = (self.get(name) or "false").lower()
        if text not in ("true", "false"):
            raise ConfigError(f"option {name}={text!r} is neither true nor false.")
        return text == "true"

    def position(self, name: str) -> Position | None:
        """`earliest`, `latest`, or a JSON object of offsets."""
        text = self.get(name)
        if text is None or text.lower() in (EARLIEST, LATEST):
            return None if text is None else text.lower()
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ConfigError(f'option {name}={text!r} is neither "earliest", "latest" nor a JSON object of offsets.')
        return value

    def secret(self) -> Secret | None:
        given = [(kind, value) for kind in ("", "File", "Env") if (value := self.get(f"token{kind}")) is not None]
        if len(given) > 1:
            raise ConfigError("of token, tokenFile and tokenEnv one is enough.")
        return Secret(*given[0]) if given else None

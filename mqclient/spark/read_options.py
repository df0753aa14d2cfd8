"""Owns what a source can be asked for: its options, which topics and queues, where to begin and to end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mqclient.errors import ConfigError
from mqclient.spark.access import PULSAR_ACCESS, ROCKETMQ_ACCESS, Access, access
from mqclient.spark.options import EARLIEST, LATEST, TOPIC, Option, Position, Values, milliseconds

TIME: Final = "@time"
"""A position by time is {"@time": milliseconds}, or {"@time": {topic: milliseconds}}: JSON as all positions are."""
READ: Final = (
    TOPIC,
    Option("topicPattern", ("subscribePattern", "topicsPattern")),
    Option("assign"),
    Option("startingOffsets"),
    Option("startingTimestamp"),
    Option("startingOffsetsByTimestamp"),
    Option("endingOffsets"),
    Option("endingTimestamp"),
    Option("endingOffsetsByTimestamp"),
    Option("failOnDataLoss", default="true"),
    Option("columns"),
    Option("includeProperties", ("includeHeaders",), "true"),
    Option("filterPushdown", default="false"),
    Option("minPartitions"),
    Option("maxRecordsPerPartition"),
    Option("maxOffsetsPerTrigger", ("maxRowsPerTrigger",)),
    Option("minOffsetsPerTrigger"),
    Option("maxTriggerDelaySeconds", ("maxTriggerDelay",), "900"),
    Option("maxBytesPerTrigger"),
    Option("arrowBatchRows", default="10000"),
    Option("arrowBatchBytes", default="2097152"),
    Option("timeoutSeconds", default="60"),
    Option("offsetPollIntervalMs", default="100"),
    Option("topicRefreshSeconds", default="10"),
)
ROCKETMQ_SOURCE: Final = (
    *ROCKETMQ_ACCESS,
    *READ,
    Option("tag", ("tags",)),
    Option("sql"),
    Option("filterExpression"),
    Option("filterType", default="TAG"),
    Option("consumerGroup", ("groupId", "kafka.group.id")),
)
PULSAR_SOURCE: Final = (*PULSAR_ACCESS, *READ, Option("subscriptionName", ("subscription",)))
LIMITS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxBytesPerTrigger")
"""What only streams have, and only Sparks with admission control can do."""
ENDS: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "filterPushdown")
"""What only batches have."""


@dataclass(frozen=True)
class ReadOptions:
    """What a source was asked for, checked."""

    access: Access
    topics: tuple[str, ...]
    """Names; none if there is a pattern."""
    pattern: str | None
    assign: Mapping[str, Any]
    """By topic the queues or partitions that are wanted, all others are not; empty: all of them."""
    start: Position | None
    end: Position
    fail_on_data_loss: bool
    columns: tuple[str, ...]
    properties: bool
    batch_rows: int
    batch_bytes: int
    timeout: float
    poll: float
    refresh: float
    expression: str = "*"
    sql: bool = False
    max_records: int | None = None
    min_partitions: int | None = None
    max_per_trigger: int | None = None
    min_per_trigger: int | None = None
    max_bytes: int | None = None
    trigger_delay: float = 900.0
    group: str | None = None
    subscription: str | None = None
    push_filters: bool = False
    limits: tuple[str, ...] = field(default=())
    """Names of the options given that only streams have, and only Sparks with admission control can do."""
    ends: tuple[str, ...] = field(default=())
    """Names of the options given that only batches have."""


def read_options(given: Mapping[str, str], table: tuple[Option, ...], format: str) -> ReadOptions:
    """Check what the user gave for a read.

    >>> read_options({"nameserver": "127.0.0.1:9876", "topic": "orders"}, ROCKETMQ_SOURCE, "mq-rocketmq").topics
    ('orders',)
    """
    values = Values(given, table, format)
    topics, pattern, assign = subscribed(values, format)
    expression, sql = chosen(values)
    return ReadOptions(
        access=access(values, ROCKETMQ_ACCESS if table is ROCKETMQ_SOURCE else PULSAR_ACCESS),
        topics=topics,
        pattern=pattern,
        assign=assign,
        start=position(values, "starting"),
        end=position(values, "ending") or LATEST,
        fail_on_data_loss=values.flag("failOnDataLoss"),
        columns=values.names("columns"),
        properties=values.flag("includeProperties"),
        batch_rows=values.number("arrowBatchRows") or 1,
        batch_bytes=values.number("arrowBatchBytes") or 1,
        timeout=float(values.number("timeoutSeconds") or 60),
        poll=(values.number("offsetPollIntervalMs") or 100) / 1000,
        refresh=float(10 if (refresh := values.number("topicRefreshSeconds", least=0)) is None else refresh),
        expression=expression,
        sql=sql,
        max_records=values.number("maxRecordsPerPartition"),
        min_partitions=values.number("minPartitions"),
        max_per_trigger=values.number("maxOffsetsPerTrigger"),
        min_per_trigger=values.number("minOffsetsPerTrigger"),
        max_bytes=values.number("maxBytesPerTrigger"),
        trigger_delay=float(values.number("maxTriggerDelaySeconds") or 900),
        group=values.get("consumerGroup"),
        subscription=values.get("subscriptionName"),
        push_filters=values.flag("filterPushdown"),
        limits=tuple(name for name in LIMITS if values.get(name) is not None),
        ends=tuple(name for name in ENDS if values.get(name) not in (None, "false")),
    )


def subscribed(values: Values, format: str) -> tuple[tuple[str, ...], str | None, dict[str, Any]]:
    """Topics by name, by pattern or by assignment: exactly one of the three."""
    topics, pattern, assign = values.names("topic"), values.get("topicPattern"), values.get("assign")
    given = [name for name, value in (("topic", topics), ("topicPattern", pattern), ("assign", assign)) if value]
    if len(given) != 1:
        also = f", not {' and '.join(given)} together" if given else ""
        raise ConfigError(
            f'format {format} needs .option("topic", …) (one topic, or several with commas between), topicPattern or '
            f"assign{also}."
        )
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(f"option topicPattern={pattern!r} is no regular expression: {error}.") from None
    queues = {} if assign is None else assignment(assign)
    return topics or tuple(sorted(queues)), pattern, queues


def assignment(text: str) -> dict[str, Any]:
    """{"topic": [0, 1]}, or by broker {"topic": {"broker": [0, 1]}}."""
    try:
        value = json.loads(text)
        for wanted in value.values():
            for numbers in wanted.values() if isinstance(wanted, dict) else [wanted]:
                if not numbers or not all(isinstance(number, int) and number >= 0 for number in numbers):
                    raise ValueError(numbers)
    except (AttributeError, TypeError, ValueError):
        value = None
    if not value:
        shape = '{"topic": [0, 1]}, or of RocketMQ {"topic": {"broker": [0, 1]}}'
        raise ConfigError(f"option assign={text!r} is not of the form {shape}.")
    return dict(value)


def chosen(values: Values) -> tuple[str, bool]:
    """What brokers are to filter by, and whether that is SQL."""
    if "tag" not in values:
        return "*", False
    kind = (values.get("filterType") or "TAG").upper()
    if kind not in ("TAG", "SQL92", "SQL"):
        raise ConfigError(f"option filterType={kind!r}: it is TAG or SQL92.")
    named = {name: text for name in ("tag", "sql", "filterExpression") if (text := values.get(name)) is not None}
    if len(named) > 1:
        raise ConfigError(f"options {' and '.join(sorted(named))}: a topic is filtered by one of them.")
    name, text = next(iter(named.items()), ("tag", "*"))
    return text, name == "sql" or (name == "filterExpression" and kind != "TAG")


def position(values: Values, which: str) -> Position | None:
    """`which`: starting or ending. Earliest, latest, offsets as JSON, or times."""
    names = (f"{which}Offsets", f"{which}Timestamp", f"{which}OffsetsByTimestamp")
    given = [name for name in names if values.get(name) is not None]
    if len(given) > 1:
        raise ConfigError(f"options {' and '.join(given)}: one of them says where, not both.")
    moment = values.time(names[1])
    if moment is not None:
        return {TIME: moment}
    by_topic = values.get(names[2])
    return values.position(names[0]) if by_topic is None else {TIME: times(by_topic, names[2])}


def times(text: str, name: str) -> dict[str, int]:
    """{"topic": milliseconds or a date}."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not value:
        raise ConfigError(f'option {name}={text!r} is not of the form {{"topic": milliseconds}}.')
    return {topic: milliseconds(value[topic], f"option {name}") for topic in sorted(value)}


def time_of(position: Position, topic: str) -> int | None:
    """The time of a topic, if the position is one by time."""
    at = position.get(TIME) if isinstance(position, dict) else None
    found = at.get(topic) if isinstance(at, dict) else at
    return None if found is None else int(found)


__all__ = ["EARLIEST", "LATEST", "Position", "ReadOptions", "read_options"]

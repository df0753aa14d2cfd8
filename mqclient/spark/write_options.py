"""Owns what a sink can be asked for: its options, the columns it takes, and errors that name the cure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final

from mqclient.errors import ConfigError
from mqclient.spark.access import PULSAR_ACCESS, ROCKETMQ_ACCESS, Access, access
from mqclient.spark.options import Option, Values

AT_LEAST_ONCE: Final = "at-least-once"
EXACTLY_ONCE: Final = "exactly-once"
WRITE: Final = (
    Option("topic", ("path",)),
    Option("key"),
    Option("properties", ("headers",)),
    Option("delaySeconds", ("delay",)),
    Option("tracking", default="true"),
    Option("maxInFlightBytes", ("maxInFlight",), "16777216"),
    Option("timeoutSeconds", ("sendTimeoutSeconds",), "60"),
)
ROCKETMQ_SINK: Final = (
    *ROCKETMQ_ACCESS,
    *WRITE,
    Option("tag", ("tags",)),
    Option("queue", ("queueId",)),
    Option("delayLevel"),
    Option("producerGroup", default="mqclient-spark"),
)
PULSAR_SINK: Final = (
    *PULSAR_ACCESS,
    *WRITE,
    Option("partition", ("queue",)),
    Option("deliveryGuarantee", default=AT_LEAST_ONCE),
    Option("producerName"),
)

MAP: Final = "map<string,string>"
TEXT: Final = ("string", "binary")
WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
Columns = Mapping[str, tuple[str, ...]]
COMMON: Final[Columns] = {
    "value": TEXT,
    "key": TEXT,
    "topic": ("string",),
    "properties": (MAP,),
    "delaySeconds": (*WHOLE, "float", "double"),
    "deliverAt": ("timestamp",),
}
"""The columns that a sink takes, and of which types."""
ROCKETMQ_COLUMNS: Final[Columns] = {
    **COMMON,
    "tag": ("string",),
    "broker": ("string",),
    "queue": WHOLE,
    "delayLevel": WHOLE,
}
PULSAR_COLUMNS: Final[Columns] = {**COMMON, "partition": WHOLE, "orderingKey": TEXT, "eventTime": ("timestamp",)}
SPELLINGS: Final = {
    "tags": "tag",
    "keys": "key",
    "queueid": "queue",
    "headers": "properties",
    "delay": "delaySeconds",
}
"""Other names of columns, where the sink has what they mean."""


@dataclass(frozen=True)
class WriteOptions:
    """What a sink was asked for, checked. `fixed`: by column what an option says of all rows."""

    access: Access
    topic: str | None
    in_flight: int
    timeout: float
    tracking: bool
    fixed: Mapping[str, Any] = field(default_factory=dict)
    group: str = "mqclient-spark"
    exactly_once: bool = False
    producer_name: str | None = None


def write_options(given: Mapping[str, str], table: tuple[Option, ...], format: str) -> WriteOptions:
    """Check what the user gave for a write.

    >>> asked = write_options({"nameServer": "a:1", "topic": "t", "TAG": "paid"}, ROCKETMQ_SINK, "mq-rocketmq")
    >>> asked.topic, asked.fixed
    ('t', {'tag': 'paid'})
    """
    values = Values(given, table, format)
    guarantee = values.get("deliveryGuarantee") or AT_LEAST_ONCE
    if guarantee not in (AT_LEAST_ONCE, EXACTLY_ONCE):
        raise ConfigError(f"option deliveryGuarantee={guarantee!r}: it is {AT_LEAST_ONCE!r} or {EXACTLY_ONCE!r}.")
    return WriteOptions(
        access=access(values, table),
        topic=values.get("topic"),
        in_flight=values.number("maxInFlightBytes") or 1,
        timeout=float(values.number("timeoutSeconds") or 60),
        tracking=values.flag("tracking"),
        fixed=_fixed(values),
        group=values.get("producerGroup") or "mqclient-spark",
        exactly_once=guarantee == EXACTLY_ONCE,
        producer_name=values.get("producerName"),
    )


def _fixed(values: Values) -> dict[str, Any]:
    found: dict[str, Any] = {name: text for name in ("key", "tag") if (text := values.get(name)) is not None}
    for name in ("queue", "partition", "delayLevel"):
        text = values.get(name)
        if text is not None:
            if not text.strip().isdecimal():
                raise ConfigError(f"option {name}={text!r} is not a whole number.")
            found[name] = int(text)
    delay = values.get("delaySeconds")
    if delay is not None:
        found["delaySeconds"] = _seconds(delay)
    properties = values.get("properties")
    if properties is not None:
        found["properties"] = _properties(properties)
    return found


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < 1e9:
        raise ConfigError(f"option delaySeconds={text!r} is not a number of seconds.")
    return seconds


def _properties(text: str) -> dict[str, str]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise ConfigError(f'option properties={text!r} is not a JSON object of texts: {{"name": "value"}}.')
    return value


def canonical(names: Sequence[str], known: Columns, format: str) -> dict[str, str]:
    """Columns by the names that the sink has for them: case does not count, other spellings do.

    >>> canonical(["VALUE", "tags"], ROCKETMQ_COLUMNS, "mq-rocketmq")
    {'value': 'VALUE', 'tag': 'tags'}
    """
    lowered = {name.lower(): name for name in known}
    lowered |= {spelling: name for spelling, name in SPELLINGS.items() if name in known}
    if "partition" in known:
        lowered |= {"queue": "partition"}
    elif "queue" in known:
        lowered |= {"partition": "queue"}
    found: dict[str, str] = {}
    for name in names:
        column = lowered.get(name.lower())
        if column is None:
            near = get_close_matches(name.lower(), lowered, 1)
            hint = f" Did you mean {lowered[near[0]]!r}?" if near else ""
            raise ConfigError(
                f"{format} cannot write a column {name!r}.{hint} It takes: {', '.join(known)}. "
                f'What is not to be sent: .drop("{name}"); what is: into the value, e.g. to_json(struct(*)).'
            )
        if column in found:
            raise ConfigError(f"{format}: the columns {found[column]!r} and {name!r} are the same to it; drop one.")
        found[column] = name
    return found


def check_columns(fields: Sequence[tuple[str, str]], known: Columns, options: WriteOptions, format: str) -> None:
    """Told before anything is sent: what a sink cannot take, and what it misses."""
    types = dict(fields)
    found = canonical([name for name, _ in fields], known, format)
    for column, name in found.items():
        if types[name] not in known[column]:
            raise ConfigError(
                f"{format} writes column {name!r} as {' or '.join(known[column])}, not as {types[name]}: cast it."
            )
    if "value" not in found:
        raise ConfigError(f"{format} needs a column 'value' (string or binary): what the messages hold.")
    if options.topic is None and "topic" not in found:
        raise ConfigError(f"{format} needs .option(\"topic\", …), or a column 'topic'.")
    delays = [name for name in ("delaySeconds", "deliverAt", "delayLevel") if name in found or name in options.fixed]
    if len(delays) > 1 and not any(name in options.fixed for name in delays):
        raise ConfigError(f"{format}: a row is delayed by one column, not by {' and '.join(delays)}.")

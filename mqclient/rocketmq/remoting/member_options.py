"""Owns how a member of a group consumes: the options that every consumer has, and what is checked of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from mqclient.errors import ConfigError
from mqclient.rocketmq.remoting.assign import Rule
from mqclient.rocketmq.remoting.client import check_options
from mqclient.rocketmq.remoting.process_queue import Limits

Start = str | int | float | datetime
FROM: Final = {"first": "CONSUME_FROM_FIRST_OFFSET", "last": "CONSUME_FROM_LAST_OFFSET"}


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """How a member consumes; the defaults are the protocol's."""

    model: str = "clustering"
    start: Start = "last"
    rule: Rule = "averagely"
    rule_options: Mapping[str, Any] = field(default_factory=dict)
    pull_batch: int = 32
    limits: Limits = field(default_factory=Limits)
    consume_type: str = "CONSUME_PASSIVELY"
    retries: bool = True
    """Whether the group's retry topic is consumed, too (never when broadcasting)."""


def member_options(options: Mapping[str, Any]) -> MemberOptions:
    """A face's keyword options; an unknown one names the nearest."""
    check_options(options, MemberOptions.__slots__)
    return MemberOptions(**options)


def topics_of(topics: str | Mapping[str, str] | Iterable[str]) -> dict[str, str]:
    """Topic to expression, from a name, names, or names with expressions."""
    if isinstance(topics, str):
        return {topics: "*"}
    found = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, "*")
    if not found:
        raise ConfigError("a consumer needs a topic")
    return found


def start_ms(start: Start) -> int | None:
    """The time that `start` names, None for "first" and "last"; ConfigError for anything else."""
    if isinstance(start, datetime):
        return int(start.timestamp() * 1000)
    if isinstance(start, (int, float)):
        return int(start)
    if start not in FROM:
        raise ConfigError(f"start={start!r}: 'first', 'last', a datetime or milliseconds since 1970")
    return None

"""Owns the slots that faces ask for by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.patience import partitions_steps
from mqclient.pulsar.pattern import MODES, Pattern, matching_steps

if TYPE_CHECKING:
    from mqclient.pulsar.listening import Report
    from mqclient.pulsar.subscribing import Engine


def partitions(client: ClientEngine, topic: str, deadline: float | None) -> Slot[list[str]]:
    """The names to open: the topic's partitions, or itself if it has none."""
    return run_steps(_partitions_steps(client, TopicName.parse(topic), deadline))


def _partitions_steps(client: ClientEngine, topic: TopicName, deadline: float | None) -> Steps[list[str]]:
    limit = client.deadline() if deadline is None else deadline
    count = yield run_steps(partitions_steps(client, topic, limit))
    return [str(topic.partitioned(number)) for number in range(count)] or [str(topic)]


def topics(client: ClientEngine, pattern: str, deadline: float | None) -> Slot[list[str]]:
    """The names of all persistent topics that match; partitions count as their topic."""
    return run_steps(_topics_steps(client, Pattern(re.compile(pattern)), deadline))


def _topics_steps(client: ClientEngine, pattern: Pattern, deadline: float | None) -> Steps[list[str]]:
    limit = client.deadline() if deadline is None else deadline
    found = yield run_steps(matching_steps(client, pattern, MODES["persistent"], limit))
    return sorted(map(str, found))


class Closes(Protocol):
    """A client, or what one made."""

    def close_steps(self) -> Steps[None]: ...


def close(member: Closes) -> Slot[None]:
    return run_steps(member.close_steps())


def ping(client: ClientEngine) -> Slot[str]:
    return run_steps(client.ping_steps(client.deadline()))


def seek(consumer: Engine, to: Any) -> Slot[None]:
    return run_steps(consumer.seek_steps(to))


def stop(consumer: Engine, grace: float) -> Slot[Report]:
    """End a listener within the grace, then close."""
    return run_steps(_stop_steps(consumer, grace))


def _stop_steps(consumer: Engine, grace: float) -> Steps[Report]:
    assert consumer.listening is not None
    report: Report = yield run_steps(consumer.listening.stop_steps(grace))
    yield run_steps(consumer.close_steps())
    return report


def retry(consumer: Engine, message: Any, delay: float, properties: Mapping[str, str]) -> Slot[None]:
    return run_steps(consumer.retry_steps(message, delay, properties))


def unsubscribe(consumer: Engine, force: bool) -> Slot[None]:
    return run_steps(consumer.unsubscribe_steps(force))

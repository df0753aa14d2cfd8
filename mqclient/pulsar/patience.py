"""Owns asking again: while the error is worth it and there is time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mqclient.core.backoff import Backoff
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import MQError
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.names import TopicName

T = TypeVar("T")


def patiently_steps(client: ClientEngine, make: Callable[[], Steps[T]], deadline: float) -> Steps[T]:
    """Again and again while the error is worth it and there is time."""
    backoff = Backoff(0.1, 2 * client.operation_timeout)
    while True:
        try:
            value: T = yield run_steps(make())
            return value
        except MQError as error:
            delay = backoff.next()
            if not error.retriable or client.driver.now.mono + delay >= deadline:
                raise
        yield client.timers.sleep(delay)


def partitions_steps(client: ClientEngine, topic: TopicName, deadline: float) -> Steps[int]:
    """How many partitions a topic has, 0 for none, asked patiently."""
    return patiently_steps(client, lambda: client.partitions_steps(topic, deadline), deadline)

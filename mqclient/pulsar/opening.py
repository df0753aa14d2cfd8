"""Owns how producers, consumers and readers come to be: options checked, topic looked at, opened."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from mqclient.core.backoff import Backoff
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ClosedError, ConfigError, MQError
from mqclient.pulsar.client import ClientEngine, Member
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.options import ConsumerOptions, ProducerOptions, checked
from mqclient.pulsar.producer import ProducerEngine

T = TypeVar("T")


def open_producer(
    client: ClientEngine, topic: str, options: Mapping[str, Any], deadline: float | None
) -> Slot[ProducerEngine]:
    engine = ProducerEngine(client, TopicName.parse(topic), checked(ProducerOptions, options))
    return run_steps(_open_steps(client, engine, deadline))


def open_consumer(
    client: ClientEngine, topic: str, subscription: str, options: Mapping[str, Any], deadline: float | None
) -> Slot[ConsumerEngine]:
    engine = ConsumerEngine(client, TopicName.parse(topic), subscription, checked(ConsumerOptions, options))
    return run_steps(_open_steps(client, engine, deadline))


def open_reader(
    client: ClientEngine, topic: str, start: Any, options: Mapping[str, Any], deadline: float | None
) -> Slot[ConsumerEngine]:
    """A consumer of a subscription that nothing durable is kept of."""
    given = {"start": start, **options, "durable": False, "type": "exclusive"}
    return open_consumer(client, topic, f"reader-{secrets.token_hex(5)}", given, deadline)


def partitions(client: ClientEngine, topic: str, deadline: float | None) -> Slot[list[str]]:
    """The names to open: the topic's partitions, or itself if it has none."""
    return run_steps(_partitions_steps(client, TopicName.parse(topic), deadline))


def _partitions_steps(client: ClientEngine, topic: TopicName, deadline: float | None) -> Steps[list[str]]:
    limit = client.deadline() if deadline is None else deadline
    count = yield run_steps(patiently_steps(client, lambda: client.partitions_steps(topic, limit), limit))
    return [str(topic.partitioned(number)) for number in range(count)] or [str(topic)]


def close(member: Member | ClientEngine) -> Slot[None]:
    return run_steps(member.close_steps())


def ping(client: ClientEngine) -> Slot[str]:
    return run_steps(client.ping_steps(client.deadline()))


def seek(consumer: ConsumerEngine, to: Any) -> Slot[None]:
    return run_steps(consumer.seek_steps(to))


def unsubscribe(consumer: ConsumerEngine, force: bool) -> Slot[None]:
    return run_steps(consumer.unsubscribe_steps(force))


E = TypeVar("E", ProducerEngine, ConsumerEngine)


def _open_steps(client: ClientEngine, engine: E, deadline: float | None) -> Steps[E]:
    if client.closed:
        raise ClosedError("the client is closed")
    limit = client.deadline() if deadline is None else deadline
    partitions = yield run_steps(patiently_steps(client, lambda: client.partitions_steps(engine.topic, limit), limit))
    if partitions:
        raise ConfigError(
            f"{engine.topic} has {partitions} partitions: name one, such as {engine.topic.partitioned(0)}"
        )
    try:
        yield engine.open(limit)
    except MQError as error:
        engine.abandon(error)
        raise
    return engine


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

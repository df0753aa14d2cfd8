"""Owns how producers come to be: options checked, topic looked at, opened on it or on all of its partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.errors import ClosedError, DeadlineError, MQError
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.names import TopicName
from mqclient.pulsar.options import ProducerOptions, checked
from mqclient.pulsar.partitioned import PartitionedProducer
from mqclient.pulsar.patience import partitions_steps
from mqclient.pulsar.producer import ProducerEngine

Engine: TypeAlias = ProducerEngine | PartitionedProducer
"""What a producer face talks to."""


def open_producer(client: ClientEngine, topic: str, options: Mapping[str, Any], deadline: float | None) -> Slot[Engine]:
    chosen, name = checked(ProducerOptions, options), TopicName.parse(topic)
    limit = client.deadline() if deadline is None else deadline
    return run_steps(_open_steps(client, name, chosen, limit, patient=deadline is None and chosen.access == "wait"))


def _open_steps(
    client: ClientEngine, topic: TopicName, options: ProducerOptions, limit: float, patient: bool
) -> Steps[Engine]:
    """`patient`: there is no limit to standing in line for exclusive access."""
    if client.closed:
        raise ClosedError("the client is closed")
    count = yield run_steps(partitions_steps(client, topic, limit))
    engine: Engine
    if count:
        engine = PartitionedProducer(client, topic, options, count)
        opened = run_steps(engine.open_steps(limit))
    else:
        engine = ProducerEngine(client, topic, options)
        opened = engine.open(limit)
    alarm = None if patient else client.timers.at(limit, lambda _: engine.give_up(_too_late(topic)))
    try:
        yield opened
    except MQError as error:
        failure = engine.failure
        engine.abandon(error)
        raise failure or error from error
    finally:
        if alarm is not None:
            alarm.cancel()
    return engine


def _too_late(topic: TopicName) -> DeadlineError:
    return DeadlineError(f"the producer of {topic} was not open in time: others have it, or the broker is slow")

"""Owns a client's part when the interpreter ends and nobody closed it: what is still sent, and how much is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from mqclient.core.slot import Slot
from mqclient.core.steps import gather
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.multi import MultiConsumer
from mqclient.pulsar.names import without_partition
from mqclient.pulsar.producer import ProducerEngine


def say_all(members: Iterable[object]) -> Slot[Any]:
    """Acknowledgements are told, what gathers is sent; done when every message has its outcome."""
    there = list(members)
    for member in there:
        for consumer in _single(member):
            consumer.acks.flush()
    return gather([member.flush() for member in there if isinstance(member, ProducerEngine)])


def unsettled(members: Iterable[object]) -> dict[str, int]:
    """How many messages have no outcome, by the topics that they were for."""
    found: Counter[str] = Counter()
    for member in members:
        if isinstance(member, ProducerEngine):
            found[f"the producer of {without_partition(member.topic)}"] += member.unsettled
    return {name: count for name, count in found.items() if count}


def _single(member: object) -> Iterable[ConsumerEngine]:
    if isinstance(member, MultiConsumer):
        return member.children.values()
    return [member] if isinstance(member, ConsumerEngine) else []

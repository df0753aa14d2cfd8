"""Owns what the Pulsar broker tells of itself: its topics, their subscriptions, the permits of who is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqclient.broker.overview import GroupRow, TopicRow

if TYPE_CHECKING:
    from mqclient.broker.pulsar.subscription import Subscription
    from mqclient.broker.pulsar.topics import Topics


def rows(topics: Topics) -> Iterator[TopicRow]:
    """All topics, partitions one by one."""
    for topic in sorted(topics.each(), key=lambda topic: topic.text):
        groups = [_group(subscription) for _, subscription in sorted(topic.subscriptions.items())]
        yield TopicRow("pulsar", topic.name.local, topic.messages_in, topic.log.bytes, groups)


def _group(subscription: Subscription) -> GroupRow:
    permits = sum(consumer.permits for consumer in subscription.consumers)
    members = len(subscription.consumers)
    return GroupRow(subscription.name, members, subscription.messages_out, subscription.backlog, permits)

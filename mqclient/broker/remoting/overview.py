"""Owns what a RocketMQ cluster tells of itself: its topics and how far groups have come on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mqclient.broker.overview import GroupRow, TopicRow
from mqclient.broker.remoting.state import SYSTEM_TOPICS, Topic
from mqclient.rocketmq.model import RETRY_PREFIX

if TYPE_CHECKING:
    from mqclient.broker.remoting.door import Service


def rows(services: list[Service]) -> Iterator[TopicRow]:
    """Topics with queues in use, over all brokers; those that a broker makes for itself are left out, and the retry
    topics to which nothing was sent back."""
    names = {name for service in services for name, topic in service.broker.topics.items() if topic.queues}
    for name in sorted(names - SYSTEM_TOPICS.keys()):
        held = [(service, topic) for service in services if (topic := service.broker.topics.get(name)) is not None]
        logs = [queue.log for _, topic in held for queue in topic.queues.values()]
        if name.startswith(RETRY_PREFIX) and not any(log.next for log in logs):
            continue
        yield TopicRow("rocketmq", name, sum(log.next for log in logs), sum(log.bytes for log in logs), _groups(held))


def _groups(held: list[tuple[Service, Topic]]) -> list[GroupRow]:
    names: set[str] = set()
    for service, topic in held:
        names |= {group for group, name, _ in service.offsets.stored if name == topic.name}
        subscribed = service.members.consumers.items()
        names |= {name for name, group in subscribed if group.members and topic.name in group.subscriptions}
    return [_group(name, held) for name in sorted(names)]


def _group(name: str, held: list[tuple[Service, Topic]]) -> GroupRow:
    members, done, behind, waiting = 0, 0, 0, 0
    for service, topic in held:
        group = service.members.consumers.get(name)
        members = max(members, len(group.members) if group is not None else 0)
        for queue_id, queue in topic.queues.items():
            offset = service.offsets.stored.get((name, topic.name, queue_id), 0)
            done += offset
            behind += max(0, queue.log.next - max(offset, queue.log.first))
            waiting += len(queue.waiting)
    return GroupRow(name, members, done, behind, waiting)

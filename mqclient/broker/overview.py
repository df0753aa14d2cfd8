"""Owns the shape of what goes on in a broker: one row a topic, one row a group or subscription of it."""

from __future__ import annotations

from typing import NamedTuple


class GroupRow(NamedTuple):
    """A consumer group or subscription on one topic."""

    name: str
    members: int
    done: int
    """Messages that it has behind it, for a rate."""
    behind: int
    """What it has before it: messages, or entries of Pulsar."""
    permits: int
    """Messages that its members may be sent now; of RocketMQ: pulls that wait for messages."""


class TopicRow(NamedTuple):
    """A topic, of all brokers."""

    protocol: str
    name: str
    messages: int
    """All that ever came."""
    bytes: int
    """Of those that are kept."""
    groups: list[GroupRow]

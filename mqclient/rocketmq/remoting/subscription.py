"""Owns a consumer's subscriptions: expressions, versions, and per broker the version that it acknowledged.

The cure of story 1 is here. A broker refuses a pull whose version is newer than what heartbeats told it (code 25).
So a new version is used towards a broker only after that broker acknowledged heartbeats that carried it; until then
pulls go on with the one before, and pulls that need the new one wait.

Two heartbeats, one after the other. Race: a broker looks which version a group's topic has, then puts the newer one.
Two members' beats at one moment both find the older; the elder of the two may be put last, or, of a new group, the
younger not at all, and both are answered. The second beat finds that and mends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mqclient.errors import ConfigError

EVERYTHING: Final = "*"


class Sql(str):
    """An expression over properties, which brokers evaluate: `Sql("region = 'eu' AND amount > 100")`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Sql({super().__repr__()})"


class Subscription:
    """One topic's filter expression: tags, `a || b`, everything, or SQL92."""

    __slots__ = ("codes", "expression", "sql", "tags", "topic", "version")

    def __init__(self, topic: str, expression: str, version: int, java_hash: Callable[[str], int]) -> None:
        self.topic = topic
        self.sql = isinstance(expression, Sql)
        self.tags = [] if self.sql else parse_tags(expression)
        if self.sql and not expression.strip():
            raise ConfigError("Sql(''): an expression is needed, such as Sql(\"region = 'eu'\")")
        self.expression = str(expression) if self.tags or self.sql else EVERYTHING
        self.codes = [java_hash(tag) for tag in self.tags]
        self.version = version

    @property
    def kind(self) -> str:
        """What brokers call this kind of expression."""
        return "SQL92" if self.sql else "TAG"

    def data(self) -> dict[str, Any]:
        """As it stands in heartbeats."""
        return {
            "classFilterMode": False,
            "codeSet": self.codes,
            "expressionType": self.kind,
            "subString": self.expression,
            "subVersion": self.version,
            "tagsSet": self.tags,
            "topic": self.topic,
        }


def parse_tags(expression: str) -> list[str]:
    """The tags of an expression in their order, none for everything; ConfigError for one without any part."""
    text = expression.strip()
    if text in ("", EVERYTHING):
        return []
    tags = list(dict.fromkeys(tag.strip() for tag in text.split("||") if tag.strip()))
    if not tags:
        raise ConfigError(f"{expression!r} names no tag: write 'a || b', or '*' for everything")
    return tags


class Subscriptions:
    """The subscriptions of one member of a group."""

    def __init__(self, java_hash: Callable[[str], int]) -> None:
        self._java_hash = java_hash
        self._topics: dict[str, Subscription] = {}
        self._told: dict[str, dict[str, int]] = {}
        """By address: what the last heartbeat that it answered carried."""
        self._acknowledged: dict[str, dict[str, int]] = {}
        """What the one before carried: the older of two is what counts."""

    def __contains__(self, topic: object) -> bool:
        return topic in self._topics

    def topics(self) -> list[str]:
        return list(self._topics)

    def get(self, topic: str) -> Subscription | None:
        return self._topics.get(topic)

    def kind(self, topic: str) -> str:
        subscription = self._topics.get(topic)
        return "TAG" if subscription is None else subscription.kind

    def subscribe(self, topic: str, expression: str, wall_ms: int) -> None:
        """Add or replace; a replaced one gets a newer version, as brokers only look at that."""
        old = self._topics.get(topic)
        version = max(wall_ms, old.version + 1 if old else 0)
        self._topics[topic] = Subscription(topic, expression, version, self._java_hash)

    def unsubscribe(self, topic: str) -> None:
        self._topics.pop(topic, None)

    def raise_version(self, topic: str, wall_ms: int) -> int:
        """The result of a rebalance changed: pulls of what is new wait until brokers know. The new version."""
        subscription = self._topics[topic]
        subscription.version = max(wall_ms, subscription.version + 1)
        return subscription.version

    def versions(self) -> dict[str, int]:
        """What a heartbeat sent now carries."""
        return {topic: subscription.version for topic, subscription in self._topics.items()}

    def data(self) -> list[dict[str, Any]]:
        return [subscription.data() for subscription in self._topics.values()]

    # ---- what brokers know

    def acknowledged(self, address: str, versions: Mapping[str, int]) -> None:
        """This broker answered a heartbeat that carried these versions: pulls may use those that it heard twice."""
        before, self._told[address] = self._told.get(address, {}), dict(versions)
        self._acknowledged[address] = {topic: before[topic] for topic in versions if topic in before}

    def forget(self, address: str) -> None:
        """The connection was lost: whatever this broker acknowledged has to be acknowledged again."""
        self._told.pop(address, None)
        self._acknowledged.pop(address, None)

    def usable(self, address: str, topic: str) -> int:
        """The version for pulls of this topic towards this broker; -1: none yet."""
        return self._acknowledged.get(address, {}).get(topic, -1)

"""Owns which tenants and namespaces there are, and what was decided for the broker, a namespace or a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mqclient.pulsar.names import TopicName


class Rule(NamedTuple):
    """A policy: the broker setting that stands above all namespaces, and what holds if nobody said anything."""

    setting: str
    default: Any


RULES: Final[Mapping[str, Rule]] = {
    "deduplicationEnabled": Rule("brokerDeduplicationEnabled", False),
    "schemaCompatibilityStrategy": Rule("schemaCompatibilityStrategy", "FULL"),
    "schemaValidationEnforced": Rule("isSchemaValidationEnforced", False),
    "isAllowAutoUpdateSchema": Rule("isAllowAutoUpdateSchemaEnabled", True),
    "encryptionRequired": Rule("encryptionRequireOnProducer", False),
    "autoTopicCreation": Rule("", None),
    "autoSubscriptionCreation": Rule("", None),
    "maxConsumers": Rule("maxConsumersPerTopic", 0),
    "maxProducers": Rule("maxProducersPerTopic", 0),
    "maxUnackedMessagesOnConsumer": Rule("maxUnackedMessagesPerConsumer", 50_000),
    "maxUnackedMessagesOnSubscription": Rule("maxUnackedMessagesPerSubscription", 200_000),
}
"""Every policy by its name; a limit of 0 is none."""


def whole(topic: TopicName) -> TopicName:
    """The topic of which this is a partition; itself if it is none.

    >>> str(whole(TopicName.parse("orders-partition-3")))
    'persistent://public/default/orders'
    """
    return topic._replace(local=topic.local.rpartition("-partition-")[0]) if topic.partition >= 0 else topic


class AutoCreation(NamedTuple):
    """What becomes of a topic that is asked for and not there."""

    allowed: bool
    partitions: int
    """0: a topic without partitions."""


class Policies:
    """Tenants, namespaces and their policies; a topic's come before its namespace's, those before the broker's.

    >>> policies = Policies({"brokerDeduplicationEnabled": True})
    >>> name = TopicName.parse("orders")
    >>> policies.decide(policies.of_namespace["public/default"], "deduplicationEnabled", False)
    >>> policies.value("deduplicationEnabled", name)
    False
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self.changes = 0
        """How often something was decided: what is kept of an answer is good while this stays."""
        self.tenants: dict[str, dict[str, Any]] = {
            name: {"adminRoles": [], "allowedClusters": ["standalone"]} for name in ("public", "pulsar")
        }
        self.of_namespace: dict[str, dict[str, Any]] = {"public/default": {}, "pulsar/system": {}}
        self.of_topic: dict[str, dict[str, Any]] = {}
        """By the name without its partition."""

    def decide(self, policies: dict[str, Any], policy: str, value: Any) -> None:
        """For a namespace or a topic; None: what is above decides again."""
        self.changes += 1
        if value is None:
            policies.pop(policy, None)
        else:
            policies[policy] = value

    def known(self, topic: TopicName) -> bool:
        """Whether its namespace is there."""
        return f"{topic.tenant}/{topic.namespace}" in self.of_namespace

    def value(self, policy: str, topic: TopicName) -> Any:
        for decided in (
            self.of_topic.get(str(whole(topic)), {}),
            self.of_namespace.get(f"{topic.tenant}/{topic.namespace}", {}),
        ):
            if decided.get(policy, "UNDEFINED") != "UNDEFINED":
                return decided[policy]
        rule = RULES[policy]
        return self.setting(rule.setting, rule.default)

    def setting(self, name: str, default: Any) -> Any:
        """A broker setting; text, as in a configuration file, is read as what the default is."""
        given = self._settings.get(name, default)
        if isinstance(given, str) and isinstance(default, bool):
            return given.lower() == "true"
        return int(given) if isinstance(given, str) and isinstance(default, int) else given

    def auto_creation(self, topic: TopicName) -> AutoCreation:
        decided = self.value("autoTopicCreation", topic) or {}
        allowed = decided.get("allowAutoTopicCreation", self.setting("allowAutoTopicCreation", True))
        kind = decided.get("topicType", self.setting("allowAutoTopicCreationType", "non-partitioned"))
        count = decided.get("defaultNumPartitions", self.setting("defaultNumPartitions", 1))
        return AutoCreation(bool(allowed), int(count) if kind == "partitioned" else 0)

    def auto_subscription(self, topic: TopicName) -> bool:
        """Whether a subscription that is asked for is made."""
        decided = self.value("autoSubscriptionCreation", topic) or {}
        default = self.setting("allowAutoSubscriptionCreation", True)
        return bool(decided.get("allowAutoSubscriptionCreation", default))

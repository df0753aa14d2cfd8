"""What was decided where, and which word counts."""

from __future__ import annotations

import pytest

from mqclient.broker.pulsar.policies import AutoCreation, Policies, whole
from mqclient.pulsar.names import TopicName

NAME = TopicName.parse("orders-partition-2")


def test_the_nearest_word_counts() -> None:
    policies = Policies({"maxConsumersPerTopic": "7"})
    assert policies.value("maxConsumers", NAME) == 7
    policies.of_namespace["public/default"]["maxConsumers"] = 5
    assert policies.value("maxConsumers", NAME) == 5
    policies.of_topic["persistent://public/default/orders"] = {"maxConsumers": 3}
    assert policies.value("maxConsumers", NAME) == 3
    assert str(whole(whole(NAME))) == "persistent://public/default/orders"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("False", False), (True, True)])
def test_settings_as_text(text: object, value: bool) -> None:
    assert Policies({"brokerDeduplicationEnabled": text}).value("deduplicationEnabled", NAME) is value


def test_auto_creation() -> None:
    policies = Policies({"allowAutoTopicCreationType": "partitioned", "defaultNumPartitions": 4})
    assert policies.auto_creation(NAME) == AutoCreation(True, 4)
    policies.of_namespace["public/default"]["autoTopicCreation"] = {"topicType": "non-partitioned"}
    assert policies.auto_creation(NAME) == AutoCreation(True, 0)
    assert policies.auto_subscription(NAME)
    assert not Policies({"allowAutoSubscriptionCreation": "false"}).auto_subscription(NAME)
    assert (policies.known(NAME), policies.known(TopicName.parse("a/b/c"))) == (True, False)

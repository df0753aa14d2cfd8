"""What the Pulsar broker tells of itself."""

from __future__ import annotations

from typing import Any

from mqclient import pulsar
from mqclient.broker import EmbeddedBroker
from mqclient.broker.overview import GroupRow


def test_topics_subscriptions_and_permits(codec: Any) -> None:
    with (
        EmbeddedBroker(doors=["pulsar"], impl=codec) as broker,
        pulsar.Client(broker.pulsar_url) as client,
        client.consumer("events", "s", receiver_queue=50) as consumer,
        client.producer("events") as producer,
    ):
        producer.send(b"x")
        consumer.receive(10)
        (topic,) = broker.overview()
        assert topic[:3] == ("pulsar", "events", 1)
        assert topic.bytes > 0
        assert topic.groups == [GroupRow("s", 1, 1, 1, 49)]

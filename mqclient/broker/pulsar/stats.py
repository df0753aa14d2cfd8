"""Owns what is told about topics: counts and who is on them, in the words of the administration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mqclient.pulsar.codes import SubType

if TYPE_CHECKING:
    from mqclient.broker.pulsar.consumer import Consumer
    from mqclient.broker.pulsar.producers import Producer
    from mqclient.broker.pulsar.subscription import Subscription
    from mqclient.broker.pulsar.topics import Topic, Topics


def topic_stats(topics: Topics, topic: Topic) -> dict[str, Any]:
    """Of one topic. Rates are not measured here, and not told."""
    enabled = topics.policies.value("deduplicationEnabled", topic.name)
    return {
        "msgInCounter": topic.messages_in,
        "bytesInCounter": topic.bytes_in,
        "storageSize": topic.log.bytes,
        "deduplicationStatus": "Enabled" if enabled else "Disabled",
        "publishers": [_publisher(producer) for producer in topic.producers.values()],
        "subscriptions": {name: _subscription(known) for name, known in topic.subscriptions.items()},
    }


def partitioned_stats(topics: Topics, parts: Sequence[Topic], number: int) -> dict[str, Any]:
    """Of a partitioned topic: the sums, and each partition."""
    each = {topic.text: topic_stats(topics, topic) for topic in parts}
    names = sorted({name for told in each.values() for name in told["subscriptions"]})
    return {
        **{key: sum(told[key] for told in each.values()) for key in ("msgInCounter", "bytesInCounter", "storageSize")},
        "publishers": [one for told in each.values() for one in told["publishers"]],
        "subscriptions": {
            name: _together([told["subscriptions"][name] for told in each.values() if name in told["subscriptions"]])
            for name in names
        },
        "metadata": {"partitions": number},
        "partitions": each,
    }


def _together(each: Sequence[dict[str, Any]]) -> dict[str, Any]:
    sums = ("msgBacklog", "unackedMessages", "msgOutCounter")
    told = {key: sum(one[key] for one in each) for key in sums}
    return {**told, "type": each[0]["type"], "consumers": [seen for one in each for seen in one["consumers"]]}


def _publisher(producer: Producer) -> dict[str, Any]:
    ids = [number for number, known in producer.session.producers.items() if known is producer]
    return {
        "producerName": producer.name,
        "producerId": ids[0] if ids else -1,
        "address": f"/{producer.session.peer}",
        "clientVersion": producer.session.client_version,
    }


def _subscription(subscription: Subscription) -> dict[str, Any]:
    return {
        "msgBacklog": subscription.backlog,
        "msgOutCounter": subscription.messages_out,
        "unackedMessages": sum(consumer.unacked for consumer in subscription.consumers),
        "blockedSubscriptionOnUnackedMsgs": subscription.blocked,
        "type": SubType(subscription.kind).name,
        "isDurable": subscription.durable,
        "activeConsumerName": subscription.active.name if subscription.active else "",
        "consumers": [_consumer(consumer) for consumer in subscription.consumers],
    }


def _consumer(consumer: Consumer) -> dict[str, Any]:
    selector = consumer.subscription.selector
    keys = {} if selector is None else {"keyHashRangeArrays": selector.ranges(consumer)}
    return {
        **keys,
        "consumerName": consumer.name,
        "availablePermits": max(0, consumer.permits),
        "unackedMessages": consumer.unacked,
        "blockedConsumerOnUnackedMsgs": consumer.blocked,
        "msgOutCounter": consumer.delivered,
        "address": f"/{consumer.session.peer}",
        "clientVersion": consumer.session.client_version,
    }

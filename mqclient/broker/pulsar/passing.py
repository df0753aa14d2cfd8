"""Owns what is not stored: a message on a non-persistent topic goes to who can take it now, and to nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.pulsar.codes import SubType

if TYPE_CHECKING:
    from mqclient.broker.pulsar.consumer import Consumer
    from mqclient.broker.pulsar.subscription import Subscription
    from mqclient.broker.pulsar.topics import Topic


def pass_on(topic: Topic, entry: Any) -> None:
    """To each subscription's consumer whose turn it is; who has no permits misses it."""
    topic.messages_in += entry.num_messages
    topic.bytes_in += len(entry.stored)
    for subscription in topic.subscriptions.values():
        consumer = _chosen(subscription, entry)
        if consumer is not None and consumer.ready:
            consumer.permits -= entry.num_messages
            consumer.delivered += entry.num_messages
            subscription.messages_out += entry.num_messages
            encode = consumer.session.impl.pulsar.encode_message
            consumer.session.write(encode(consumer.consumer_id, 0, 0, entry.stored, partition=topic.partition))


def _chosen(subscription: Subscription, entry: Any) -> Consumer | None:
    if not subscription.shared:
        return subscription.active
    if subscription.kind == SubType.Key_Shared:
        selector = subscription.selector
        impl = subscription.consumers[0].session.impl if subscription.consumers else None
        return None if selector is None else selector.owner(subscription.slot_of(entry, impl))
    return subscription.next_ready()

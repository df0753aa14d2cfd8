"""Owns how topics end: moved away (unload), closed for good (terminate), deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqclient.broker.pulsar.subscribe import send_close

if TYPE_CHECKING:
    from mqclient.broker.pulsar.producers import Producer
    from mqclient.broker.pulsar.subscription import Subscription
    from mqclient.broker.pulsar.topics import Topic, Topics

NO_REQUEST_ID = 2**64 - 1


def unload(topic: Topic) -> None:
    """As when the topic moves: everybody is told to come again."""
    close_producers(topic)
    for subscription in list(topic.subscriptions.values()):
        close_consumers(subscription)


def terminate(topic: Topic) -> None:
    """Nothing is taken any more; consumers are told when they have everything."""
    topic.terminated = True
    topic.changed()
    close_producers(topic)
    for subscription in topic.subscriptions.values():
        subscription.poke()


def delete(topics: Topics, topic: Topic) -> None:
    """With all that it held, whoever is on it."""
    unload(topic)
    topic.subscriptions.clear()
    topics.forget(topic)


def close_producers(topic: Topic) -> None:
    for producer in list(topic.producers.values()):
        close_producer(producer)


def close_producer(producer: Producer) -> None:
    """The broker's own CLOSE_PRODUCER: the client comes again."""
    session = producer.session
    for number in producer.forget():
        session.closed_producers[number] = session.house.clock.mono()
        session.send(15, "CommandCloseProducer", producer_id=number, request_id=NO_REQUEST_ID)


def close_consumers(subscription: Subscription) -> None:
    """The broker's own CLOSE_CONSUMER to all of a subscription, which stays."""
    for consumer in list(subscription.consumers):
        consumer.session.consumers.pop(consumer.consumer_id, None)
        send_close(consumer)
        subscription.remove(consumer, resets=True)

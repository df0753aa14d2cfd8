"""Owns sending clients to the cluster to which a topic went: the word for it, and the CLOSE that follows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mqclient.broker.pulsar.consumer import Consumer
    from mqclient.broker.pulsar.producers import Producer
    from mqclient.broker.pulsar.session import Session
    from mqclient.broker.pulsar.topics import Topic

PRODUCER, CONSUMER = 0, 1
"""What a TOPIC_MIGRATED is about."""
NO_REQUEST_ID = 2**64 - 1


def send_away(session: Session, kind: int, number: int, topic: Topic) -> None:
    """TOPIC_MIGRATED and CLOSE, also in place of the answer to PRODUCER or SUBSCRIBE."""
    assert topic.migrated is not None
    url, url_tls = topic.migrated
    urls = {"brokerServiceUrl": url or None, "brokerServiceUrlTls": url_tls or None}
    session.send(68, "CommandTopicMigrated", resource_id=number, resource_type=kind, **urls)
    if kind == PRODUCER:
        session.closed_producers[number] = session.house.clock.mono()
        session.send(15, "CommandCloseProducer", producer_id=number, request_id=NO_REQUEST_ID)
    else:
        session.send(16, "CommandCloseConsumer", consumer_id=number, request_id=NO_REQUEST_ID)


def migrate(topic: Topic, url: str, url_tls: str) -> None:
    """As in a blue-green migration: producers go at once, a subscription's consumers when they have acknowledged all.
    Whoever comes later goes, too."""
    topic.migrated = url, url_tls
    for producer in list(topic.producers.values()):
        send_producer(producer, topic)
    for subscription in list(topic.subscriptions.values()):
        subscription.poke()


def send_producer(producer: Producer, topic: Topic) -> None:
    for number in producer.forget():
        send_away(producer.session, PRODUCER, number, topic)


def send_consumer(consumer: Consumer) -> None:
    """Its subscription stays."""
    subscription = consumer.subscription
    consumer.session.consumers.pop(consumer.consumer_id, None)
    send_away(consumer.session, CONSUMER, consumer.consumer_id, subscription.topic)
    subscription.remove(consumer, resets=True)

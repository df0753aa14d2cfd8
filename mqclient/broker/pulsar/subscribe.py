"""Consumers: how they come, are paid and go.

| command | answer |
|---|---|
| SUBSCRIBE | SUCCESS; same id again: success without a new grant, ServiceNotReady in progress; ERROR as upstream |
| FLOW | nothing; 0 is refused; while blocked on unacknowledged messages set aside; unknown consumer: ignored |
| CLOSE_CONSUMER | SUCCESS, also for one that is not there or still being made |
| UNSUBSCRIBE | SUCCESS, subscription deleted; MetadataError if others are on it and `force` is not set |
| CONSUMER_STATS | CONSUMER_STATS_RESPONSE; ConsumerNotFound |

Where the topic is in another cluster, and nothing is left here, TOPIC_MIGRATED and CLOSE_CONSUMER stand for the answer.
A connection that goes while its SUBSCRIBE is in progress leaves no consumer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar import permissions
from mqclient.broker.pulsar.compatibility import AUTO_CONSUME
from mqclient.broker.pulsar.consumer import Consumer, stats
from mqclient.broker.pulsar.migration import CONSUMER, send_away
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.schema import Schema
from mqclient.broker.pulsar.selectors import Sticky
from mqclient.broker.pulsar.subscription import Subscription
from mqclient.broker.pulsar.topics import Topic
from mqclient.pulsar.codes import InitialPosition, ServerError, SubType

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session

log = logging.getLogger("mqclient.broker")

EARLIEST = 2**64 - 1
LATEST = 2**63 - 1
NO_SCHEMA = 0
STICKY = 1
RESERVED = ("pulsar.repl", "pulsar.dedup")
"""What the names of a real broker's own subscriptions begin with."""


class Place:
    """What a consumer id stands for on a connection: a consumer, or one that is being made."""

    __slots__ = ("consumer",)

    def __init__(self) -> None:
        self.consumer: Consumer | None = None

    def leave(self) -> None:
        if self.consumer is not None:
            self.consumer.subscription.remove(self.consumer)
            self.consumer = None


def on_subscribe(session: Session, request: Any) -> None:
    known = session.consumers.get(request.consumer_id)
    if known is not None and known.consumer is None:
        raise Refused(ServerError.ServiceNotReady, "Consumer is already present on the connection")
    if known is not None:
        session.success(request.request_id)
        return
    place = session.consumers[request.consumer_id] = Place()
    if session.pending_delay:
        session.house.clock.after(session.pending_delay, lambda: _go_on(session, request, place))
    else:
        _go_on(session, request, place)


def _go_on(session: Session, request: Any, place: Place) -> None:
    """The next step of a subscribe in progress; whoever left meanwhile is not subscribed."""
    if session.closed or session.consumers.get(request.consumer_id) is not place:
        return
    try:
        busy = _subscribe(session, request, place)
    except Refused as refused:
        del session.consumers[request.consumer_id]
        session.error(request.request_id, refused.code, str(refused))
        return
    if place.consumer is not None:
        session.success(request.request_id)
    elif busy is not None:
        busy.session.alive(_retry(session, request, place))


def _retry(session: Session, request: Any, place: Place) -> Callable[[bool], None]:
    """An exclusive place is taken: if its holder is alive the newcomer is refused, else it has it."""

    def answer(alive: bool) -> None:
        if not alive:
            _go_on(session, request, place)
        elif not session.closed and session.consumers.get(request.consumer_id) is place:
            del session.consumers[request.consumer_id]
            session.error(request.request_id, ServerError.ConsumerBusy, "Exclusive consumer is already connected")

    return answer


def _subscribe(session: Session, request: Any, place: Place) -> Consumer | None:
    """None: done, or sent away. Else the consumer whose place it wants."""
    topic = _check(session, request)
    if request.HasField("schema") and request.schema.type not in (NO_SCHEMA, AUTO_CONSUME):
        session.topics.schemas.check_consumer(topic, Schema.of(request.schema))
    subscription = topic.subscriptions.get(request.subscription)
    if topic.migrated is not None and (subscription is None or not subscription.backlog):
        del session.consumers[request.consumer_id]
        send_away(session, CONSUMER, request.consumer_id, topic)
        return None
    if subscription is not None and subscription.consumers:
        _compare(subscription, request)
        if subscription.kind == SubType.Exclusive:
            other = subscription.consumers[0]
            if other.session is session:
                raise Refused(ServerError.ConsumerBusy, "Exclusive consumer is already connected")
            return other
    if subscription is not None and subscription.durable != request.durable:
        raise Refused(ServerError.NotAllowedError, f"Subscription {request.subscription} is durable or is not")
    if subscription is None:
        subscription = _make(session, topic, request)
    most = session.topics.policies.value("maxConsumers", topic.name)
    if most and sum(len(other.consumers) for other in topic.subscriptions.values()) >= most:
        raise Refused(ServerError.ConsumerBusy, "Topic reached max consumers limit")
    subscription.kind = request.subType
    subscription.limit = session.topics.policies.value("maxUnackedMessagesOnSubscription", topic.name)
    limit = session.topics.policies.value("maxUnackedMessagesOnConsumer", topic.name)
    consumer = Consumer(
        session, subscription, request.consumer_id, request.consumer_name, request.priority_level, limit
    )
    consumer.read_compacted = request.read_compacted
    if request.HasField("consumer_epoch"):
        consumer.epoch = request.consumer_epoch
    if request.subType == SubType.Key_Shared:
        _take_keys(subscription, consumer, request.keySharedMeta)
    place.consumer = consumer
    subscription.add(consumer)
    return None


def _compare(subscription: Subscription, request: Any) -> None:
    """A newcomer wants what is there."""
    text = "Subscription is of different type. Active subscription type of '{}' is different than the connecting "
    text += "consumer's type '{}'."
    names = [SubType(subscription.kind).name, SubType(request.subType).name]
    alike = subscription.kind == request.subType
    if alike and request.subType == SubType.Key_Shared:
        there = isinstance(subscription.selector, Sticky), subscription.out_of_order
        wanted = request.keySharedMeta.keySharedMode == STICKY, request.keySharedMeta.allowOutOfOrderDelivery
        alike = there == wanted
    if not alike:
        raise Refused(ServerError.ConsumerBusy, text.format(*names))


def _take_keys(subscription: Subscription, consumer: Consumer, meta: Any) -> None:
    """Sticky ranges are checked before anything is changed."""
    if meta.keySharedMode == STICKY:
        selector = subscription.selector if isinstance(subscription.selector, Sticky) else Sticky()
        consumer.hash_ranges = [(known.start, known.end) for known in meta.hashRanges]
        selector.check(consumer.hash_ranges)
        subscription.selector = selector
    subscription.out_of_order = meta.allowOutOfOrderDelivery


def _make(session: Session, topic: Topic, request: Any) -> Subscription:
    if request.durable and not session.topics.policies.auto_subscription(topic.name):
        text = f"Subscription {request.subscription} does not exist on {topic.text}, and none is made by subscribing"
        raise Refused(ServerError.SubscriptionNotFound, text)
    back = request.start_message_rollback_duration_sec
    mark = _first_mark(topic, request)
    if back > 0:
        mark = topic.log.at_or_after(session.house.clock.wall_ms() - min(back, 2**40) * 1000) - 1
    return topic.subscribe(request.subscription, request.subType, durable=request.durable, mark=mark)


def _check(session: Session, request: Any) -> Topic:
    name = session.topics.check(request.topic)
    permissions.check(session, name, permissions.CONSUME, "subscribe")
    if request.read_compacted and not name.persistent:
        raise Refused(ServerError.NotAllowedError, "readCompacted only allowed on persistent topics")
    if not request.subscription:
        raise Refused(ServerError.ProducerBusy, "Empty subscription name")
    if request.subscription.startswith(RESERVED):
        raise Refused(ServerError.ProducerBusy, "Subscription with reserved subscription name attempted")
    if request.read_compacted and request.subType in (SubType.Shared, SubType.Key_Shared):
        raise Refused(ServerError.NotAllowedError, "readCompacted only allowed on failover or exclusive subscriptions")
    return session.topics.admit(request.topic, create=request.force_topic_creation)


def _first_mark(topic: Topic, request: Any) -> int:
    """A durable subscription has no start id; of another the entry named is delivered again, the client skips."""
    if not request.durable and request.HasField("start_message_id"):
        start = request.start_message_id
        if start.ledgerId == EARLIEST:
            return -1
        if start.ledgerId >= LATEST:
            return topic.end - 1
        return max(-1, topic.entry_of(start.ledgerId, start.entryId) - 1)
    return -1 if request.initialPosition == InitialPosition.Earliest else topic.end - 1


def on_flow(session: Session, event: Any) -> None:
    _, consumer_id, permits = event
    place = session.consumers.get(consumer_id)
    if permits <= 0:
        session.close(f"FLOW of {permits} permits for consumer {consumer_id}")
    elif place is not None and place.consumer is not None:
        place.consumer.flow(permits)


def on_close(session: Session, request: Any) -> None:
    place = session.consumers.pop(request.consumer_id, None)
    if place is not None:
        place.leave()
    session.success(request.request_id)


def on_unsubscribe(session: Session, request: Any) -> None:
    consumer = find(session, request.consumer_id)
    if consumer is None:
        raise Refused(ServerError.MetadataError, "Consumer not found")
    subscription = consumer.subscription
    if not request.force and len(subscription.consumers) > 1:
        raise Refused(ServerError.MetadataError, "Unconnected or shared consumer attempting to unsubscribe")
    del session.consumers[request.consumer_id]
    for other in list(subscription.consumers):
        subscription.remove(other)
        if other is not consumer:
            other.session.consumers.pop(other.consumer_id, None)
            send_close(other)
    subscription.topic.subscriptions.pop(subscription.name, None)
    session.success(request.request_id)


def on_stats(session: Session, request: Any) -> None:
    consumer = find(session, request.consumer_id)
    if consumer is None:
        fields: dict[str, Any] = {"error_code": ServerError.ConsumerNotFound, "error_message": "Consumer not found"}
    else:
        fields = stats(consumer)
    session.send(26, "CommandConsumerStatsResponse", request_id=request.request_id, **fields)


def find(session: Session, consumer_id: int) -> Consumer | None:
    place = session.consumers.get(consumer_id)
    return None if place is None else place.consumer


def send_close(consumer: Consumer) -> None:
    """The broker's own CLOSE_CONSUMER: the client comes again."""
    consumer.session.send(16, "CommandCloseConsumer", consumer_id=consumer.consumer_id, request_id=2**64 - 1)


HANDLERS = {4: on_subscribe, 11: on_flow, 12: on_unsubscribe, 16: on_close, 25: on_stats}

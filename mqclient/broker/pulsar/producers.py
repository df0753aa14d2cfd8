"""Producers: how they come and go.

| command | answer |
|---|---|
| PRODUCER | PRODUCER_SUCCESS, also for the same id again; ServiceNotReady in progress; ProducerBusy, ProducerFenced |
| CLOSE_PRODUCER | SUCCESS; who waited to be alone is told before |

Where the topic is in another cluster, TOPIC_MIGRATED and CLOSE_PRODUCER stand for the answer.

A name belongs to who has it as long as it is alive. Who waits to be alone is told success twice, first not ready.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar import permissions
from mqclient.broker.pulsar.migration import PRODUCER, send_away
from mqclient.broker.pulsar.refused import Refused
from mqclient.pulsar.codes import ProducerAccessMode, ServerError, SubType

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session
    from mqclient.broker.pulsar.topics import Topic


class Producer:
    """A producer, or its place while it is being made or waits to be alone (`topic` is None)."""

    __slots__ = (
        "epoch",
        "mode",
        "must_encrypt",
        "name",
        "request_id",
        "schema_version",
        "session",
        "topic",
        "topic_epoch",
        "waits_for",
    )

    def __init__(self, session: Session, request: Any) -> None:
        self.session = session
        self.epoch: int = request.epoch
        self.request_id: int = request.request_id
        self.mode: int = request.producer_access_mode
        self.topic_epoch: int | None = request.topic_epoch if request.HasField("topic_epoch") else None
        self.name = ""
        self.must_encrypt = False
        self.schema_version = b""
        self.topic: Topic | None = None
        self.waits_for: Topic | None = None

    def leave(self) -> None:
        topic = self.topic or self.waits_for
        self.topic = self.waits_for = None
        following = topic.access.leave(self) if topic is not None else None
        if following is not None:
            following.topic, following.waits_for = topic, None
            _welcome(following)

    def forget(self) -> list[int]:
        """Its connection knows it no longer, nor does its topic; the ids that it had there."""
        known = self.session.producers
        numbers = [number for number, producer in known.items() if producer is self]
        for number in numbers:
            del known[number]
        self.leave()
        return numbers


def on_producer(session: Session, request: Any) -> None:
    known = session.producers.get(request.producer_id)
    if known is not None and known.topic is None:
        raise Refused(ServerError.ServiceNotReady, "Producer is already present on the connection")
    if known is not None:
        known.request_id = request.request_id
        _welcome(known, again=True)
        return
    place = session.producers[request.producer_id] = Producer(session, request)
    if session.pending_delay:
        session.house.clock.after(session.pending_delay, lambda: _go_on(session, request, place))
    else:
        _go_on(session, request, place)


def _go_on(session: Session, request: Any, place: Producer) -> None:
    """The next step of an opening in progress; whoever left meanwhile is not opened."""
    if session.closed or session.producers.get(request.producer_id) is not place:
        return
    try:
        namesake = _open(session, request, place)
    except Refused as refused:
        del session.producers[request.producer_id]
        session.error(request.request_id, refused.code, str(refused))
        return
    if namesake is not None:
        namesake.session.alive(_retry(session, request, place))


def _retry(session: Session, request: Any, place: Producer) -> Callable[[bool], None]:
    """A name is taken: if its holder is alive the newcomer is refused, else it has it."""

    def answer(alive: bool) -> None:
        if not alive:
            _go_on(session, request, place)
        elif not session.closed and session.producers.get(request.producer_id) is place:
            del session.producers[request.producer_id]
            session.error(request.request_id, ServerError.ProducerBusy, _taken(request))

    return answer


def _taken(request: Any) -> str:
    return f"Producer with name '{request.producer_name}' is already connected to topic '{request.topic}'"


def _open(session: Session, request: Any, place: Producer) -> Producer | None:
    """None: done, or it waits. Else the producer who has its name."""
    topic = _check(session, request)
    if topic.migrated is not None:
        del session.producers[request.producer_id]
        send_away(session, PRODUCER, request.producer_id, topic)
        return None
    access = topic.access
    place.must_encrypt = _must_encrypt(session, topic)
    place.schema_version = session.topics.schemas.check_producer(topic, request)
    place.name = request.producer_name or session.topics.producer_name()
    if place.mode == ProducerAccessMode.ExclusiveWithFencing:
        access.check_epoch(place)
        _fence(topic)
    other = access.producers.get(place.name)
    if other is not None and other.session is session:
        raise Refused(ServerError.ProducerBusy, _taken(request))
    if other is not None:
        return other
    if access.enter(place):
        place.topic = topic
    else:
        place.waits_for = topic
    if request.initial_subscription_name and request.initial_subscription_name not in topic.subscriptions:
        topic.subscribe(request.initial_subscription_name, SubType.Exclusive)
    _welcome(place)
    return None


def _fence(topic: Topic) -> None:
    """Everybody out: who waits is refused, who is in finds out by the end of its connection when it sends."""
    access = topic.access
    waiting = list(access.waiting)
    access.waiting.clear()
    for producer in waiting:
        producer.forget()
        producer.session.error(producer.request_id, ServerError.ProducerFenced, "Fenced out")
    for producer in list(access.producers.values()):
        producer.forget()


def _check(session: Session, request: Any) -> Topic:
    name = session.topics.check(request.topic)
    permissions.check(session, name, permissions.PRODUCE, "Produce")
    topic = session.topics.admit(request.topic)
    if topic.terminated:
        raise Refused(ServerError.TopicTerminatedError, "Topic was already terminated")
    policies = session.topics.policies
    if _must_encrypt(session, topic) and not request.encrypted:
        raise Refused(ServerError.MetadataError, f"Encryption is required in {topic.text}")
    most = policies.value("maxProducers", topic.name)
    if most and len(topic.producers) >= most:
        raise Refused(ServerError.ProducerBusy, "Topic reached max producers limit")
    wanted = request.initial_subscription_name
    if wanted and wanted not in topic.subscriptions and not policies.auto_subscription(topic.name):
        text = "Could not create the initial subscription due to the auto subscription creation is not allowed."
        raise Refused(ServerError.NotAllowedError, text)
    return topic


def _must_encrypt(session: Session, topic: Topic) -> bool:
    return bool(session.topics.policies.value("encryptionRequired", topic.name))


def _welcome(producer: Producer, *, again: bool = False) -> None:
    """PRODUCER_SUCCESS; for one that waits a first one, not ready."""
    session, topic = producer.session, producer.topic
    last = -1
    if topic is not None and not again and topic.dedup.enabled(session.topics.policies, topic.name):
        last = topic.dedup.last(producer.name)
    session.send(
        17,
        "CommandProducerSuccess",
        request_id=producer.request_id,
        producer_name=producer.name,
        last_sequence_id=last,
        schema_version=producer.schema_version,
        topic_epoch=topic.access.epoch if topic is not None and not again else None,
        producer_ready=topic is not None,
    )


def on_close(session: Session, request: Any) -> None:
    producer = session.producers.pop(request.producer_id, None)
    if producer is not None:
        producer.leave()
        session.closed_producers[request.producer_id] = session.house.clock.mono()
    session.success(request.request_id)


HANDLERS = {5: on_producer, 15: on_close}

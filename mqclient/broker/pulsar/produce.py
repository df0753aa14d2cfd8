"""Producers and what they send.

| command | answer |
|---|---|
| PRODUCER | PRODUCER_SUCCESS, also for the same id again; ServiceNotReady while in progress; name taken: ProducerBusy |
| SEND | SEND_RECEIPT in order; SEND_ERROR ChecksumError; unknown producer: the connection ends, unless just closed |
| CLOSE_PRODUCER | SUCCESS |

Access mode shared only; no schemas, no deduplication: see SKIPPED.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.topics import Refused, Topic
from mqclient.pulsar.codes import ProducerAccessMode, ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session

REMEMBERED = 30.0
"""Seconds in which a SEND for a closed producer is late and not wrong."""


class Producer:
    """A producer, or its place while it is being made (`topic` is None)."""

    __slots__ = ("epoch", "name", "session", "topic")

    def __init__(self, session: Session, epoch: int) -> None:
        self.session = session
        self.epoch = epoch
        self.name = ""
        self.topic: Topic | None = None

    def leave(self) -> None:
        if self.topic is not None and self.topic.producers.get(self.name) is self:
            del self.topic.producers[self.name]


def on_producer(session: Session, request: Any) -> None:
    known = session.producers.get(request.producer_id)
    if known is not None and known.topic is None:
        raise Refused(ServerError.ServiceNotReady, "Producer is already present on the connection")
    if known is not None:
        _welcome(session, request, known, -1)
        return
    place = session.producers[request.producer_id] = Producer(session, request.epoch)
    if session.pending_delay:
        session.house.clock.after(session.pending_delay, lambda: _open_late(session, request, place))
    else:
        _open(session, request, place)


def _open_late(session: Session, request: Any, place: Producer) -> None:
    """It may have been closed meanwhile, or its connection."""
    if session.closed or session.producers.get(request.producer_id) is not place:
        return
    try:
        _open(session, request, place)
    except Refused as refused:
        session.error(request.request_id, refused.code, str(refused))


def _open(session: Session, request: Any, place: Producer) -> None:
    try:
        topic = _check(session, request)
        name = request.producer_name or session.topics.producer_name()
        other = topic.producers.get(name)
        if other is not None and other.session is not session and other.session.closed:
            other.leave()
        elif other is not None:
            raise Refused(
                ServerError.ProducerBusy, f"Producer with name '{name}' is already connected to topic {topic.text}"
            )
    except Refused:
        del session.producers[request.producer_id]
        raise
    place.name, place.topic = name, topic
    topic.producers[name] = place
    _welcome(session, request, place, -1)


def _check(session: Session, request: Any) -> Topic:
    session.topics.check(request.topic)
    unsupported = [
        ("access modes other than Shared", request.producer_access_mode != ProducerAccessMode.Shared),
        ("schemas", request.HasField("schema")),
        ("transactions", request.txn_enabled),
    ]
    for what, asked in unsupported:
        if asked:
            raise Refused(ServerError.NotAllowedError, f"{what} are not supported by mqclient's embedded broker")
    topic = session.topics.admit(request.topic)
    if topic.terminated:
        raise Refused(ServerError.TopicTerminatedError, "Topic was already terminated")
    most = session.topics.policies.value("maxProducers", topic.name)
    if most and len(topic.producers) >= most:
        raise Refused(ServerError.ProducerBusy, "Topic reached max producers limit")
    return topic


def _welcome(session: Session, request: Any, producer: Producer, last_sequence_id: int) -> None:
    session.send(
        17,
        "CommandProducerSuccess",
        request_id=request.request_id,
        producer_name=producer.name,
        last_sequence_id=last_sequence_id,
        schema_version=b"",
        producer_ready=True,
    )


def on_send(session: Session, event: Any) -> None:
    _, producer_id, sequence_id, _, highest, _, _, txn, entry = event
    producer = session.producers.get(producer_id)
    if producer is None or producer.topic is None:
        closed = session.closed_producers.get(producer_id)
        if closed is None or session.house.clock.mono() - closed > REMEMBERED:
            session.close(f"SEND for unknown producer {producer_id}")
        return
    refusal = None
    if entry.corrupt is not None:
        refusal = ServerError.ChecksumError, "Checksum failed on the broker"
    elif txn is not None:
        refusal = ServerError.NotAllowedError, "transactions are not supported by mqclient's embedded broker"
    if refusal is not None:
        session.send(
            8,
            "CommandSendError",
            producer_id=producer_id,
            sequence_id=max(sequence_id, highest),
            error=refusal[0],
            message=refusal[1],
        )
        return
    number = producer.topic.append(entry)
    codec = session.impl.pulsar
    session.write(codec.encode_receipt(producer_id, sequence_id, producer.topic.ledger, number, highest))


def on_close(session: Session, request: Any) -> None:
    producer = session.producers.pop(request.producer_id, None)
    if producer is not None:
        producer.leave()
        session.closed_producers[request.producer_id] = session.house.clock.mono()
    session.success(request.request_id)


HANDLERS = {5: on_producer, 6: on_send, 15: on_close}

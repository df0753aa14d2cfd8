"""Acknowledging, and asking back.

| command | answer |
|---|---|
| ACK | nothing; ACK_RESPONSE if it has a request id; unknown consumer: ignored, or ConsumerNotFound |
| REDELIVER_UNACKNOWLEDGED_MESSAGES | nothing |

Individual acknowledgements of a part of a batch come with the bits of what is left of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.cursor import bits_of
from mqclient.broker.pulsar.subscribe import find
from mqclient.broker.pulsar.subscription import Subscription
from mqclient.pulsar.codes import AckType, ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session


def on_ack(session: Session, event: Any) -> None:
    _, consumer_id, kind, ids, _, txn, request_id = event
    consumer = find(session, consumer_id)
    error: tuple[ServerError, str] | None = None
    if consumer is None:
        error = ServerError.ConsumerNotFound, "Consumer not found"
    elif txn is not None:
        error = ServerError.NotAllowedError, "transactions are not supported by mqclient's embedded broker"
    elif kind == AckType.Cumulative and consumer.subscription.shared:
        error = ServerError.NotAllowedError, "cumulative acknowledgement on a shared subscription"
    else:
        for message_id in ids:
            _ack(consumer.subscription, message_id, kind == AckType.Cumulative)
    if request_id is not None:
        fields: dict[str, Any] = {} if error is None else {"error": error[0], "message": error[1]}
        session.send(38, "CommandAckResponse", consumer_id=consumer_id, request_id=request_id, **fields)


def _ack(subscription: Subscription, message_id: Any, cumulative: bool) -> None:
    ledger, entry, _, _, words, _ = message_id
    topic = subscription.topic
    if ledger != topic.ledger or not 0 <= entry < topic.end:
        return
    remaining = bits_of(words) if words else None
    if cumulative:
        subscription.ack_up_to(entry, remaining)
    else:
        subscription.ack(entry, remaining)


def on_redeliver(session: Session, request: Any) -> None:
    consumer = find(session, request.consumer_id)
    if consumer is None:
        return
    topic = consumer.subscription.topic
    entries = [at.entryId for at in request.message_ids if at.ledgerId == topic.ledger] or None
    epoch = request.consumer_epoch if request.HasField("consumer_epoch") else None
    if entries is not None or not request.message_ids:
        consumer.subscription.redeliver(consumer, entries, epoch)


HANDLERS = {10: on_ack, 20: on_redeliver}

"""Acknowledging, and asking back.

| command | answer |
|---|---|
| ACK | nothing; ACK_RESPONSE if it has a request id; unknown consumer: ignored, or ConsumerNotFound; of a transaction:
  TransactionNotFound, TransactionConflict |
| REDELIVER_UNACKNOWLEDGED_MESSAGES | nothing |

Individual acknowledgements of a part of a batch come with the bits of what is left of it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.cursor import bits_of
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.subscribe import find
from mqclient.broker.pulsar.subscription import Subscription
from mqclient.pulsar.codes import AckType, ServerError

log = logging.getLogger("mqclient.broker")

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session
    from mqclient.broker.pulsar.txn_buffer import Txn


def on_ack(session: Session, event: Any) -> None:
    _, consumer_id, kind, ids, _, txn, request_id = event
    consumer = find(session, consumer_id)
    error: tuple[ServerError, str] | None = None
    if consumer is None:
        error = ServerError.ConsumerNotFound, "Consumer not found"
    elif kind == AckType.Cumulative and consumer.subscription.shared:
        # As upstream: ignored, said to the operator and not to the client.
        log.warning("%s: cumulative acknowledgement on a shared subscription, ignored", session.peer)
    elif txn is not None:
        error = _ack_for(session, consumer.subscription, txn, ids, kind == AckType.Cumulative)
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


def _ack_for(
    session: Session, subscription: Subscription, txn: Txn, ids: Any, cumulative: bool
) -> tuple[ServerError, str] | None:
    """For a transaction: done when it commits. Why not, if it cannot be."""
    topic, cursor, pending = subscription.topic, subscription.cursor, subscription.pending_acks
    try:
        transaction = session.topics.transactions.get(txn)
        if (topic.text, subscription.name) not in transaction.subscriptions:
            text = f"{subscription.name} of {topic.text} was not added to the transaction {txn}"
            return ServerError.InvalidTxnStatus, text
        for ledger, entry, _, _, words, _ in ids:
            if ledger != topic.ledger or not 0 <= entry < topic.end:
                continue
            if cumulative:
                pending.add_up_to(txn, entry, bits_of(words) if words else None, cursor.mark)
                continue
            unacked = cursor.remaining(entry, topic.messages(entry))
            pending.add(txn, entry, unacked & ~bits_of(words) if words else unacked, unacked)
    except Refused as refused:
        return refused.code, str(refused)
    return None


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

"""What producers send.

| command | answer |
|---|---|
| SEND | SEND_RECEIPT in order, -1:-1 for what is there already; SEND_ERROR ChecksumError; unknown producer: see below |

A SEND for a producer that is not there ends the connection, unless it was closed just now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.dedup import is_duplicate
from mqclient.broker.pulsar.passing import pass_on
from mqclient.broker.pulsar.refused import Refused
from mqclient.pulsar.codes import ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.producers import Producer
    from mqclient.broker.pulsar.session import Session
    from mqclient.broker.pulsar.topics import Topic
    from mqclient.broker.pulsar.txn_buffer import Txn

MOST_IN_A_BATCH = 5_242_880 // 6
"""A message of a batch takes six bytes at least; a number that cannot be would cost memory at each delivery."""
REMEMBERED = 30.0
"""Seconds in which a SEND for a closed producer is late and not wrong."""


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
    elif not 0 < entry.num_messages <= MOST_IN_A_BATCH:
        refusal = ServerError.NotAllowedError, f"a batch of {entry.num_messages} messages fits into no frame"
    elif producer.must_encrypt and not entry.encrypted:
        refusal = ServerError.MetadataError, "Messages must be encrypted"
    elif txn is not None:
        refusal = _refuse(session, producer.topic, txn)
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
    topic = producer.topic
    ledger, number = _store(session, producer, topic, max(sequence_id, highest), entry)
    if txn is not None and ledger > 0:
        topic.txns.add(txn, number)
    session.write(session.impl.pulsar.encode_receipt(producer_id, sequence_id, ledger, number, highest))


def _refuse(session: Session, topic: Topic, txn: Txn) -> tuple[ServerError, str] | None:
    """Why nothing may be sent for a transaction here: a dead or strange one would never be seen."""
    try:
        transaction = session.topics.transactions.get(txn)
    except Refused as refused:
        return ServerError.NotAllowedError, str(refused)
    if topic.text not in transaction.topics or not topic.name.persistent:
        return ServerError.NotAllowedError, f"{topic.text} was not added to the transaction {txn}"
    return None


def _store(session: Session, producer: Producer, topic: Topic, sequence_id: int, entry: Any) -> tuple[int, int]:
    """The id it got; -1:-1 if it is there already."""
    if topic.dedup.enabled(session.topics.policies, topic.name) and is_duplicate(
        topic.dedup, producer.name, sequence_id, entry
    ):
        return -1, -1
    if not topic.name.persistent:
        pass_on(topic, entry)
        return 0, 0
    return topic.ledger, topic.append(entry)


HANDLERS = {6: on_send}

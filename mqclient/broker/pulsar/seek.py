"""Positions: where a subscription goes on, and where its topic ends.

| command | answer |
|---|---|
| SEEK | CLOSE_CONSUMER to all consumers of the subscription, the cursor is set, SUCCESS; MetadataError |
| GET_LAST_MESSAGE_ID | the last entry, with its last batch index; -1:-1 if there is none |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.broker.pulsar.cursor import bits_of
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.subscribe import EARLIEST, LATEST, find, send_close
from mqclient.broker.pulsar.subscription import Subscription
from mqclient.pulsar.codes import ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.session import Session


def on_seek(session: Session, request: Any) -> None:
    consumer = find(session, request.consumer_id)
    by_time = request.HasField("message_publish_time")
    if consumer is None or not (by_time or request.HasField("message_id")):
        raise Refused(ServerError.MetadataError, "Consumer not found, or no position given")
    subscription = consumer.subscription
    topic = subscription.topic
    first = topic.log.at_or_after(request.message_publish_time) if by_time else _entry(subscription, request.message_id)
    for other in list(subscription.consumers):
        other.session.consumers.pop(other.consumer_id, None)
        send_close(other)
        subscription.remove(other, resets=True)
    subscription.reset(first - 1)
    words = list(request.message_id.ack_set) if not by_time else []
    if words and first < topic.end:
        subscription.ack(first, bits_of(words))
    session.success(request.request_id)


def _entry(subscription: Subscription, at: Any) -> int:
    """The entry to go on with."""
    topic = subscription.topic
    if at.ledgerId == EARLIEST:
        return 0
    if at.ledgerId >= LATEST:
        return topic.end
    return max(0, topic.entry_of(at.ledgerId, at.entryId))


def on_last(session: Session, request: Any) -> None:
    consumer = find(session, request.consumer_id)
    if consumer is None:
        raise Refused(ServerError.MetadataError, "Consumer not found")
    topic, mark = consumer.subscription.topic, consumer.subscription.cursor.mark
    last: dict[str, Any] = {"ledgerId": EARLIEST, "entryId": EARLIEST, "partition": topic.partition, "batch_index": -1}
    entry = topic.last_seen
    if consumer.read_compacted and topic.compacted is not None:
        entry = topic.compacted.last_seen(entry)
    if entry >= 0:
        index = topic.messages(entry) - 1 if topic.batched(entry) else -1
        last = {"ledgerId": topic.ledger, "entryId": entry, "partition": topic.partition, "batch_index": index}
    session.send(
        30,
        "CommandGetLastMessageIdResponse",
        request_id=request.request_id,
        last_message_id=last,
        consumer_mark_delete_position={"ledgerId": topic.ledger, "entryId": mark % 2**64},
    )


HANDLERS = {28: on_seek, 29: on_last}

"""Owns acknowledgements in transactions: told at once, with the broker's word, and undone if it is aborted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.errors import ConfigError, LinkError, MQError
from mqclient.pulsar import requests
from mqclient.pulsar.transactions import Transaction

if TYPE_CHECKING:
    from mqclient.pulsar.consumer import ConsumerEngine


def ack_in_steps(
    consumer: ConsumerEngine, transaction: Transaction, messages: Sequence[Any], cumulative: bool
) -> Steps[None]:
    """Of one topic. An error of it makes the transaction impossible to commit."""
    transaction.check(consumer.client)
    if cumulative and not consumer.options.in_order:
        raise ConfigError(f"a {consumer.options.type} subscription is acknowledged message by message")
    if not consumer.options.durable:
        raise ConfigError("a reader acknowledges nothing: in transactions take part consumers with a subscription")
    transaction.began()
    failure: MQError | None = None
    try:
        topic, subscription = str(consumer.topic), consumer.subscription
        yield transaction.enlist(topic, subscription)
        yield _told(consumer, transaction, messages, cumulative)
    except MQError as error:
        failure = error
        raise
    finally:
        transaction.ended(failure)


def _told(consumer: ConsumerEngine, transaction: Transaction, messages: Sequence[Any], cumulative: bool) -> Slot[Any]:
    connection = consumer.connection
    if connection is None:
        raise LinkError(f"not connected to the broker of {consumer.topic}: the acknowledgement was not sent")
    if consumer.options.in_order:
        # What was acknowledged then comes again, in order: before what waits here.
        transaction.on_abort(consumer.redeliver)
    if consumer.unacked is not None:
        for message in messages:
            (consumer.unacked.done_until if cumulative else consumer.unacked.done)(message)
    ids = [_up_to(messages[-1])] if cumulative else _places(messages)
    if not cumulative:
        ids += consumer.chunks.others([(at[0], at[1]) for at in ids])
    encode, consumer_id = consumer.client.impl.pulsar.encode_ack, consumer.consumer_id
    return connection.request_by(
        lambda number: encode(consumer_id, ids, cumulative=cumulative, txn=transaction.id, request_id=number),
        "CommandAck",
        consumer.client.deadline(),
    )


def _places(messages: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Entries; of those that are acknowledged in part, the bits of what is left."""
    whole: dict[tuple[int, int], None] = {}
    parts: dict[tuple[int, int], tuple[set[int], int]] = {}
    for message in messages:
        at = message if isinstance(message.entry, int) else message.message_id
        place = (at.ledger, at.entry)
        if at.batch_index < 0:
            whole[place] = None
        else:
            taken, _ = parts.setdefault(place, (set(), at.batch_size))
            taken.add(at.batch_index)
    found: list[tuple[Any, ...]] = list(whole)
    for place, (taken, size) in parts.items():
        if place not in whole:
            left = sum(1 << index for index in range(size) if index not in taken)
            found.append((*place, requests.words(left) or None, size))
    return found


def _up_to(message: Any) -> tuple[Any, ...]:
    at = message if isinstance(message.entry, int) else message.message_id
    if at.batch_index < 0 or at.batch_index + 1 >= at.batch_size:
        return at.ledger, at.entry
    return at.ledger, at.entry, requests.remaining(at.batch_index + 1, at.batch_size), at.batch_size


def ack_in(engine: Any, transaction: Transaction, messages: Sequence[Any], cumulative: bool) -> Slot[Any]:
    """Of a consumer of one topic or of many."""
    return run_steps(_divided_steps(engine, transaction, messages, cumulative))


def _divided_steps(engine: Any, transaction: Transaction, messages: Sequence[Any], cumulative: bool) -> Steps[None]:
    ways = engine.by_child(messages)
    told = yield gather([run_steps(ack_in_steps(child, transaction, own, cumulative)) for child, own in ways])
    for slot in told:
        slot.result()

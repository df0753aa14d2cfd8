"""Owns what a reader can be asked: whether there is more, and where the topic ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, run_steps
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.multi import MultiConsumer, all_done_steps
from mqclient.pulsar.subscribing import Engine

if TYPE_CHECKING:
    from mqclient._native.pulsar import MessageId


def has_message_available(consumer: Engine) -> Slot[bool]:
    if isinstance(consumer, MultiConsumer):
        return run_steps(_any_available_steps(consumer))
    return run_steps(has_message_available_steps(consumer))


def last_message_id(consumer: Engine) -> Slot[MessageId | None]:
    return run_steps(consumer.last_message_id_steps())


def last_message_ids(consumer: Engine) -> Slot[dict[str, MessageId | None]]:
    return run_steps(consumer.last_message_ids_steps())


def stats(consumer: Engine) -> Slot[dict[str, Any]]:
    return run_steps(consumer.stats_steps())


def has_message_available_steps(consumer: ConsumerEngine) -> Steps[bool]:
    """Whether `receive` would get something that is in the topic now."""
    if len(consumer.mailbox):
        return True
    last = yield run_steps(consumer.last_message_id_steps())
    if last is None:
        return False
    taken, start = consumer.intake.last_taken, consumer.intake.start
    if taken is not None:
        return _position(last) > _position(taken)
    resume = start.at or start.resume
    if resume.entry < 0:
        return True
    there, here = _position(last), _position(resume)
    return bool(there > here or (start.inclusive and there == here))


def _any_available_steps(consumer: MultiConsumer) -> Steps[bool]:
    children = list(consumer.children.values())
    answers = yield run_steps(all_done_steps([run_steps(has_message_available_steps(child)) for child in children]))
    return any(answers)


def _position(message_id: Any) -> tuple[int, int, float]:
    """Ordered; an id without batch index means the whole entry, hence its last message."""
    index = message_id.batch_index
    return message_id.ledger, message_id.entry, float("inf") if index < 0 else index

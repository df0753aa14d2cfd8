"""Owns moving the position of one consumer: the request, the close that follows it, and what is from before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mqclient.core.steps import Steps
from mqclient.errors import ConfigError, MQError
from mqclient.pulsar import requests

if TYPE_CHECKING:
    from mqclient.pulsar.consumer import ConsumerEngine


class Seeking:
    """One seek at a time. What arrives while it is under way is from before, and skipped."""

    __slots__ = ("_consumer", "_epoch", "_left", "skipped")

    def __init__(self, consumer: ConsumerEngine) -> None:
        self._consumer = consumer
        self._epoch = -1
        self._left: Any = None
        """The source that the last seek left: what was taken of it says nothing about where to go on."""
        self.skipped: list[tuple[int, int]] = []
        """Entries that came meanwhile."""

    def leaves(self, epoch: int) -> bool:
        """Whether what came in this epoch is being left."""
        return self._epoch == epoch

    def has_left(self, source: Any) -> bool:
        return source is self._left

    def steps(self, to: Any) -> Steps[None]:
        """To a message id (its message is the next, or the one after it unless `start_inclusive`), or to a time in ms.

        The broker closes the consumer, so it is done when both has happened, in whichever order: the broker said
        yes, and the subscription is open again.
        """
        consumer, intake = self._consumer, self._consumer.intake
        deadline = consumer.client.deadline()
        connection = yield from consumer.opened_steps(deadline)
        if self._epoch >= 0:
            raise ConfigError("a seek is under way already")
        to = self._own_position(to)
        consumer.acks.flush()
        consumer.acks.clear()
        before, epoch = intake.start.save(), consumer.attachment.epoch
        self._epoch, self._left, self.skipped = epoch, intake.source, []
        intake.start.move(to, consumer.options.start_inclusive)
        make = requests.seek_to_time if isinstance(to, int) else requests.seek_to_id
        try:
            yield connection.request(make(consumer.consumer_id, to), deadline)
        except MQError:
            intake.start.restore(before)
            self._left = None
            if consumer.connection is connection:  # else all that is not acknowledged comes again by itself
                for ledger, entry in self.skipped:
                    consumer.redelivery.nack(ledger, entry, 0.0)
            raise
        finally:
            self._epoch = -1
        if consumer.attachment.epoch == epoch and consumer.connection is connection:
            intake.drop_waiting()  # a broker that did not close us: what is here is from before
            intake.renew(epoch)
        else:
            yield consumer.attachment.when_attached()

    def _own_position(self, to: Any) -> Any:
        """Where to seek, of positions by topic."""
        if isinstance(to, str):
            return named(self._consumer.client.impl.pulsar, to)
        if not isinstance(to, Mapping):
            return to
        own = str(self._consumer.topic)
        if list(to) != [own]:
            raise ConfigError(f"this consumer's one topic is {own}, not {', '.join(to)}")
        return self._own_position(to[own])


def named(codec: Any, to: str) -> Any:
    """The id that stands for an end of every topic."""
    return codec.EARLIEST if to == "earliest" else codec.LATEST

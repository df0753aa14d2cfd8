"""Owns acknowledgements until they are told: grouped for a moment, cumulative ones first, parts of batches by bits."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mqclient.core.driver import Now
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps
from mqclient.core.timers import Timer
from mqclient.errors import LinkError

if TYPE_CHECKING:
    from mqclient.pulsar.connection import Connection
    from mqclient.pulsar.consumer import ConsumerEngine
    from mqclient.pulsar.consumer_options import ConsumerOptions
    from mqclient.pulsar.unacked import Unacked

log = logging.getLogger("mqclient.pulsar")

AGAIN = 0.1
"""Seconds before an acknowledgement without a receipt is told again."""


class Acks:
    """The native set gathers without entering (`add` is called by the face); this tells the broker.

    Without a connection they stay here: what was acknowledged meanwhile is told when the subscription is open again.
    """

    __slots__ = (
        "_asked",
        "_cleared",
        "_codec",
        "_consumer",
        "_grouping",
        "_size",
        "_timer",
        "add",
        "add_cumulative",
        "add_many",
        "covers",
        "set",
    )

    def __init__(self, consumer: ConsumerEngine, impl: Any, options: ConsumerOptions) -> None:
        self._consumer = consumer
        self._codec = impl.pulsar
        self._grouping = options.ack_grouping
        self._size = options.ack_group_size
        self._timer: Timer | None = None
        self._asked: set[Slot[Any]] = set()
        """Receipts that are waited for."""
        self._cleared = 0
        """How often what was acknowledged lost its meaning."""
        self.set = impl.permits.AckSet(self._size if self._grouping else 1, batch_index=options.batch_index_ack)
        self.add = self.set.add
        self.add_many = self.set.add_many
        self.add_cumulative = self.set.add_cumulative
        self.covers = self.set.covers
        if options.ack_timeout:
            self.add, self.add_many, self.add_cumulative = self._add, self._add_many, self._add_cumulative

    # ---- with an ack timeout: also strike it off the list of what was taken

    def _add(self, message: Any) -> int:
        signal: int = self.set.add(message)
        self._unacked.done(message)
        return signal

    def _add_many(self, messages: Iterable[Any]) -> int:
        return max(map(self._add, messages), default=0)

    def _add_cumulative(self, message: Any) -> int:
        self._unacked.done_until(message)
        signal: int = self.set.add_cumulative(message)
        return signal

    @property
    def _unacked(self) -> Unacked:
        unacked = self._consumer.unacked
        assert unacked is not None
        return unacked

    # ---- telling

    def due(self, signal: int) -> None:
        """The set asks: arm the timer, or tell now."""
        if signal == 1 and self._grouping:
            if self._timer is None:
                self._timer = self._consumer.client.timers.after(self._grouping, self._on_timer)
        elif signal:
            self.flush()

    def flush(self) -> None:
        """Tell what waits."""
        connection = self._consumer.connection
        if connection is None:
            return
        consumer_id = self._consumer.consumer_id
        position = self.set.take_cumulative()
        if position is not None:
            self._consumer.chunks.end_until((position[0], position[1] if len(position) == 2 else position[1] - 1))
            connection.write(self._codec.encode_ack(consumer_id, [position], cumulative=True))
        group = self._taken()
        for start in range(0, len(group), self._size):
            connection.write(self._codec.encode_ack(consumer_id, group[start : start + self._size]))

    def confirm_steps(self, messages: Sequence[Any]) -> Steps[None]:
        """Tell at once, and have the broker's receipt; what was grouped goes along.

        Race: the topic moves, or the connection breaks, before the receipt is there. Whether the broker had read it
        then, nobody knows: it is told where the subscription opens next, and then asked for again; twice does no
        harm. Not if a seek came between: what is before the new place may have to come again.
        """
        consumer, cleared = self._consumer, self._cleared
        deadline = consumer.client.deadline()
        consumer.check_told()
        self.add_many(messages)
        ids = self._taken()
        if not ids:  # acknowledged before, or a part of a batch that is told when all of it is
            return
        while True:
            if consumer.connection is None:
                self._keep(ids, cleared)
            connection = yield from consumer.opened_steps(deadline)
            self._check_place(cleared)
            try:
                yield self._ask(connection, ids, deadline)
                return
            except LinkError as error:
                log.debug("%s: %s; it is acknowledged again", consumer.topic, error)
            self._keep(ids, cleared)
            yield consumer.client.timers.sleep(AGAIN)

    def _check_place(self, cleared: int) -> None:
        if self._cleared != cleared:
            raise LinkError("the place was moved before the broker had the acknowledgement: it does not count")

    def _keep(self, ids: list[Any], cleared: int) -> None:
        """So that they are told at the next opening before the broker is asked for more: these do not come again."""
        self._check_place(cleared)
        for place in ids:
            if len(place) == 2:
                self.set.add_id(*place)

    def _ask(self, connection: Connection, ids: list[Any], deadline: float) -> Slot[Any]:
        consumer_id, encode = self._consumer.consumer_id, self._codec.encode_ack
        asked = connection.request_by(
            lambda request_id: encode(consumer_id, ids, request_id=request_id), "CommandAck", deadline
        )
        self._asked.add(asked)
        asked.then(self._asked.discard)
        return asked

    def closed_by_broker(self) -> None:
        """It gives no more receipts."""
        for slot in tuple(self._asked):
            slot.fail(LinkError("the subscription is not open any more"))

    def _taken(self) -> list[Any]:
        """What is to be told: of a message that came in parts all of them."""
        ids: list[Any] = self.set.take()
        letters = self._consumer.letters
        if letters is not None:
            letters.forget((place[0], place[1]) for place in ids if len(place) == 2)
        return ids + self._consumer.chunks.others(ids)

    def refuse(self, entry: Any, why: int) -> None:
        """An entry that cannot be read: acknowledged with the reason, so that it does not come again."""
        connection = self._consumer.connection
        if connection is not None:
            ids = [(entry.ledger, entry.entry)]
            ids += self._consumer.chunks.others(ids)
            connection.write(self._codec.encode_ack(self._consumer.consumer_id, ids, validation_error=why))

    def clear(self) -> None:
        """Before a seek: what was acknowledged is not remembered, it may come again."""
        self._cleared += 1
        self.set.clear()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.drop()

    def drop(self) -> None:
        """What waits is told to nobody; whoever comes next begins a group, and so comes in here."""
        self.set.take_cumulative()
        self.set.take()

    def _on_timer(self, now: Now) -> None:
        self._timer = None
        self.flush()


def listed(given: Any) -> Sequence[Any]:
    """One message or id, or many, as many.

    >>> listed("1:0:-1")
    Traceback (most recent call last):
    TypeError: a message, its id, or a list of these is needed here, not '1:0:-1'
    """
    many: Sequence[Any] = given if isinstance(given, list | tuple) else [given]
    if not all(hasattr(one, "entry") for one in many):
        wrong = [_shown(one) for one in many if not hasattr(one, "entry")]
        raise TypeError(f"a message, its id, or a list of these is needed here, not {', '.join(wrong)}")
    return many


def single(given: Any) -> Any:
    """One message or id."""
    if not hasattr(given, "entry"):
        raise TypeError(f"one message or its id is needed here, not {_shown(given)}")
    return given


def _shown(given: Any) -> str:
    return repr(given) if isinstance(given, str) else type(given).__name__

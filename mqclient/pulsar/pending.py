"""Owns the entries that have no receipt yet, in the order of sending: receipts, the send timeout, what is sent anew."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import copy

from mqclient.core.driver import Now
from mqclient.core.timers import Timer, Timers
from mqclient.errors import DeadlineError, MQError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.flight import Flight
from mqclient.pulsar.train import Train

Shipped = Batch | Train | Flight


class Pending:
    """Receipts come in the order of sending, as the broker promises; `match` says what one means."""

    __slots__ = ("_expiry", "_timeout", "_timers", "_topic", "queue")

    def __init__(self, timers: Timers, topic: str, timeout: float) -> None:
        self._timers = timers
        self._topic = topic
        self._timeout = timeout
        self.queue: deque[Shipped] = deque()
        self._expiry: Timer | None = None

    def __len__(self) -> int:
        return len(self.queue)

    def __iter__(self) -> Iterator[Shipped]:
        return iter(self.queue)

    @property
    def messages(self) -> int:
        return sum(batch.count for batch in self.queue)

    @property
    def head(self) -> Shipped:
        return self.queue[0]

    @property
    def last(self) -> Shipped:
        return self.queue[-1]

    def append(self, batch: Shipped) -> None:
        if not self.queue:
            self._watch(batch.deadline)
        self.queue.append(batch)

    def pop(self) -> Shipped:
        return self.queue.popleft()

    def part(self) -> list[Batch]:
        """Trains and flights become batches: something unusual happens to them. All there are."""
        batches: list[Batch] = []
        for shipped in self.queue:
            if isinstance(shipped, Batch):
                batches.append(shipped)
            else:
                batches += shipped.parts()
        self.queue = deque(batches)
        return batches

    def find(self, sequence_id: int) -> Batch | None:
        """The one that a receipt for this id is about."""
        for batch in self.part():
            if batch.sequence_id <= sequence_id <= (batch.sequence_id if batch.scattered else batch.last_sequence_id):
                return batch
        return None

    def fail_all(self, error: MQError, *, written: bool = False) -> None:
        """`written`: perhaps, so the broker may have them; what comes later with the same error it has not."""
        if written and not error.outcome_unknown:
            cause, error = error.__cause__, copy(error).about(outcome_unknown=True)
            error.__cause__ = cause
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        queue, self.queue = self.queue, deque()
        for batch in queue:
            batch.fail(error)

    def _watch(self, when: float) -> None:
        # An earlier alarm than needed looks again; a later one does not exist, for deadlines only grow.
        if self._expiry is None and self._timeout:
            self._expiry = self._timers.at(when, self._on_expiry)

    def _on_expiry(self, now: Now) -> None:
        self._expiry = None
        while self.queue and self.queue[0].deadline <= now.mono:
            batch = self.queue.popleft()
            if isinstance(batch, Flight):  # of which only the first ones may be late
                self.queue.extendleft(reversed(batch.parts()))
                continue
            text = f"no receipt from {self._topic} in {self._timeout} s"
            batch.fail(DeadlineError(text).about(request="CommandSend"))
        if self.queue:
            self._watch(self.queue[0].deadline)

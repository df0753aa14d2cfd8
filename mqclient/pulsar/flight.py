"""Owns messages on their way of which each is an entry of its own, was written at once, and has somebody who waits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from mqclient.core.link import Link
from mqclient.core.slot import Slot
from mqclient.errors import MQError
from mqclient.pulsar.batch import Batch
from mqclient.pulsar.client import ClientEngine

_ALONE = 8
"""After so many messages whose senders were alone, the next one may take the lane."""
_COMPANY, _QUICK = 64, 0.001
"""Or after so many of several threads, if they took no more than that each in the mean."""

if TYPE_CHECKING:
    from mqclient._native.pulsar import MessageId
    from mqclient.pulsar.gathering import Gathering
    from mqclient.pulsar.holding import Held
    from mqclient.pulsar.pending import Pending
    from mqclient.pulsar.producer import ProducerEngine


class Flight:
    """Such messages in a row, as the pending one that stands for all of them. Where one `Batch` each would cost more
    than all else about them, the native `entries` keep frames and slots; what is unusual falls apart into batches.

    It goes on when all have landed: somebody who sends, waits, and sends again uses the same one all the time.
    """

    __slots__ = ("_client", "_partition", "add", "entries", "link")

    chunks, landed, scattered = 1, 0, False

    def __init__(self, client: ClientEngine, partition: int, entries: Any, link: Link) -> None:
        self._client = client
        self._partition = partition
        self.entries = entries
        self.add: Callable[..., bytes | None] = entries.add
        self.link = link

    # ---- as one of those without receipt

    @property
    def sequence_id(self) -> int:
        """Of the next one that has no receipt."""
        number: int = self.entries.sequence_id
        return number

    @property
    def last_sequence_id(self) -> int:
        number: int = self.entries.last_sequence_id
        return number

    @property
    def count(self) -> int:
        """Messages without receipt."""
        count: int = self.entries.count
        return count

    @property
    def deadline(self) -> float:
        """Of the next one."""
        when: float = self.entries.deadline
        return when

    @property
    def done(self) -> bool:
        return not self.entries.count

    def take_receipts(self, events: Sequence[Any], at: int) -> int:
        """How many of the events from `at` on were receipts of the next ones."""
        taken: int = self.entries.take_receipts(events, at)
        if taken:
            self._client.budget.give(self.entries.landed_bytes, taken)
        return taken

    def parts(self) -> list[Batch]:
        """Those without receipt as entries that know nothing of each other. Nobody joins any more."""
        found = []
        for frame, size, sequence_id, deadline, slot in self.entries.part():
            batch = Batch(self._client, self._partition, sequence_id, deadline)
            batch.count = 1
            batch.batched = False
            batch.held = (size, 1)
            batch.frame = frame
            batch.tell(slot, 0)
            found.append(batch)
        return found

    def fail(self, error: MQError) -> None:
        for batch in self.parts():
            batch.fail(error)


class Flights:
    """One producer's: the flight that messages may join, as long as nothing unusual happens and nothing else goes out.

    Half of what a `Batch` each would cost a thread that sends, waits and sends again: 21 µs for 40 of its own code.
    """

    __slots__ = ("_alone", "_began", "_client", "_flight", "_gathering", "_held", "_joined", "_lane", "_owner",
                 "_passage", "_pending", "_timeout", "express")  # fmt: skip

    def __init__(self, owner: ProducerEngine, gathering: Gathering, pending: Pending, held: Held) -> None:
        self._owner = owner
        self._client = owner.client
        self._gathering = gathering
        self._pending = pending
        self._held = held
        self._timeout = owner.options.send_timeout
        self._flight: Flight | None = None
        self._alone = 0
        """Messages that found nobody else's on its way, in a row."""
        self._joined = 0
        """Messages, and when the first of them went; counted anew after `_COMPANY`."""
        self._began = 0.0
        self._lane: Any = owner.client.impl.pulsar.Lane(owner.client.budget, Slot, self._give_up)
        self._passage = getattr(owner.client.driver, "passage", None)
        self.express: Callable[[Any], Slot[MessageId] | None] = self._lane.send
        """Outside of any entry: send it and wait, if its sender is alone and nothing else is to be done; None: send
        it."""

    @property
    def published(self) -> int:
        """The highest sequence id of which the lane saw the receipt."""
        number: int = self._lane.published
        return number

    def send(self, message: Any) -> Slot[MessageId] | None:
        """Write it as an entry of its own; a slot for its id. None: it takes the long way."""
        self.shut()
        flight = self._flight or self._begin()
        if flight is None or type(message) is not tuple or type(message[0]) is not bytes:
            return None
        gathering, client, size = self._gathering, self._client, len(message[0])
        if gathering.late or not client.budget.take(size, 1):
            return None
        now = client.driver.now
        slot: Slot[MessageId] = Slot()
        # The number first: Ctrl-C after `add` must not leave it to the next one.
        number = gathering.next_sequence
        gathering.next_sequence = number + 1
        try:
            frame = flight.add(message, number, now.wall_ms, now.mono + self._timeout, slot)
        except Exception:  # it cannot be written: the long way says why
            frame = None
        if frame is None:
            gathering.next_sequence = number
            client.budget.give(size, 1)
            return None
        counts = self._owner.counts
        counts["messages"] += 1
        counts["batches"] += 1
        queue = self._pending.queue
        self._alone = 0 if queue else self._alone + 1
        if not self._joined:
            self._began = now.mono
        self._joined += 1
        if not queue or queue[-1] is not flight:
            self._pending.append(flight)
        if self._held.frames:
            flight.link.write(*self._held.take(), frame)
        else:
            flight.link.write(frame)
        return slot

    def end(self, *, lost: bool = False) -> None:
        """Nobody joins it any more: something else goes out behind it, or its connection is `lost`."""
        self.shut(lost=lost)
        self._flight = None

    def landed(self) -> None:
        """All of them have: who comes next may use the lane, if threads come one at a time, or several of them all the
        time."""
        flight = self._flight
        alone, company = self._alone >= _ALONE, self._joined >= _COMPANY and self._in_company()
        if (alone or company) and flight is not None and self._passage is not None:
            passage = self._passage(flight.link, company)
            if passage is not None and not (self._gathering.late or self._held.frames):
                self._lane.open(flight.entries, passage, self._gathering.next_sequence)

    def _in_company(self) -> bool:
        """Whether threads send so often that one of them nearly always waits. Who waits in the lane reads for all, and
        while nobody does, what comes is read a few milliseconds late: not where messages come, too."""
        connection = self._owner.attachment.connection
        quick = self._client.driver.now.mono - self._began < self._joined * _QUICK
        self._joined = 0
        return quick and connection is not None and not connection.consumers

    def shut(self, *, lost: bool = False) -> None:
        """Nobody uses the lane any more; what is on its way there is one of the pending ones now. `lost`: its
        connection is of no use, and what was left to be written will be sent anew."""
        lane = self._lane
        if not lane.opened:
            return
        flight = self._flight
        self._gathering.next_sequence, sent, left = lane.shut(self._client.driver.now.mono + self._timeout)
        counts = self._owner.counts
        counts["messages"] += sent
        counts["batches"] += sent
        if flight is not None and not flight.done:
            budget = self._client.budget
            budget.bytes += flight.entries.size
            budget.items += flight.count
            self._pending.append(flight)
            if left and not lost and flight.link.state == "open":
                flight.link.write(*left)

    def _give_up(self) -> None:
        """Outside of any entry: its receipt takes its time."""
        with self._client.driver.enter():
            self.shut()

    def _begin(self) -> Flight | None:
        """Behind what is in flight already; None where messages do not travel as they are, or cannot leave now."""
        owner = self._owner
        connection = owner.attachment.connection
        if connection is None or not owner.attachment.attached or owner.failure is not None:
            return None
        entries = owner.framer.flight(owner.topic.partition, owner.limit)
        if entries is None:
            return None
        owner.uncouple()
        self._flight = Flight(self._client, owner.topic.partition, entries, connection.link)
        return self._flight

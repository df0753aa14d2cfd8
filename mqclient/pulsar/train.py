"""Owns submitted entries of one message each that leave together: their outcomes, one by one as receipts come."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from mqclient.core.slot import Slot
from mqclient.errors import DeadlineError, MQError
from mqclient.pulsar.batch import Batch, call_back
from mqclient.pulsar.client import ClientEngine

FULL: Final = -1
OTHER: Final = -2
"""Why the native train does not take a message: no room any more; it says what only the long way can say."""


class Train:
    """Entries in a row, as the pending one that stands for all of them. Where one `Batch` each would cost more than all
    else about them, the native `entries` keep frames and places; what is unusual falls apart into batches first.

    `add` needs no entry: it runs no Python code and touches nothing but the native train, until that is closed.
    """

    __slots__ = ("_client", "_due", "_error", "_errors", "_held", "_partition", "_told", "_watchers", "add", "deadline",
                 "entries", "settled", "until")  # fmt: skip

    chunks, landed, scattered = 1, 0, False

    def __init__(self, client: ClientEngine, partition: int, entries: Any, deadline: float, until: float) -> None:
        self._client = client
        self._partition = partition
        self.entries = entries
        self.add: Callable[[Any], int] = entries.add
        self.deadline = deadline
        self.until = until
        """The moment from which on nobody joins any more."""
        self._held = 0
        """Bytes that the client's budget holds."""
        self.settled = 0
        """So many, from the first on, have their outcome; written after it."""
        self._error: MQError | None = None
        self._errors: dict[int, MQError] = {}
        self._due: deque[tuple[Callable[[Any], object], int]] = deque()
        """Callbacks that are to be called, in their order; each is taken once."""
        self._told = 0
        self._watchers: dict[int, list[Callable[[], None]]] = {}

    # ---- as one of those without receipt

    @property
    def sequence_id(self) -> int:
        """Of the next one that has no receipt."""
        first: int = self.entries.first
        return first + self.settled

    @property
    def last_sequence_id(self) -> int:
        following: int = self.entries.following
        return following - 1

    @property
    def count(self) -> int:
        """Messages without receipt."""
        count: int = self.entries.count
        return count - self.settled

    @property
    def done(self) -> bool:
        return not self.count

    @property
    def error(self) -> MQError | None:
        return self._error

    # ---- asked by futures, from any thread

    def outcome(self, index: int, /) -> Any:
        """The id of message `index`, or the error."""
        error = self._errors.get(index)
        if error is not None:
            return error
        if index >= self.entries.landed:
            return self._error
        ledger, entry = self.entries.place(index)
        return self._client.impl.pulsar.MessageId(ledger, entry, self._partition)

    def wait(self, timeout: float | None, index: int, /) -> bool:
        """Block until message `index` has its outcome; only a driver whose `wait` blocks can."""
        driver: Any = self._client.driver
        if not self._client.blocking:
            raise MQError("a future of an asyncio producer cannot block: use `await producer.send(…)` or a callback")
        slot: Slot[None] = Slot()
        with driver.enter():
            self._when(index, lambda: slot.complete(None))
        try:
            driver.wait(slot, driver.deadline(timeout))
        except DeadlineError:
            return False
        return True

    def on_done(self, callback: Callable[[Any], object], index: int, /) -> None:
        """Call back with the future of message `index` where user code may run."""
        with self._client.driver.enter():
            self._when(index, lambda: self._due.append((callback, index)))
            self._run_due()

    # ---- used by the engine, inside an entry

    def then(self, watcher: Callable[[Train], None]) -> None:
        """Tell the engine's own when the last one has its outcome; of a train that is closed."""
        self._when(self.entries.count - 1, lambda: watcher(self))

    def close(self) -> bytes:
        """All frames. Nobody joins any more."""
        frames: bytes = self.entries.close()
        return frames

    def hold(self, size: int) -> int:
        """Of so many bytes that were reserved keep what it needs; the others."""
        self._held = 0 if self.done else min(size, self.entries.size)
        return size - self._held

    def take_receipts(self, events: Sequence[Any], at: int) -> int:
        """How many of the events from `at` on were receipts of the next ones."""
        taken: int = self.entries.take_receipts(events, at)
        if taken:
            self._tell()
        return taken

    def fail(self, error: MQError) -> None:
        """All that have no outcome."""
        self.entries.close()
        self._error = error
        self._tell()

    def parts(self) -> list[Batch]:
        """Those without outcome as entries that know nothing of each other; what becomes of them is told here."""
        found = []
        for index in range(self.settled, self.entries.count):
            batch = Batch(self._client, self._partition, self.entries.first + index, self.deadline)
            batch.count = 1
            batch.batched = False
            batch.frame = self.entries.frame(index)
            batch.then(self._on_part)
            found.append(batch)
        return found

    def _on_part(self, batch: Batch) -> None:
        """They end in their order."""
        if batch.error is not None:
            self._errors[self.settled] = batch.error
            self.entries.land(-1, -1)
        else:
            place = batch.outcome(0)
            self.entries.land(place.ledger, place.entry)
        self._tell()

    def _when(self, index: int, watcher: Callable[[], None]) -> None:
        if index < self.settled:
            watcher()
        else:
            self._watchers.setdefault(index, []).append(watcher)

    def _run_due(self) -> None:
        if self._due:
            self._client.driver.run_user(self._call_back, None)

    def _call_back(self, _: Any) -> None:
        while True:
            try:
                callback, index = self._due.popleft()
            except IndexError:
                return
            call_back(callback, self._client.impl.handover.SendFuture(self, index))

    def _tell(self) -> None:
        count = self.entries.count
        settled = self.settled = count if self._error is not None else self.entries.landed
        if settled == count and self._told < count:
            self.entries.close()
            self.entries.drop()  # a future that somebody keeps would keep them, too
            self._client.budget.give(self._held, 1)
        before, self._told = self._told, settled
        if self._watchers:
            for index in range(before, settled):
                for watcher in self._watchers.pop(index, ()):
                    watcher()
            self._run_due()

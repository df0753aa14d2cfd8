"""Owns one entry on its way: the messages that travel in it, its frame, and the outcome that they share."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mqclient.core.budget import Budget
from mqclient.core.slot import Slot
from mqclient.errors import DeadlineError, MQError
from mqclient.pulsar.client import ClientEngine

if TYPE_CHECKING:
    from mqclient._native.handover import SendWait

log = logging.getLogger("mqclient.pulsar")


class Batch:
    """The slot of one SEND: `count` messages with sequence ids from `sequence_id` on.

    A message's future is native and holds nothing but this batch and an index, so ids are made when asked for, and
    what waits for the outcome waits here. `done` turns true after the outcome was written, never before.
    """

    __slots__ = ("_callbacks", "_client", "_entry", "_error", "_ledger", "_partition", "_slots", "_waits", "_watchers",
                 "batched", "chunks", "count", "deadline", "done", "first", "first_chunk", "frame", "gaps", "held",
                 "landed", "lot", "published_at", "scattered", "sequence_id", "settled", "window")  # fmt: skip

    def __init__(self, client: ClientEngine, partition: int, sequence_id: int, deadline: float) -> None:
        self._client = client
        self._partition = partition
        self._ledger = -1
        self._entry = -1
        self._error: MQError | None = None
        self._callbacks: list[tuple[Callable[[Any], object], int]] = []
        # Made when needed: an entry that was submitted and forgotten would have three for nothing.
        self._watchers: list[Callable[[Batch], None]] | None = None
        self._slots: list[tuple[Slot[Any], int]] | None = None
        self._waits: list[SendWait] | None = None
        self.sequence_id = sequence_id
        self.deadline = deadline
        self.count = 0
        self.held = (0, 0)
        """Bytes and items that the client's budget holds for it."""
        self.window: Budget | None = None
        """The account of messages that holds `count` of them."""
        self.batched = True
        self.published_at = client.driver.now.wall_ms
        self.first: Any = None
        """The message that came first: an entry's metadata repeats what it says about keys."""
        self.frame = b""
        self.lot: Mapping[str, Any] = {}
        """What the entry's metadata says about all of its messages."""
        self.gaps = 0
        """Sequence ids between the first and the last that none of its messages has."""
        self.scattered = False
        """Other entries have some of the ids in the gaps."""
        self.chunks = 1
        """Into how many entries its one message is cut; each has a receipt, `landed` counts them."""
        self.landed = 0
        self.first_chunk: Any = None
        self.done = False
        self.settled = 0
        """As `done`, in messages: none, or all."""

    @property
    def last_sequence_id(self) -> int:
        return self.sequence_id + self.count + self.gaps - 1

    @property
    def error(self) -> MQError | None:
        return self._error

    @property
    def known(self) -> bool:
        """The broker had it already, and did not store it again."""
        return self.done and self._error is None and self._ledger < 0

    # ---- asked by futures, from any thread

    def outcome(self, index: int, /) -> Any:
        """The id of message `index`, or the error."""
        if self._error is not None:
            return self._error
        if self.batched:
            return self._client.impl.pulsar.MessageId(self._ledger, self._entry, self._partition, index, self.count)
        make = self._client.impl.pulsar.MessageId
        return make(self._ledger, self._entry, self._partition, -1, 0, self.first_chunk)

    def outcomes(self, start: int, stop: int) -> list[Any]:
        """As `outcome`, for a run of messages."""
        if self._error is not None or not self.batched:
            return [self.outcome(index) for index in range(start, stop)]
        many = self._client.impl.pulsar.MessageId.of_batch
        made: list[Any] = many(self._ledger, self._entry, self._partition, start, stop, self.count)
        return made

    def wait(self, timeout: float | None, index: int = 0, /) -> bool:
        """Block until done; only a driver whose `wait` blocks can, so under asyncio this raises."""
        driver: Any = self._client.driver
        if not self._client.blocking:
            raise MQError("a future of an asyncio producer cannot block: use `await producer.send(…)` or a callback")
        slot: Slot[None] = Slot()
        with driver.enter():
            self.then(lambda _: slot.complete(None))
        try:
            driver.wait(slot, driver.deadline(timeout))
        except DeadlineError:
            return False
        return True

    def on_done(self, callback: Callable[[Any], object], index: int, /) -> None:
        """Call back with the future of message `index` where user code may run."""
        # Append, then look: whoever completes writes `done`, then empties the list. Each pair is popped once.
        self._callbacks.append((callback, index))
        if self.done:
            with self._client.driver.enter():
                self._client.driver.run_user(self._call_back, None)

    # ---- used by the engine, inside an entry

    def then(self, watcher: Callable[[Batch], None]) -> None:
        """Tell the engine's own: at once if done."""
        if self.done:
            watcher(self)
        elif self._watchers is None:
            self._watchers = [watcher]
        else:
            self._watchers.append(watcher)

    def watch(self, index: int) -> Slot[Any]:
        """A slot for the outcome of message `index`."""
        slot: Slot[Any] = Slot()
        self.tell(slot, index)
        return slot

    def tell(self, slot: Slot[Any], index: int) -> None:
        """Complete this slot with the outcome of message `index`."""
        if self._slots is None:
            self._slots = []
        self._slots.append((slot, index))

    def awaited(self, index: int, loop: Any) -> SendWait:
        """As `watch`, for a task of this loop: tasks that wait for one batch are woken in one turn."""
        wait: SendWait = self._client.impl.handover.SendWait(self, index, loop)
        if self._waits is None:
            self._waits = [wait]
        else:
            self._waits.append(wait)
        return wait

    def arrive(self, ledger: int, entry: int) -> bool:
        """The receipt of one of its chunks; whether it was the last one."""
        self.landed += 1
        if self.landed == 1 and self.chunks > 1:
            self.first_chunk = self._client.impl.pulsar.MessageId(ledger, entry, self._partition)
        return self.landed >= self.chunks

    def complete(self, ledger: int, entry: int) -> None:
        self._ledger = ledger
        self._entry = entry
        self._tell()

    def fail(self, error: MQError) -> None:
        self._error = error
        self._tell()

    def _tell(self) -> None:
        self.done = True
        self.settled = self.count
        self._client.budget.give(*self.held)
        if self.window is not None:
            self.window.give(0, self.count)
        if self._slots is not None:
            self._tell_slots(self._slots)
        if self._waits is not None:
            waits, self._waits = self._waits, None
            self._client.driver.deliver(self._client.impl.handover.wake, waits)
        if self._watchers is not None:
            watchers, self._watchers = self._watchers, None
            for watcher in watchers:
                watcher(self)
        self.frame = b""
        self.first = None
        if self._callbacks:
            self._client.driver.run_user(self._call_back, None)

    def _tell_slots(self, slots: list[tuple[Slot[Any], int]]) -> None:
        self._slots = None
        for slot, index in slots:
            if self._error is not None:
                slot.fail(self._error)
            else:
                slot.complete(self.outcome(index))

    def _call_back(self, _: Any) -> None:
        callbacks, make = self._callbacks, self._client.impl.handover.SendFuture
        callbacks.reverse()  # popped from the end: one that comes meanwhile is the next
        while True:
            try:
                callback, index = callbacks.pop()
            except IndexError:
                return
            try:  # as `call_back`, without the call
                callback(make(self, index))
            except Exception:
                log.exception("a callback of a message failed")


def call_back(callback: Callable[[Any], object], future: Any) -> None:
    """One that fails must not keep those after it from being called."""
    try:
        callback(future)
    except Exception:
        log.exception("a callback of a message failed")

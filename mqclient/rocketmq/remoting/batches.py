"""Owns the batches that gather submitted messages, a lane for each topic and queue, and what their futures look at."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mqclient.core.accumulator import Accumulator, Limits
from mqclient.core.slot import Slot
from mqclient.errors import DeadlineError, MQError
from mqclient.rocketmq.model import MessageQueue, Receipt
from mqclient.rocketmq.remoting.client import ClientEngine
from mqclient.rocketmq.remoting.outgoing import Prepared, Stored
from mqclient.rocketmq.remoting.sending import Sending

if TYPE_CHECKING:
    from mqclient.rocketmq.remoting.producer import ProducerEngine


class LaneKey(NamedTuple):
    """Messages of one lane may share a request. With a queue, their order counts: one request at a time."""

    topic: str
    queue: MessageQueue | None
    key: str | None = None
    """Only as long as no route tells the key's queue."""

    @property
    def ordered(self) -> bool:
        return self.queue is not None or self.key is not None


class Batch:
    """Messages that will be, or are, in one request; `done` turns true after their outcome was written."""

    __slots__ = ("_client", "builder", "bytes", "deadline", "first", "ids", "slot")

    def __init__(self, client: ClientEngine) -> None:
        self._client = client
        self.builder: Any = None
        self.first: Prepared | None = None
        self.ids: list[str] = []
        self.bytes = 0
        self.deadline = 0.0
        self.slot: Slot[Stored] = Slot()

    def add(self, message: Prepared, deadline: float) -> int:
        """Take it in; its index. The builder begins with the second: most batches of a quiet producer hold one."""
        if self.first is None:
            self.first = message
        else:
            if self.builder is None:
                self.builder = self._client.impl.remoting.BatchBuilder()
                self.builder.add(self.first.body, self.first.properties, self.first.flag)
            self.builder.add(message.body, message.properties, message.flag)
        self.ids.append(message.ids[0])
        self.bytes += message.size
        self.deadline = max(self.deadline, deadline)
        return len(self.ids) - 1

    # ---- asked by futures, from any thread

    @property
    def done(self) -> bool:
        return self.slot.done

    @property
    def settled(self) -> int:
        return len(self.ids) if self.slot.done else 0

    def outcome(self, index: int, /) -> Receipt | BaseException:
        error = self.slot.error
        if error is not None:
            return error
        receipt: Receipt = self.slot.result()[index]
        return receipt

    def wait(self, timeout: float | None, index: int = 0, /) -> bool:
        """Block until done; only a driver whose `wait` blocks can, so under asyncio this raises."""
        if not self._client.blocking:
            raise MQError("a future of an asyncio producer cannot block: use `await producer.send(…)` or a callback")
        driver: Any = self._client.driver
        try:
            driver.wait(self.slot, driver.deadline(timeout))
        except DeadlineError:
            return self.slot.done
        except Exception:
            if not self.slot.done:  # else it is the message's own error, which `outcome` tells
                raise
        return True

    def on_done(self, callback: Callable[[Any], object], index: int, /) -> None:
        """Call back with the future where user code may run, at once if it is done."""
        driver, future = self._client.driver, self._client.impl.handover.SendFuture
        with driver.enter():
            self.slot.then(lambda _: driver.run_user(callback, future(self, index)))


class Batching:
    """The lanes of one producer. All of it inside entries."""

    def __init__(self, engine: ProducerEngine) -> None:
        self._engine = engine
        self._budget = engine.budget
        client, options = engine.client, engine.options
        limits = Limits(options.batch_max_messages, options.batch_max_bytes, options.linger)
        self._accumulator: Accumulator[LaneKey, Batch] = Accumulator(
            client.driver, client.timers, limits, lambda _: Batch(client), self._ship
        )
        self._behind: dict[LaneKey, deque[Batch]] = {}
        """Batches of an ordered lane that wait for the one before; the key is here while one is on its way."""
        self.open: dict[Batch, None] = {}
        """Every batch without an outcome, in the order in which they were begun."""

    def add(self, message: Prepared, deadline: float, queue: MessageQueue | None) -> tuple[Batch, int]:
        """Put a message into the batch of its lane; what may not travel in one is a batch of its own."""
        key = self._key(message, queue)
        lane = self._accumulator.lane(key)
        if message.alone or not self._engine.options.batching or message.size > self._engine.options.batch_max_bytes:
            batch = Batch(self._engine.client)
            index = self._note(batch, message, deadline)
            lane.ship(batch)
            return batch, index
        batch = lane.room(message.size)
        return batch, self._note(batch, message, deadline)

    def _note(self, batch: Batch, message: Prepared, deadline: float) -> int:
        self.open[batch] = None
        return batch.add(message, deadline)

    def busy(self, message: Prepared, queue: MessageQueue | None) -> bool:
        """Whether something that must come before this message gathers or is on its way."""
        key = self._key(message, queue)
        return key.ordered and self._busy(key)

    def _key(self, message: Prepared, queue: MessageQueue | None) -> LaneKey:
        """The lane: by the queue if one is given or follows from the key, else by topic.

        While no route tells the queue, a key has a lane of its own; it is used until it is empty, for what goes by
        the queue must not overtake it.
        """
        if queue is not None or message.key is None:
            return LaneKey(message.topic, queue)
        alone = LaneKey(message.topic, None, message.key)
        route = self._engine.client.routes.get(message.topic)
        if route is None or not route.writable or self._busy(alone):
            return alone
        return LaneKey(message.topic, self._engine.choose(route, message.key, None))

    def _busy(self, key: LaneKey) -> bool:
        lane = self._accumulator.known(key)
        return lane is not None and bool(lane.in_flight or lane.batch is not None)

    def flush(self) -> None:
        """Nothing gathers any longer."""
        self._accumulator.flush()

    def abandon(self, error: BaseException) -> None:
        """Nothing of it will be sent: each batch that is not on its way ends with this error."""
        for batch in self._accumulator.clear():
            self._end(batch, error)
        behind, self._behind = self._behind, {}
        for waiting in behind.values():
            for batch in waiting:
                self._end(batch, error)

    def _ship(self, key: LaneKey, batch: Batch) -> None:
        if not key.ordered:
            self._send(key, batch)
            return
        behind = self._behind.get(key)
        if behind is not None:
            behind.append(batch)
        else:
            self._behind[key] = deque()
            self._send(key, batch)

    def _send(self, key: LaneKey, batch: Batch) -> None:
        assert batch.first is not None
        prepared = batch.first
        if batch.builder is not None:
            prepared = self._engine.preparer.batch(key.topic, batch.builder.seal(), batch.ids, prepared.key)
            batch.builder = None
        batch.first = None
        sending = Sending(self._engine, prepared, batch.deadline, key.queue)
        sending.start().then(lambda slot: self._landed(key, batch, slot))

    def _landed(self, key: LaneKey, batch: Batch, slot: Slot[Stored]) -> None:
        self._end(batch, slot.error or slot.result())
        behind = self._behind.get(key)
        if behind:
            self._send(key, behind.popleft())
        else:
            self._behind.pop(key, None)
        self._accumulator.landed(key)
        if key.key is not None and not self._busy(key):
            self._accumulator.forget(key)

    def _end(self, batch: Batch, outcome: Stored | BaseException) -> None:
        """Room first, then the outcome: whoever is woken by it finds room."""
        self.open.pop(batch, None)
        self._budget.give(batch.bytes, len(batch.ids))
        if isinstance(outcome, BaseException):
            batch.slot.fail(outcome)
        else:
            batch.slot.complete(outcome)

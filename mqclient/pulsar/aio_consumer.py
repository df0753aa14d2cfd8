"""The asyncio faces of Pulsar consumers and readers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias

from mqclient.core.driver import AsyncDriver
from mqclient.errors import ClosedError, DeadlineError
from mqclient.io import aio_stopping
from mqclient.io.pickled import Lazily
from mqclient.pulsar import opening, reading, txn_acks
from mqclient.pulsar.acks import listed, single
from mqclient.pulsar.listening import stopping
from mqclient.pulsar.names import position
from mqclient.pulsar.typed import T

if TYPE_CHECKING:
    from mqclient._native.pulsar import Message, MessageBatch, MessageId
    from mqclient.pulsar.aio_transaction import Transaction
    from mqclient.pulsar.listening import Report
    from mqclient.pulsar.subscribing import Engine

__all__ = ["Consumer", "Reader", "Receiving"]

Position: TypeAlias = "MessageId | datetime | int | str"
Seek: TypeAlias = "Position | Mapping[str, Position] | Callable[[str], Position | None]"

_MANY: Final = (list, tuple)
"""Not `list | tuple`: where each message is acknowledged, to make that anew would be a third of the work."""


class Receiving(Lazily, Generic[T]):
    """What consumers and readers have in common: taking messages, and moving the position."""

    def __init__(self, driver: AsyncDriver, engine: Engine) -> None:
        self._driver = driver
        self._engine = engine
        self._inbox = engine.mailbox
        self._take: Callable[[], Message[T] | None] = engine.mailbox.take
        self._take_many: Callable[[int], list[Message[T]]] = engine.mailbox.take_many

    @property
    def topic(self) -> str:
        return str(self._engine.topic)

    @property
    def topics(self) -> list[str]:
        """What is consumed now; partitions by their own names."""
        return self._engine.topics

    async def receive(self, timeout: float | None = None) -> Message[T]:
        """The next message; DeadlineError if there is none in time."""
        message = self._take()
        return message if message is not None else await self._receive_late(self._driver.deadline(timeout))

    async def receive_many(self, max: int = 1000, timeout: float | None = None) -> list[Message[T]]:
        """What is there, at most `max`; if nothing is, what comes first; [] if nothing comes in time."""
        messages = self._take_many(max)
        return messages or await self._receive_many_late(max, self._driver.deadline(timeout))

    async def seek(self, to: Seek, timeout: float | None = None) -> None:
        """Go on after a message (or at it, with `start_inclusive`), at a time (datetime, or ms since the epoch), at
        "earliest" or "latest".

        Of many topics or partitions a time moves all of them and an id the partition that it names; a mapping says it
        of each topic, as does a function that is called with each.
        """
        at = position(to, self._engine.topics)
        with self._driver.enter():
            slot = opening.seek(self._engine, at)
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def last_message_id(self, timeout: float | None = None) -> MessageId | None:
        """Of the topic; None if it is empty."""
        with self._driver.enter():
            slot = reading.last_message_id(self._engine)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def last_message_ids(self, timeout: float | None = None) -> dict[str, MessageId | None]:
        """Of each topic or partition, by its name."""
        with self._driver.enter():
            slot = reading.last_message_ids(self._engine)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def close(self) -> None:
        with self._driver.enter():
            slot = opening.close(self._engine)
        await self._driver.wait(slot)

    def diagnose(self) -> dict[str, Any]:
        """The account of permits (window, at broker, here, released), and what waits."""
        with self._driver.enter():
            return self._engine.diagnose()

    def __aiter__(self) -> AsyncIterator[Message[T]]:
        return self

    async def __anext__(self) -> Message[T]:
        message = self._take()
        return message if message is not None else await self._next_late()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _receive_late(self, deadline: float | None) -> Message[T]:
        while True:
            with self._inbox.waiting() as wake:
                await self._driver.wait(wake, deadline)
                if (message := self._take()) is not None:
                    return message

    async def _receive_many_late(self, limit: int, deadline: float | None) -> list[Message[T]]:
        try:
            first = await self._receive_late(deadline)
        except DeadlineError:
            return []
        return [first, *self._take_many(limit - 1)]

    async def _next_late(self) -> Message[T]:
        try:
            return await self._receive_late(None)
        except ClosedError:
            raise StopAsyncIteration from None


class Consumer(Receiving[T]):
    """Made by `Client.consumer`. A message that is not acknowledged comes again, to somebody."""

    def __init__(self, driver: AsyncDriver, engine: Engine) -> None:
        super().__init__(driver, engine)
        self._add = engine.acks.add
        self._add_many = engine.acks.add_many
        if engine.listening is not None:
            self._take = self._take_many = engine.listening.refuse

    @property
    def subscription(self) -> str:
        return self._engine.subscription

    async def ack(
        self, message: Message | MessageId | Sequence[Message | MessageId], *, txn: Transaction | None = None
    ) -> None:
        """Acknowledge one or many; told to the broker in groups, or at once in a transaction."""
        if txn is not None:
            await self._ack_in(txn, listed(message), cumulative=False)
        elif signal := self._added(message) if isinstance(message, _MANY) else self._add(message):
            self._acks_due(signal)

    async def ack_cumulative(self, message: Message | MessageId, *, txn: Transaction | None = None) -> None:
        """Acknowledge everything up to and including this; exclusive and failover subscriptions only."""
        if txn is not None:
            await self._ack_in(txn, [single(message)], cumulative=True)
        else:
            with self._driver.enter():
                self._engine.ack_cumulative(single(message))

    async def ack_confirmed(
        self, message: Message | MessageId | Sequence[Message | MessageId], timeout: float | None = None
    ) -> None:
        """Acknowledge at once, and wait until the broker has said that it knows."""
        with self._driver.enter():
            slot = self._engine.ack_confirmed(listed(message))
        await self._driver.wait(slot, self._driver.deadline(timeout))

    def nack(self, message: Message | MessageId | Sequence[Message | MessageId]) -> None:
        """Ask for it again, after `nack_delay`; of a batch everything that is not acknowledged comes again."""
        with self._driver.enter():
            self._engine.nack(listed(message))

    async def retry_later(
        self,
        message: Message,
        delay: float,
        *,
        properties: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Have it again after `delay` seconds by way of the retry-letter topic; after too many times it is buried.

        For consumers with `retry=True`. The message is acknowledged when its copy is there.
        """
        with self._driver.enter():
            slot = opening.retry(self._engine, single(message), delay, properties or {})
        await self._driver.wait(slot, self._driver.deadline(timeout))

    def redeliver(self) -> None:
        """Ask at once for everything that is not acknowledged."""
        with self._driver.enter():
            self._engine.redeliver()

    def pause(self) -> None:
        """Ask for no more messages; what is here, or on its way, can be received."""
        with self._driver.enter():
            self._engine.pause()

    def resume(self) -> None:
        with self._driver.enter():
            self._engine.resume()

    async def stats(self, timeout: float | None = None) -> dict[str, Any]:
        """What the broker says about this consumer."""
        with self._driver.enter():
            slot = reading.stats(self._engine)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def unsubscribe(self, *, force: bool = False) -> None:
        """Delete the subscription, and close."""
        with self._driver.enter():
            slot = opening.unsubscribe(self._engine, force)
        await self._driver.wait(slot)

    async def run(self, grace: float = 30.0) -> Report:
        """Serve by the listener until SIGTERM, Ctrl-C or a close; then begin nothing more, give running handlers the
        grace, tell acknowledgements, hand back what was not begun, and close."""
        await aio_stopping.until_asked(self._driver, stopping(self._engine))
        with self._driver.enter():
            slot = opening.stop(self._engine, grace)
        return await self._driver.wait(slot)

    async def __aenter__(self) -> Consumer[T]:
        return self

    async def _ack_in(self, txn: Transaction, messages: Sequence[Any], *, cumulative: bool) -> None:
        with self._driver.enter():
            slot = txn_acks.ack_in(self._engine, txn.engine, messages, cumulative)
        await self._driver.wait(slot)

    def _added(self, messages: Sequence[Any]) -> int:
        try:
            return self._add_many(messages)
        except TypeError:
            self._acks_due(1)  # those before the wrong one are told, as ever
            raise

    def _acks_due(self, signal: int) -> None:
        with self._driver.enter():
            self._engine.acks_due(signal)


class Reader(Receiving[T]):
    """Made by `Client.reader`. Nothing is acknowledged: the position is the reader's own."""

    async def has_message_available(self, timeout: float | None = None) -> bool:
        """Whether there is something to read that is in the topic now."""
        with self._driver.enter():
            slot = reading.has_message_available(self._engine)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def receive_batch(self, timeout: float | None = None) -> MessageBatch | None:
        """The next entry, undecoded; None if there is none in time. For readers opened with `by_batch=True`."""
        self._engine.check_by_batch()
        found: Any = await self.receive_many(1, timeout)
        batch: MessageBatch | None = found[0] if found else None
        return batch

    async def batches(self) -> AsyncIterator[MessageBatch]:
        """Every entry until the reader is closed, for readers opened with `by_batch=True`."""
        self._engine.check_by_batch()
        while (batch := await self._batch_or_end()) is not None:
            yield batch

    async def __aenter__(self) -> Reader[T]:
        return self

    async def _batch_or_end(self) -> Any:
        try:
            return await self.receive()
        except ClosedError:
            return None

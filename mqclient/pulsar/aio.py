"""The asyncio face of the Pulsar client.

async with mqclient.pulsar.aio.Client("pulsar://127.0.0.1:6650") as client:
    async with client.producer("orders") as producer:
        message_id = await producer.send(b"...", key="42")
    async with client.consumer("orders", "billing", type="shared") as consumer:
        async for message in consumer:
            await consumer.ack(message)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mqclient import _impl
from mqclient.config import TLS
from mqclient.core.driver import AsyncDriver
from mqclient.errors import ClosedError, DeadlineError
from mqclient.io.aio import AsyncioDriver
from mqclient.io.opening import Opening
from mqclient.io.tls import encrypted
from mqclient.pulsar import opening, reading
from mqclient.pulsar.auth import Authentication
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.columns import Rows, prepare_rows
from mqclient.pulsar.consumer import ConsumerEngine
from mqclient.pulsar.names import position
from mqclient.pulsar.producer import ProducerEngine, prepare, prepare_many, results

if TYPE_CHECKING:
    from mqclient._native.handover import SendFuture
    from mqclient._native.pulsar import Message, MessageBatch, MessageId

__all__ = ["Client", "Consumer", "Producer", "Reader"]


class Client:
    """One client of one cluster. Producers and consumers share its connections and are closed with it.

    Times are seconds. `tls`: of pulsar+ssl:// URLs; the other side is checked unless it says not to. `memory_limit`:
    bytes of bodies that producers may have in flight. `impl`: "native" or "pure", by default what MQCLIENT_IMPL asks
    for.
    """

    def __init__(
        self,
        url: str,
        *,
        auth: Authentication | None = None,
        tls: TLS | None = None,
        operation_timeout: float = 30.0,
        connect_timeout: float = 10.0,
        keep_alive: float = 30.0,
        memory_limit: int = 64 << 20,
        impl: str | None = None,
    ) -> None:
        namespace = _impl.default if impl is None else _impl.select(impl)
        self._driver: AsyncDriver = AsyncioDriver("mqclient-pulsar", send_now=namespace.pulsar.send_now)
        self._engine = ClientEngine(
            self._driver,
            namespace,
            url,
            auth=auth,
            tls=encrypted(tls or TLS()) if url.startswith("pulsar+ssl://") else tls,
            blocking=False,  # unasync: drop
            operation_timeout=operation_timeout,
            connect_timeout=connect_timeout,
            keep_alive=keep_alive,
            memory_limit=memory_limit,
        )
        with self._driver.enter():
            self._driver.attach(self._engine)

    def producer(self, topic: str, *, timeout: float | None = None, **options: Any) -> Opening[Producer]:
        """A producer of one topic; options: see `mqclient.pulsar.options.ProducerOptions`."""
        return Opening(self._open_producer(topic, options, timeout))

    def consumer(
        self, topic: str, subscription: str, *, timeout: float | None = None, **options: Any
    ) -> Opening[Consumer]:
        """A consumer of one subscription; options: see `mqclient.pulsar.options.ConsumerOptions`."""
        return Opening(self._open_consumer(topic, subscription, options, timeout))

    def reader(
        self, topic: str, *, start: MessageId | str, timeout: float | None = None, **options: Any
    ) -> Opening[Reader]:
        """Read a topic from a position on, without a subscription that stays: "earliest", "latest" or a message id."""
        return Opening(self._open_reader(topic, start, options, timeout))

    async def partitions(self, topic: str, timeout: float | None = None) -> list[str]:
        """The names to open: the topic's partitions, or itself if it has none."""
        with self._driver.enter():
            slot = opening.partitions(self._engine, topic, self._driver.deadline(timeout))
        return await self._driver.wait(slot)

    async def ping(self, timeout: float | None = None) -> str:
        """Connect if need be; which software answers."""
        with self._driver.enter():
            slot = opening.ping(self._engine)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def close(self) -> None:
        """Flush and close producers, tell acknowledgements, close consumers, then the connections."""
        with self._driver.enter():
            slot = opening.close(self._engine)
        await self._driver.wait(slot)
        await self._driver.close()

    def diagnose(self) -> dict[str, Any]:
        """The connections as they are now."""
        with self._driver.enter():
            return self._engine.diagnose()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _open_producer(self, topic: str, options: Mapping[str, Any], timeout: float | None) -> Producer:
        deadline = self._driver.deadline(timeout)
        with self._driver.enter():
            slot = opening.open_producer(self._engine, topic, options, deadline)
        return Producer(self._driver, await self._driver.wait(slot))

    async def _open_consumer(
        self, topic: str, subscription: str, options: Mapping[str, Any], timeout: float | None
    ) -> Consumer:
        deadline = self._driver.deadline(timeout)
        with self._driver.enter():
            slot = opening.open_consumer(self._engine, topic, subscription, options, deadline)
        return Consumer(self._driver, await self._driver.wait(slot))

    async def _open_reader(
        self, topic: str, start: MessageId | str, options: Mapping[str, Any], timeout: float | None
    ) -> Reader:
        deadline = self._driver.deadline(timeout)
        with self._driver.enter():
            slot = opening.open_reader(self._engine, topic, start, options, deadline)
        return Reader(self._driver, await self._driver.wait(slot))


class Producer:
    """Made by `Client.producer`. A message goes out as soon as nothing is in flight; else it gathers in a batch."""

    def __init__(self, driver: AsyncDriver, engine: ProducerEngine) -> None:
        self._driver = driver
        self._engine = engine

    @property
    def topic(self) -> str:
        return str(self._engine.topic)

    @property
    def name(self) -> str:
        """As given, or as the broker chose it."""
        return self._engine.name

    async def send(
        self,
        body: bytes | bytearray | memoryview | None,
        *,
        key: str | bytes | None = None,
        properties: Mapping[str, str] | None = None,
        event_time: int = 0,
        ordering_key: bytes | None = None,
        timeout: float | None = None,
    ) -> MessageId:
        """Send one message and wait for its id. Cancelled or timed out, its outcome is unknown."""
        item = prepare(body, key, properties, event_time, ordering_key)
        with self._driver.enter():
            slot = self._engine.send(item)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def send_many(self, messages: Sequence[Any], *, timeout: float | None = None) -> list[Any]:
        """Send bodies, or tuples of `send`'s arguments; of each, in order, its id or an MQError, both with `.ok`."""
        items = prepare_many(messages)
        with self._driver.enter():
            slot = self._engine.send_many(items)
        return results(await self._driver.wait(slot, self._driver.deadline(timeout)))

    async def send_arrow(
        self, batch: Any, *, columns: Mapping[str, str] | None = None, timeout: float | None = None
    ) -> list[Rows]:
        """Send the rows of a pyarrow.RecordBatch; the outcome of each run of rows that travelled together.

        `columns` says which column is the `body`, and which, if any, `key`, `ordering_key`, `event_time` (milliseconds)
        and `properties`; by default those of these names.
        """
        parts, rows = prepare_rows(batch, columns)
        with self._driver.enter():
            slot = self._engine.send_rows(parts, rows)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    def submit(
        self,
        body: bytes | bytearray | memoryview | None,
        *,
        key: str | bytes | None = None,
        properties: Mapping[str, str] | None = None,
        event_time: int = 0,
        ordering_key: bytes | None = None,
    ) -> SendFuture:
        """Take the message; the future tells the outcome. It waits only while `memory_limit` is reached."""
        item = prepare(body, key, properties, event_time, ordering_key)
        with self._driver.enter():
            future = self._engine.submit(item)
        return future if future is not None else self._engine.submit_late(item)

    async def flush(self, timeout: float | None = None) -> None:
        """Wait until everything taken so far has its outcome."""
        with self._driver.enter():
            slot = self._engine.flush()
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def close(self) -> None:
        with self._driver.enter():
            slot = opening.close(self._engine)
        await self._driver.wait(slot)

    def diagnose(self) -> dict[str, Any]:
        with self._driver.enter():
            return self._engine.diagnose()

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Receiving:
    """What consumers and readers have in common: taking messages, and moving the position."""

    def __init__(self, driver: AsyncDriver, engine: ConsumerEngine) -> None:
        self._driver = driver
        self._engine = engine
        self._inbox = engine.mailbox
        self._take: Callable[[], Message | None] = engine.mailbox.take
        self._take_many: Callable[[int], list[Message]] = engine.mailbox.take_many

    @property
    def topic(self) -> str:
        return str(self._engine.topic)

    async def receive(self, timeout: float | None = None) -> Message:
        """The next message; DeadlineError if there is none in time."""
        message = self._take()
        return message if message is not None else await self._receive_late(self._driver.deadline(timeout))

    async def receive_many(self, max: int = 1000, timeout: float | None = None) -> list[Message]:
        """What is there, at most `max`; if nothing is, what comes first; [] if nothing comes in time."""
        messages = self._take_many(max)
        return messages or await self._receive_many_late(max, self._driver.deadline(timeout))

    async def seek(self, to: MessageId | datetime | int, timeout: float | None = None) -> None:
        """Go on after a message (or at it, with `start_inclusive`), or at a time: datetime, or ms since the epoch."""
        with self._driver.enter():
            slot = opening.seek(self._engine, position(to))
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def last_message_id(self, timeout: float | None = None) -> MessageId | None:
        """Of the topic; None if it is empty."""
        with self._driver.enter():
            slot = reading.last_message_id(self._engine)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def close(self) -> None:
        with self._driver.enter():
            slot = opening.close(self._engine)
        await self._driver.wait(slot)

    def diagnose(self) -> dict[str, Any]:
        """The account of permits (window, at broker, here, released), and what waits."""
        with self._driver.enter():
            return self._engine.diagnose()

    def __aiter__(self) -> AsyncIterator[Message]:
        return self

    async def __anext__(self) -> Message:
        message = self._take()
        return message if message is not None else await self._next_late()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _receive_late(self, deadline: float | None) -> Message:
        while True:
            with self._inbox.waiting() as wake:
                await self._driver.wait(wake, deadline)
                if (message := self._take()) is not None:
                    return message

    async def _receive_many_late(self, limit: int, deadline: float | None) -> list[Message]:
        try:
            first = await self._receive_late(deadline)
        except DeadlineError:
            return []
        return [first, *self._take_many(limit - 1)]

    async def _next_late(self) -> Message:
        try:
            return await self._receive_late(None)
        except ClosedError:
            raise StopAsyncIteration from None


class Consumer(Receiving):
    """Made by `Client.consumer`. A message that is not acknowledged comes again, to somebody."""

    def __init__(self, driver: AsyncDriver, engine: ConsumerEngine) -> None:
        super().__init__(driver, engine)
        self._add = engine.acks.add
        self._add_many = engine.acks.add_many

    @property
    def subscription(self) -> str:
        return self._engine.subscription

    async def ack(self, message: Message | MessageId | Sequence[Message | MessageId]) -> None:
        """Acknowledge one or many; told to the broker in groups."""
        signal = self._add_many(message) if isinstance(message, list | tuple) else self._add(message)
        if signal:
            self._acks_due(signal)

    async def ack_cumulative(self, message: Message | MessageId) -> None:
        """Acknowledge everything up to and including this; exclusive and failover subscriptions only."""
        with self._driver.enter():
            self._engine.ack_cumulative(message)

    async def ack_confirmed(
        self, message: Message | MessageId | Sequence[Message | MessageId], timeout: float | None = None
    ) -> None:
        """Acknowledge at once, and wait until the broker has said that it knows."""
        with self._driver.enter():
            slot = self._engine.ack_confirmed(message if isinstance(message, list | tuple) else [message])
        await self._driver.wait(slot, self._driver.deadline(timeout))

    def nack(self, message: Message | MessageId | Sequence[Message | MessageId]) -> None:
        """Ask for it again, after `nack_delay`; of a batch everything that is not acknowledged comes again."""
        with self._driver.enter():
            self._engine.nack(message if isinstance(message, list | tuple) else [message])

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

    async def __aenter__(self) -> Consumer:
        return self

    def _acks_due(self, signal: int) -> None:
        with self._driver.enter():
            self._engine.acks_due(signal)


class Reader(Receiving):
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

    async def __aenter__(self) -> Reader:
        return self

    async def _batch_or_end(self) -> Any:
        try:
            return await self.receive()
        except ClosedError:
            return None

"""The asyncio face of Pulsar producers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic

from mqclient.core.driver import AsyncDriver
from mqclient.io.pickled import Lazily
from mqclient.pulsar import opening
from mqclient.pulsar.columns import Rows, prepare_rows
from mqclient.pulsar.outgoing import prepare_many, results, within
from mqclient.pulsar.typed import T, U

if TYPE_CHECKING:
    from mqclient._native.handover import SendFuture
    from mqclient._native.pulsar import MessageId
    from mqclient.pulsar.aio_transaction import Transaction
    from mqclient.pulsar.producing import Engine
    from mqclient.pulsar.schema.base import Schema

__all__ = ["Producer"]


class Producer(Lazily, Generic[T]):
    """Made by `Client.producer`. A message goes out as soon as nothing is in flight; else it gathers in a batch."""

    def __init__(self, driver: AsyncDriver, engine: Engine, prepare: Any = None) -> None:
        self._driver = driver
        self._engine = engine
        self._prepare = engine.prepare if prepare is None else prepare
        self._express = engine.express
        self._board = engine.board
        self._door: Callable[..., SendFuture | None] = engine.door(self._prepare)

    @property
    def topic(self) -> str:
        return str(self._engine.topic)

    @property
    def name(self) -> str:
        """As given, or as the broker chose it; of a partitioned topic that of the first partition."""
        return self._engine.name

    @property
    def last_sequence_id(self) -> int:
        """The highest that the broker has confirmed; -1 if it has none."""
        return self._engine.published

    def with_schema(self, schema: Schema[U]) -> Producer[U]:
        """This very producer, for values of another schema; the order of messages holds over both.

        The topic's schema gets a new version if it may follow those that there are, when the first value is sent.
        """
        return Producer(self._driver, self._engine, self._engine.preparing(schema))

    async def send(
        self,
        body: T | None,
        *,
        key: str | bytes | None = None,
        properties: Mapping[str, str] | None = None,
        event_time: int | datetime = 0,
        ordering_key: bytes | None = None,
        sequence_id: int | None = None,
        deliver_at: int | datetime | None = None,
        deliver_after: float | timedelta | None = None,
        replicate_to: Sequence[str] | None = None,
        txn: Transaction | None = None,
        timeout: float | None = None,
    ) -> MessageId:
        """Send one message and wait for its id. Cancelled or timed out, its outcome is unknown.

        `body`: bytes, None for a null value, or what the producer's schema takes. Times are datetimes or milliseconds;
        `deliver_after` is seconds. `replicate_to`: the clusters, [] for none. `txn`: a transaction that it belongs to.
        """
        rest = (event_time, ordering_key, sequence_id, deliver_at, deliver_after, replicate_to, txn)
        sent = self._sent(self._prepare(body, key, properties, *rest), timeout)
        del rest  # of thousands that wait the collector would look at it again and again
        return await sent

    async def send_many(
        self, messages: Sequence[Any], *, txn: Transaction | None = None, timeout: float | None = None
    ) -> list[Any]:
        """Send many; of each, in order, its id or an MQError, both with `.ok`.

        A message is a body, a tuple of `send`'s arguments in their order, or a dict of them by name with "body".
        """
        items = prepare_many(messages, within(self._prepare, txn))
        with self._driver.enter():
            slot = self._engine.send_many(items)
        return results(await self._driver.wait(slot, self._driver.deadline(timeout)))

    async def send_arrow(
        self,
        batch: Any,
        *,
        columns: Mapping[str, str] | None = None,
        sequence_id: int | None = None,
        timeout: float | None = None,
    ) -> list[Rows]:
        """Send the rows of a pyarrow.RecordBatch; the outcome of each run of rows that travelled together.

        `columns` says which column is the `body`, and which, if any, `key`, `ordering_key`, `event_time` (milliseconds)
        and `properties`; by default those of these names. Of a partitioned topic one partition gets all rows of a call.
        `sequence_id`: of the first row, the others get those after it; without it the producer goes on counting.
        """
        parts, rows = prepare_rows(batch, columns)
        with self._driver.enter():
            slot = self._engine.send_rows(parts, rows, sequence_id)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    def submit(
        self,
        body: T | None,
        *,
        key: str | bytes | None = None,
        properties: Mapping[str, str] | None = None,
        event_time: int | datetime = 0,
        ordering_key: bytes | None = None,
        sequence_id: int | None = None,
        deliver_at: int | datetime | None = None,
        deliver_after: float | timedelta | None = None,
        replicate_to: Sequence[str] | None = None,
        txn: Transaction | None = None,
    ) -> SendFuture:
        """Take the message; the future tells the outcome. It waits only while `memory_limit` or `max_pending` is
        reached."""
        given = (body, key, properties, event_time, ordering_key, sequence_id, deliver_at, deliver_after,
                 replicate_to, txn)  # fmt: skip
        return self._door(*given) or self._submitted(self._prepare(*given))

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

    def _submitted(self, item: Any) -> SendFuture:
        if (boarded := self._board(item)) is not None:
            return boarded
        with self._driver.enter():
            future = self._engine.submit(item)
        return future if future is not None else self._engine.submit_late(item)

    def _sent(self, item: Any, timeout: float | None) -> Awaitable[MessageId]:
        slot = self._express(item) if timeout is None else None
        if slot is None:
            with self._driver.enter():
                slot = self._engine.send_awaited(item, timeout)
        return self._driver.wait(slot, None if timeout is None else self._driver.deadline(timeout))

    async def __aenter__(self) -> Producer[T]:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

"""The asyncio face of Pulsar producers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mqclient.core.driver import AsyncDriver
from mqclient.pulsar import opening
from mqclient.pulsar.columns import Rows, prepare_rows
from mqclient.pulsar.producer import ProducerEngine, prepare, prepare_many, results

if TYPE_CHECKING:
    from mqclient._native.handover import SendFuture
    from mqclient._native.pulsar import MessageId

__all__ = ["Producer"]


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

"""The asyncio face of Pulsar transactions."""

from __future__ import annotations

from types import TracebackType

from mqclient.core.driver import AsyncDriver
from mqclient.io.pickled import Lazily
from mqclient.pulsar import transactions

__all__ = ["Transaction"]


class Transaction(Lazily):
    """Made by `Client.transaction`. What is sent and acknowledged in it takes effect as a whole, or not at all.

    Left without an error it is committed, with one aborted, unless that was done inside.
    """

    def __init__(self, driver: AsyncDriver, engine: transactions.Transaction) -> None:
        self._driver = driver
        self.engine = engine

    @property
    def id(self) -> tuple[int, int]:
        """As the broker calls it: most and least bits."""
        return self.engine.id

    @property
    def state(self) -> str:
        """open; committing, aborting; committed, aborted, expired, or unknown."""
        return self.engine.state

    async def commit(self, timeout: float | None = None) -> None:
        """Wait for all that was begun in it, then let it take effect. TransactionError if something in it failed: then
        it is aborted."""
        with self._driver.enter():
            slot = transactions.commit(self.engine)
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def abort(self, timeout: float | None = None) -> None:
        """Nothing of it takes effect: what it acknowledged comes again."""
        with self._driver.enter():
            slot = transactions.abort(self.engine)
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._driver.enter():
            slot = transactions.leave(self.engine, error)
        await self._driver.wait(slot)

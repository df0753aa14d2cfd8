"""The asyncio face of transactions: a message that is delivered if, and only if, what belongs to it has happened."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isawaitable  # unasync: drop
from types import TracebackType
from typing import Any

from mqclient.core.driver import AsyncDriver
from mqclient.errors import ConfigError
from mqclient.io.opening import Opening
from mqclient.rocketmq.model import Message, MessageQueue, Receipt, TransactionState
from mqclient.rocketmq.remoting.aio_producer import Producer
from mqclient.rocketmq.remoting.transactions import Deciding, TransactionEngine

__all__ = ["Transaction", "TransactionalProducer"]


class Transaction:
    """A message that nobody may read yet. Leaving a `with` block commits it, an exception rolls it back."""

    def __init__(self, driver: AsyncDriver, engine: TransactionEngine, receipt: Receipt) -> None:
        self._driver = driver
        self._engine = engine
        self.receipt = receipt
        self.state: TransactionState | None = None
        """How it ended; None: not yet."""

    def commit(self) -> None:
        """Deliver it. Told once and not confirmed: if it gets lost, the broker asks the producer's check."""
        self.end(TransactionState.COMMIT)

    def rollback(self) -> None:
        """Drop it."""
        self.end(TransactionState.ROLLBACK)

    def end(self, state: TransactionState, remark: str | None = None) -> None:
        """As commit or rollback; UNKNOWN: the broker shall ask later."""
        if self.state is not None:
            raise ConfigError(f"this transaction has ended already: {self.state.value}")
        with self._driver.enter():
            self._engine.end(self.receipt, state, remark)
        self.state = state

    async def run(self, local: Callable[[Receipt], Any]) -> None:
        """Do what the message belongs to, and end as it says; see `send_in_transaction`."""
        with Deciding(self.end) as deciding:
            outcome = local(self.receipt)
            if isawaitable(outcome):  # unasync: drop
                outcome = await outcome  # unasync: drop
            deciding.outcome = outcome

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.state is None:
            self.end(TransactionState.COMMIT if kind is None else TransactionState.ROLLBACK)


class TransactionalProducer(Producer):
    """Made by `Client.transactional_producer`; its `send` and the like know nothing of transactions."""

    def __init__(self, driver: AsyncDriver, engine: TransactionEngine) -> None:
        super().__init__(driver, engine.producer)
        self._transactions = engine

    def begin(
        self,
        message: Message,
        *,
        key: str | None = None,
        queue: MessageQueue | None = None,
        timeout: float | None = 3.0,
    ) -> Opening[Transaction]:
        """Send a message that nobody may read until the transaction is committed."""
        return Opening(self._begin(message, key, queue, timeout))

    async def _begin(
        self, message: Message, key: str | None, queue: MessageQueue | None, timeout: float | None
    ) -> Transaction:
        prepared, deadline = self._transactions.prepare(message, key), self._driver.deadline(timeout)
        with self._driver.enter():
            slot = self._transactions.begin(prepared, deadline, queue)
        return Transaction(self._driver, self._transactions, await self._driver.wait(slot, deadline))

    async def send_in_transaction(
        self, message: Message, local: Callable[[Receipt], Any], *, key: str | None = None, timeout: float | None = 3.0
    ) -> Transaction:
        """Send the message, call `local(receipt)`, and end as it says: it gives a TransactionState.

        If it raises, the transaction's end is unknown: the error is raised here, and the broker will ask the check.
        """
        transaction = await self.begin(message, key=key, timeout=timeout)
        await transaction.run(local)
        return transaction

    async def __aenter__(self) -> TransactionalProducer:
        return self

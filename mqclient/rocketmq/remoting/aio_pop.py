"""The asyncio face of RocketMQ pop consumers over the remoting protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any

from mqclient.core.driver import AsyncDriver
from mqclient.core.steps import run_steps
from mqclient.errors import ClosedError, DeadlineError
from mqclient.io.pickled import Lazily
from mqclient.rocketmq.remoting.pop import PopEngine, Popped

__all__ = ["PopConsumer"]


class PopConsumer(Lazily):
    """Made by `Client.pop_consumer`. What is not acknowledged in its time comes again, to whoever asks."""

    def __init__(self, driver: AsyncDriver, engine: PopEngine) -> None:
        self._driver = driver
        self._engine = engine

    async def receive(self, timeout: float | None = None) -> Popped:
        """The next message; DeadlineError if there is none in time."""
        return (await self._receive(1, self._driver.deadline(timeout)))[0]

    async def receive_many(self, max: int = 32, timeout: float | None = None) -> list[Popped]:
        """What is there, at most `max`; if nothing is, what comes first; [] if nothing comes in time."""
        try:
            return await self._receive(max, self._driver.deadline(timeout))
        except DeadlineError:
            return []

    async def ack(self, messages: Popped | Iterable[Popped], timeout: float | None = 5.0) -> None:
        """They are consumed. An error says that a broker did not take it: then it comes again."""
        with self._driver.enter():
            slot = run_steps(self._engine.ack_steps(messages))
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def change_invisible(self, message: Popped, seconds: float, timeout: float | None = 5.0) -> Popped:
        """Ours for so long from now on; with little, it comes again soon. What is returned replaces the message."""
        with self._driver.enter():
            slot = run_steps(self._engine.change_steps(message, seconds))
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    def diagnose(self) -> dict[str, Any]:
        """What waits here, and which brokers are asked."""
        with self._driver.enter():
            return self._engine.diagnose()

    async def close(self) -> None:
        """Give back what nobody took, leave."""
        with self._driver.enter():
            slot = self._engine.close()
        await self._driver.wait(slot)

    def __aiter__(self) -> AsyncIterator[Popped]:
        return self

    async def __anext__(self) -> Popped:
        try:
            return (await self._receive(1, None))[0]
        except ClosedError:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> PopConsumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _receive(self, limit: int, deadline: float | None) -> list[Popped]:
        while not (found := self._take(limit)):
            with self._driver.enter():
                wake = self._engine.wait()
            await self._until(wake, deadline)
        return found

    def _take(self, limit: int) -> list[Popped]:
        with self._driver.enter():
            return self._engine.take(limit)

    async def _until(self, wake: Any, deadline: float | None) -> None:
        try:
            await self._driver.wait(wake, deadline)
        finally:
            with self._driver.enter():
                self._engine.waiters.leave(wake)

"""The asyncio faces of RocketMQ push and pull consumers over the remoting protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mqclient.core.driver import AsyncDriver
from mqclient.core.steps import run_steps
from mqclient.errors import ClosedError, DeadlineError
from mqclient.io.pickled import Lazily
from mqclient.io.signals import stop_signals
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.assigned import RangesRead
from mqclient.rocketmq.remoting.consumer import PushEngine
from mqclient.rocketmq.remoting.member_options import Start
from mqclient.rocketmq.remoting.pull_consumer import PullEngine
from mqclient.rocketmq.remoting.push_options import StopReport

if TYPE_CHECKING:
    from mqclient._native import remoting

__all__ = ["PullConsumer", "PushConsumer"]


class PushConsumer(Lazily):
    """Made by `Client.push_consumer`; runs until it is closed."""

    def __init__(self, driver: AsyncDriver, engine: PushEngine) -> None:
        self._driver = driver
        self._engine = engine

    @property
    def queues(self) -> list[MessageQueue]:
        """What is assigned to us now."""
        return sorted(self._engine.member.queues)

    def diagnose(self) -> dict[str, Any]:
        """The group, its queues and how far they are; `code_25` counts what story 1 is about."""
        with self._driver.enter():
            return self._engine.diagnose()

    def pause(self, queues: Iterable[MessageQueue] | None = None) -> None:
        """Hand out no more messages of these queues; without any: of all, and of those still to come."""
        with self._driver.enter():
            self._engine.pause(queues)

    def resume(self, queues: Iterable[MessageQueue] | None = None) -> None:
        with self._driver.enter():
            self._engine.resume(queues)

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on with one of our queues at this offset."""
        with self._driver.enter():
            self._engine.seek(queue, offset)

    async def seek_to_time(
        self, when: Start, queues: Iterable[MessageQueue] | None = None, timeout: float | None = 5.0
    ) -> dict[MessageQueue, int]:
        """Go on with our queues where they were then: "first", "last", a datetime or milliseconds; where each went."""
        with self._driver.enter():
            slot = run_steps(self._engine.seek_to_time_steps(when, queues))
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def run(self, grace: float = 30.0) -> StopReport:
        """Serve until SIGTERM or SIGINT, or until somebody closes it; then stop as `close` does."""
        with stop_signals(self._driver) as asked:
            with self._driver.enter():
                self._engine.until(asked)
            await self._driver.wait(asked)
        return await self.close(grace)

    async def close(self, grace: float = 30.0) -> StopReport:
        """Stop pulling, let handlers end within the grace, tell offsets, leave; the report says what was left."""
        with self._driver.enter():
            slot = self._engine.close(grace)
        return await self._driver.wait(slot)

    async def __aenter__(self) -> PushConsumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class PullConsumer(Lazily):
    """Made by `Client.pull_consumer`. What was taken counts as consumed when more is asked for, or at the close."""

    def __init__(self, driver: AsyncDriver, engine: PullEngine) -> None:
        self._driver = driver
        self._engine = engine
        self._take: Callable[[], remoting.Message | None] = engine.mailbox.take
        self._take_many: Callable[[int], list[remoting.Message]] = engine.mailbox.take_many

    @property
    def queues(self) -> list[MessageQueue]:
        """What is assigned to us now."""
        return sorted(self._engine.member.queues)

    @property
    def ended(self) -> bool:
        """Whether every range of `assign` was read to its end: nothing more will come."""
        with self._driver.enter():
            return self._engine.ended()

    async def receive(self, timeout: float | None = None) -> remoting.Message:
        """The next message; DeadlineError, which tells why, if there is none in time."""
        message = self._take()
        return message if message is not None else await self._receive_or_told(self._driver.deadline(timeout))

    async def receive_many(self, max: int = 1024, timeout: float | None = None) -> list[remoting.Message]:
        """What is there, at most `max`; if nothing is, what comes first; [] if nothing comes in time."""
        messages = self._take_many(max)
        return messages or await self._receive_many_late(max, self._driver.deadline(timeout))

    async def receive_batch(
        self, max_messages: int = 1024, timeout: float | None = None
    ) -> remoting.MessageBatch | None:
        """Messages of one queue as they came, undecoded; None if nothing comes in time, or ever (see `ended`)."""
        deadline = self._driver.deadline(timeout)
        try:
            return await self._batch_late(max_messages, deadline)
        except (DeadlineError, RangesRead):
            return None

    async def batches(self, max_messages: int = 1024) -> AsyncIterator[remoting.MessageBatch]:
        """Every batch until the consumer is closed."""
        while (batch := await self._batch_or_end(max_messages)) is not None:
            yield batch

    async def commit(self, timeout: float | None = 5.0) -> None:
        """What was taken so far is consumed, and the brokers know it when this returns."""
        with self._driver.enter():
            slot = run_steps(self._engine.commit_steps())
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def committed(self, queue: MessageQueue, timeout: float | None = 5.0) -> int | None:
        """Up to where the group has consumed a queue."""
        with self._driver.enter():
            slot = run_steps(self._engine.committed_steps(queue))
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def lag(self, timeout: float | None = 5.0) -> dict[MessageQueue, int]:
        """Of each of our queues: how many messages are still to be consumed."""
        with self._driver.enter():
            slot = run_steps(self._engine.lag_steps())
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on with one of our queues at this offset."""
        with self._driver.enter():
            self._engine.seek(queue, offset)

    async def seek_to_time(
        self, when: Start, queues: Iterable[MessageQueue] | None = None, timeout: float | None = 5.0
    ) -> dict[MessageQueue, int]:
        """Go on with our queues where they were then: "first", "last", a datetime or milliseconds; where each went."""
        with self._driver.enter():
            slot = run_steps(self._engine.seek_to_time_steps(when, queues))
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    def pause(self, queues: Iterable[MessageQueue]) -> None:
        """Pull no more from these; what is here can be received."""
        with self._driver.enter():
            self._engine.pause(queues)

    def resume(self, queues: Iterable[MessageQueue]) -> None:
        with self._driver.enter():
            self._engine.resume(queues)

    def diagnose(self) -> dict[str, Any]:
        """The group, its queues and how far they are."""
        with self._driver.enter():
            return self._engine.diagnose()

    async def close(self) -> None:
        """Commit what was taken, leave."""
        with self._driver.enter():
            slot = self._engine.close()
        await self._driver.wait(slot)

    def __aiter__(self) -> AsyncIterator[remoting.Message]:
        return self

    async def __anext__(self) -> remoting.Message:
        message = self._take()
        return message if message is not None else await self._next_late()

    async def __aenter__(self) -> PullConsumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _receive_or_told(self, deadline: float | None) -> remoting.Message:
        try:
            return await self._receive_late(deadline)
        except DeadlineError:
            raise self._nothing() from None

    async def _receive_late(self, deadline: float | None) -> remoting.Message:
        while (message := self._take()) is None:
            with self._driver.enter():
                wake = self._engine.refill()
            await self._until(wake, deadline)
        return message

    async def _receive_many_late(self, limit: int, deadline: float | None) -> list[remoting.Message]:
        try:
            first = await self._receive_late(deadline)
        except DeadlineError:
            return []
        return [first, *self._take_many(limit - 1)] if limit > 1 else [first]

    def _nothing(self) -> DeadlineError:
        with self._driver.enter():
            return self._engine.nothing()

    async def _next_late(self) -> remoting.Message:
        try:
            return await self._receive_late(None)
        except ClosedError:
            raise StopAsyncIteration from None

    async def _batch_or_end(self, limit: int) -> remoting.MessageBatch | None:
        try:
            return await self._batch_late(limit, None)
        except ClosedError:
            return None

    async def _batch_late(self, limit: int, deadline: float | None) -> remoting.MessageBatch:
        while (batch := self._next_batch(limit)) is None:
            with self._driver.enter():
                wake = self._engine.wait()
            await self._until(wake, deadline)
        return batch

    async def _until(self, wake: Any, deadline: float | None) -> None:
        try:
            await self._driver.wait(wake, deadline)
        finally:
            with self._driver.enter():
                self._engine.waiters.leave(wake)

    def _next_batch(self, limit: int) -> remoting.MessageBatch | None:
        with self._driver.enter():
            return self._engine.next_batch(limit)

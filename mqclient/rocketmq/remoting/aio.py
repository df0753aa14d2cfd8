"""The asyncio face of the RocketMQ client over the remoting protocol.

async with mqclient.rocketmq.aio.Client("127.0.0.1:9876") as client:
    async with client.producer("order-service") as producer:
        receipt = await producer.send(Message("orders", b"...", tag="paid", keys=["42"]))
    async with client.pull_consumer("report", "orders") as consumer:
        async for batch in consumer.batches(max_messages=1024):
            ...
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mqclient import _impl
from mqclient.core.driver import AsyncDriver
from mqclient.core.steps import run_steps
from mqclient.errors import ClosedError, DeadlineError, MQError
from mqclient.io.aio import AsyncioDriver
from mqclient.io.opening import Opening
from mqclient.rocketmq.model import Message, MessageQueue, Receipt
from mqclient.rocketmq.remoting.admin import AdminEngine, When
from mqclient.rocketmq.remoting.admin_reset import ResetReport
from mqclient.rocketmq.remoting.assigned import LIMITS, Ends
from mqclient.rocketmq.remoting.client import ClientEngine, Options
from mqclient.rocketmq.remoting.columns import Rows, prepare_rows, submit_rows
from mqclient.rocketmq.remoting.consumer import Handler, PushEngine
from mqclient.rocketmq.remoting.group import MemberOptions, member_options, topics_of
from mqclient.rocketmq.remoting.producer import ProducerEngine, checked
from mqclient.rocketmq.remoting.pull_consumer import PullEngine

if TYPE_CHECKING:
    from mqclient._native import remoting
    from mqclient._native.handover import SendFuture

__all__ = ["Admin", "Client", "Producer", "PullConsumer", "PushConsumer"]


class Client:
    """One identity towards name servers and brokers; producers and consumers share its connections.

    `name_servers`: "a:9876;b:9876" or a list; without it NAMESRV_ADDR. Times are seconds. `impl`: "native" or "pure",
    by default what MQCLIENT_IMPL asks for. Other options: see `mqclient.rocketmq.remoting.client.Options`.
    """

    def __init__(
        self, name_servers: str | Sequence[str] | None = None, *, impl: str | None = None, **options: Any
    ) -> None:
        servers = os.environ.get("NAMESRV_ADDR", "") if name_servers is None else name_servers
        namespace = _impl.default if impl is None else _impl.select(impl)
        self._driver: AsyncDriver = AsyncioDriver("mqclient-rocketmq", send_now=namespace.remoting.send_now)
        with self._driver.enter():
            self._engine = ClientEngine(
                self._driver,
                namespace,
                servers,
                Options.of(options),
                blocking=False,  # unasync: drop
            )

    @property
    def client_id(self) -> str:
        """Who brokers think we are."""
        return self._engine.client_id

    def producer(self, group: str) -> Opening[Producer]:
        """A producer of this group."""
        return Opening(self._open_producer(group))

    def push_consumer(
        self,
        group: str,
        topics: str | Mapping[str, str] | Iterable[str],
        handler: Handler,
        *,
        threads: int = 20,
        batch: int = 32,
        max_attempts: int = 16,
        timeout: float | None = 10.0,
        **options: Any,
    ) -> Opening[PushConsumer]:
        """Calls `handler(messages)`: it returns, they are acknowledged; it raises, they come again later.

        `topics`: a name, names, or names with their tag expressions. Options: model="broadcasting", start="first",
        "last" or a time, rule (of allocation), pull_batch; see `mqclient.rocketmq.remoting.group.MemberOptions`.
        """
        member = member_options(options)
        limits = {"threads": threads, "batch": batch, "max_attempts": max_attempts}
        return Opening(self._open_push(group, topics_of(topics), handler, member, limits, timeout))

    def pull_consumer(
        self,
        group: str,
        topics: str | Mapping[str, str] | Iterable[str] = (),
        *,
        assign: Mapping[MessageQueue, Ends] | None = None,
        auto_commit: bool = True,
        timeout: float | None = 10.0,
        **options: Any,
    ) -> Opening[PullConsumer]:
        """A consumer that is asked: `batches()`, `receive()`, `receive_many()`; options as for `push_consumer`.

        With `assign`, a start offset or (start, end) of each queue instead of topics, it joins no group and commits
        nothing; an offset that is not there is an error.
        """
        given: dict[str, Any] = {} if assign is None else {"limits": LIMITS}
        given |= {"retries": False, "consume_type": "CONSUME_ACTIVELY", "pull_batch": 1024, **options}
        wanted = topics_of(topics) if assign is None else {}
        return Opening(self._open_pull(group, wanted, member_options(given), auto_commit, assign, timeout))

    def admin(self) -> Opening[Admin]:
        """What operators ask for."""
        return Opening(self._open_admin())

    async def ping(self, timeout: float | None = 3.0) -> None:
        """Ask a name server something; the error says what is wrong."""
        with self._driver.enter():
            slot = run_steps(AdminEngine(self._engine).topics_steps())
        await self._driver.wait(slot, self._driver.deadline(timeout))

    def diagnose(self) -> dict[str, Any]:
        """Links, topics, groups and their queues as they are now."""
        with self._driver.enter():
            return self._engine.diagnose()

    async def close(self) -> None:
        """Close consumers and producers, then the connections."""
        with self._driver.enter():
            slot = self._engine.shutdown()
        await self._driver.wait(slot)
        await self._driver.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _open_producer(self, group: str) -> Producer:
        with self._driver.enter():
            return Producer(self._driver, ProducerEngine(self._engine, group))

    async def _open_push(
        self,
        group: str,
        topics: Mapping[str, str],
        handler: Handler,
        options: MemberOptions,
        limits: Mapping[str, int],
        timeout: float | None,
    ) -> PushConsumer:
        with self._driver.enter():
            engine = PushEngine(self._engine, group, topics, handler, options, **limits)
            slot = engine.start()
        await self._driver.wait(slot, self._driver.deadline(timeout))
        return PushConsumer(self._driver, engine)

    async def _open_pull(
        self,
        group: str,
        topics: Mapping[str, str],
        options: MemberOptions,
        auto_commit: bool,
        assign: Mapping[MessageQueue, Ends] | None,
        timeout: float | None,
    ) -> PullConsumer:
        with self._driver.enter():
            engine = PullEngine(self._engine, group, topics, options, auto_commit=auto_commit, assign=assign)
            slot = engine.start()
        await self._driver.wait(slot, self._driver.deadline(timeout))
        return PullConsumer(self._driver, engine)

    async def _open_admin(self) -> Admin:
        return Admin(self._driver, AdminEngine(self._engine))


class Producer:
    """Made by `Client.producer`."""

    def __init__(self, driver: AsyncDriver, engine: ProducerEngine) -> None:
        self._driver = driver
        self._engine = engine

    @property
    def group(self) -> str:
        return self._engine.group

    async def send(
        self,
        message: Message,
        *,
        key: str | None = None,
        queue: MessageQueue | None = None,
        timeout: float | None = 3.0,
    ) -> Receipt:
        """Send one message and wait for its receipt; the same key goes to the same queue.

        Tried on other brokers while the error advises it and time is left. Cancelled, its outcome is unknown.
        """
        prepared, deadline = self._engine.prepare(message, key), self._driver.deadline(timeout)
        with self._driver.enter():
            slot = self._engine.submit(prepared, deadline, queue)
        return (await self._driver.wait(slot, deadline))[0]

    async def send_many(
        self,
        messages: Iterable[Message],
        *,
        key: Callable[[Message], str | None] | None = None,
        timeout: float | None = 3.0,
        raise_on_error: bool = False,
    ) -> list[Receipt | MQError]:
        """Send many, batched where that is legal; of each, in order, its receipt or an MQError, both with `.ok`."""
        prepared = self._engine.prepare_many(messages, key)
        with self._driver.enter():
            slot = self._engine.submit_many(prepared, self._driver.deadline(timeout))
        return checked(await self._driver.wait(slot), raise_on_error)

    async def send_arrow(
        self,
        batch: Any,
        topic: str,
        *,
        columns: Mapping[str, str] | None = None,
        queue: MessageQueue | None = None,
        timeout: float | None = 30.0,
        raise_on_error: bool = False,
    ) -> list[Rows]:
        """Send the rows of a pyarrow.RecordBatch; the outcome of each run of rows that travelled together.

        `columns` says which column is the `body`, and which, if any, `keys`, `tag`, `properties` and `flag`; by default
        those of these names.
        """
        prepared, deadline = prepare_rows(batch, columns), self._driver.deadline(timeout)
        with self._driver.enter():
            slot = submit_rows(self._engine, topic, prepared, deadline, queue)
        return checked(await self._driver.wait(slot), raise_on_error)

    def submit(self, message: Message, *, key: str | None = None) -> SendFuture:
        """Send one message and return at once; the future tells the outcome."""
        prepared = self._engine.prepare(message, key)
        with self._driver.enter():
            return self._engine.submit_future(prepared)

    async def send_oneway(self, message: Message, *, key: str | None = None, timeout: float | None = 3.0) -> None:
        """Send one message that nobody confirms."""
        prepared = self._engine.prepare(message, key)
        with self._driver.enter():
            slot = self._engine.submit_oneway(prepared)
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def close(self) -> None:
        """Leave the group; what is in flight ends by itself."""
        with self._driver.enter():
            slot = self._engine.close()
        await self._driver.wait(slot)

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class PushConsumer:
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

    async def close(self, grace: float = 30.0) -> None:
        """Stop pulling, let handlers end within the grace, tell offsets, leave."""
        with self._driver.enter():
            slot = self._engine.close(grace)
        await self._driver.wait(slot)

    async def __aenter__(self) -> PushConsumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class PullConsumer:
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

    async def receive(self, timeout: float | None = None) -> remoting.Message:
        """The next message; DeadlineError if there is none in time."""
        message = self._take()
        return message if message is not None else await self._receive_late(self._driver.deadline(timeout))

    async def receive_many(self, max: int = 1024, timeout: float | None = None) -> list[remoting.Message]:
        """What is there, at most `max`; if nothing is, what comes first; [] if nothing comes in time."""
        messages = self._take_many(max)
        return messages or await self._receive_many_late(max, self._driver.deadline(timeout))

    async def receive_batch(
        self, max_messages: int = 1024, timeout: float | None = None
    ) -> remoting.MessageBatch | None:
        """Messages of one queue as they came, undecoded; None if nothing comes in time."""
        deadline = self._driver.deadline(timeout)
        try:
            return await self._batch_late(max_messages, deadline)
        except DeadlineError:
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

    async def _receive_late(self, deadline: float | None) -> remoting.Message:
        while (message := self._take()) is None:
            with self._driver.enter():
                slot = self._engine.refill()
            await self._driver.wait(slot, deadline)
        return message

    async def _receive_many_late(self, limit: int, deadline: float | None) -> list[remoting.Message]:
        try:
            first = await self._receive_late(deadline)
        except DeadlineError:
            return []
        return [first, *self._take_many(limit - 1)] if limit > 1 else [first]

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
                slot = self._engine.wait_for_batch()
            await self._driver.wait(slot, deadline)
        return batch

    def _next_batch(self, limit: int) -> remoting.MessageBatch | None:
        with self._driver.enter():
            return self._engine.next_batch(limit)


class Admin:
    """Made by `Client.admin`."""

    def __init__(self, driver: AsyncDriver, engine: AdminEngine) -> None:
        self._driver = driver
        self._engine = engine

    async def create_topic(self, topic: str, queues: int = 8, *, perm: int = 6, timeout: float | None = 10.0) -> None:
        """On every broker; returns when a name server shows it."""
        with self._driver.enter():
            slot = run_steps(self._engine.create_topic_steps(topic, queues, perm))
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def topics(self, timeout: float | None = 5.0) -> list[str]:
        with self._driver.enter():
            slot = run_steps(self._engine.topics_steps())
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def reset_offset(
        self,
        group: str,
        topic: str,
        when: When,
        *,
        model: str = "clustering",
        force: bool = True,
        dry_run: bool = False,
        timeout: float | None = 30.0,
    ) -> ResetReport:
        """Move a group: "earliest", "latest", a datetime or milliseconds. Without `force` no queue moves forward.

        `model="broadcasting"` reaches every member on any broker, and the report says of each what became of it.
        """
        with self._driver.enter():
            steps = self._engine.reset_offset_steps(group, topic, when, model=model, force=force, dry_run=dry_run)
            slot = run_steps(steps)
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def offsets(
        self, topic: str, group: str | None = None, timeout: float | None = 10.0
    ) -> dict[MessageQueue, dict[str, int | None]]:
        """Of each queue: min, max, and what the group has committed."""
        with self._driver.enter():
            slot = run_steps(self._engine.offsets_steps(topic, group))
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def close(self) -> None:
        """Nothing to give back: it works over the client's connections."""

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

"""The asyncio face of RocketMQ producers over the remoting protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mqclient.core.driver import AsyncDriver
from mqclient.core.steps import run_steps
from mqclient.errors import MQError
from mqclient.io.pickled import Lazily, revived
from mqclient.rocketmq.model import Account, Message, MessageQueue, Receipt, Reply
from mqclient.rocketmq.remoting.asking import prepare_reply, prepare_request, reply_steps, request_steps
from mqclient.rocketmq.remoting.columns import Rows, Sheaf, prepare_rows
from mqclient.rocketmq.remoting.many import plan, results
from mqclient.rocketmq.remoting.producer import ProducerEngine, checked
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from mqclient.rocketmq.remoting.recall import recall_steps

if TYPE_CHECKING:
    from mqclient._native.handover import SendFuture

__all__ = ["Producer"]


class Producer(Lazily):
    """Made by `Client.producer`. A pickled one is, elsewhere, a producer with a client of its own, made when used."""

    _own: Any = None
    """The client that was made for this producer alone, and ends with it."""

    def __init__(self, driver: AsyncDriver, engine: ProducerEngine, recipe: tuple[Any, ...] | None = None) -> None:
        self._driver = driver
        self._engine = engine
        self._recipe = recipe

    def _make(self, kind: type[Any], recipe: tuple[Any, ...], group: str, options: ProducerOptions) -> None:
        self._own = client = revived(kind, recipe)
        with client._driver.enter():
            engine = ProducerEngine(client._engine, group, options)
        self._driver, self._engine = client._driver, engine

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
        """Send one message and wait for its receipt; the same key goes to the same queue, in order.

        Tried on other brokers while the error advises it and time is left. Cancelled, its outcome is unknown.
        """
        receipt: Receipt | None = self._engine.at_once(message, key, queue, timeout)
        return receipt or await self._sent(message, key, queue, timeout)

    async def send_many(
        self,
        messages: Iterable[Message],
        *,
        key: Callable[[Message], str | None] | None = None,
        timeout: float | None = 3.0,
        raise_on_error: bool = False,
    ) -> list[Receipt | MQError]:
        """Send many, batched where that is legal; of each, in order, its receipt or an MQError, both with `.ok`."""
        found = self._engine.many_at_once(messages, key, timeout)
        given, messages = [messages], ()
        found = found or await self._sent_many(given, key, timeout)
        return checked(found, raise_on_error) if raise_on_error else found

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
        deadline = self._driver.deadline(timeout)
        slot = Sheaf(self._engine, topic, prepare_rows(batch, columns), deadline, queue).submit(self._driver)
        return checked(await self._driver.wait(slot), raise_on_error)

    def submit(self, message: Message, *, key: str | None = None, queue: MessageQueue | None = None) -> SendFuture:
        """Send one message and return at once; the future tells the outcome.

        Small messages travel together. While more than the limits allow has no answer yet, this blocks or refuses, as
        the option `when_full` says (asyncio: it refuses).
        """
        prepared = self._engine.prepare(message, key)
        with self._driver.enter():
            future = self._engine.submit(prepared, queue)
        return self._engine.submit_late(prepared, queue) if future is None else future

    async def send_oneway(self, message: Message, *, key: str | None = None, timeout: float | None = 3.0) -> None:
        """Send one message that nobody confirms."""
        prepared = self._engine.prepare(message, key)
        with self._driver.enter():
            slot = self._engine.submit_oneway(prepared)
        await self._driver.wait(slot, self._driver.deadline(timeout))

    async def request(
        self,
        message: Message,
        *,
        key: str | None = None,
        queue: MessageQueue | None = None,
        timeout: float | None = 3.0,
    ) -> Reply:
        """Send a message and wait for what its consumer answers with `reply`; DeadlineError if that is not in time."""
        prepared, deadline = prepare_request(self._engine, message, timeout, key), self._driver.deadline(timeout)
        with self._driver.enter():
            slot = run_steps(request_steps(self._engine, prepared, deadline, queue))
        return await self._driver.wait(slot, deadline)

    async def reply(
        self,
        request: Any,
        body: bytes | bytearray | memoryview,
        *,
        properties: Mapping[str, str] | None = None,
        tag: str | None = None,
        timeout: float | None = 3.0,
    ) -> Receipt:
        """Answer a message that came by `request`: done when the requester has the answer."""
        prepared, deadline = prepare_reply(self._engine, request, body, properties, tag), self._driver.deadline(timeout)
        with self._driver.enter():
            slot = run_steps(reply_steps(self._engine, prepared, request, deadline))
        return await self._driver.wait(slot, deadline)

    async def recall(self, handle: str | Receipt, *, timeout: float | None = 3.0) -> str:
        """Take back a timed message before it is delivered: by its receipt or its recall handle; its message id."""
        with self._driver.enter():
            slot = run_steps(recall_steps(self._engine.client, self._engine.group, handle))
        return await self._driver.wait(slot, self._driver.deadline(timeout))

    async def flush(self, timeout: float | None = None) -> Account:
        """Wait until everything submitted so far has its outcome; what became of all messages so far."""
        with self._driver.enter():
            slot = self._engine.flush()
        await self._driver.wait(slot, self._driver.deadline(timeout))
        return self.account()

    def account(self) -> Account:
        """What became of the messages so far."""
        with self._driver.enter():
            return self._engine.account()

    async def close(self) -> Account:
        """Take no more, wait for what is on its way, leave the group; what became of all messages."""
        with self._driver.enter():
            slot = self._engine.close()
        account = await self._driver.wait(slot)
        await self._close_own()
        return account

    async def _sent(
        self, message: Message, key: str | None, queue: MessageQueue | None, timeout: float | None
    ) -> Receipt:
        prepared, deadline = self._engine.prepare(message, key), self._driver.deadline(timeout)
        with self._driver.enter():
            slot, index = self._engine.send(prepared, deadline, queue)
        receipt: Receipt = (await self._driver.wait(slot, deadline))[index]
        return receipt

    async def _sent_many(
        self, given: list[Iterable[Message]], key: Callable[[Message], str | None] | None, timeout: float | None
    ) -> list[Receipt | MQError]:
        """`given`: the messages, held by nobody else: once their bytes are made, they make room for the receipts."""
        prepared, deadline = plan(self._engine, given.pop(), key), self._driver.deadline(timeout)
        with self._driver.enter():
            slot = self._engine.submit_many(prepared, deadline)
        return results(await self._driver.wait(slot))

    async def _close_own(self) -> None:
        if self._own is not None:
            await self._own.close()

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

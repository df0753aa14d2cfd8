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
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mqclient import _impl
from mqclient.core.driver import AsyncDriver
from mqclient.core.steps import run_steps
from mqclient.io.aio import AsyncioDriver
from mqclient.io.opening import Opening
from mqclient.io.pickled import Lazily
from mqclient.io.tls import encrypted
from mqclient.rocketmq.model import MessageQueue
from mqclient.rocketmq.remoting.admin import AdminEngine
from mqclient.rocketmq.remoting.aio_admin import Admin
from mqclient.rocketmq.remoting.aio_consumer import PullConsumer, PushConsumer
from mqclient.rocketmq.remoting.aio_pop import PopConsumer
from mqclient.rocketmq.remoting.aio_producer import Producer
from mqclient.rocketmq.remoting.aio_transactions import TransactionalProducer
from mqclient.rocketmq.remoting.assigned import LIMITS, Ends
from mqclient.rocketmq.remoting.client import ClientEngine, Options
from mqclient.rocketmq.remoting.consumer import Handler, PushEngine
from mqclient.rocketmq.remoting.member_options import MemberOptions, member_options, topics_of
from mqclient.rocketmq.remoting.pop import PopEngine, PopOptions, pop_options
from mqclient.rocketmq.remoting.producer import ProducerEngine
from mqclient.rocketmq.remoting.producer_options import ProducerOptions
from mqclient.rocketmq.remoting.pull_consumer import PullEngine
from mqclient.rocketmq.remoting.push_options import PushOptions, push_options
from mqclient.rocketmq.remoting.subscription import EVERYTHING
from mqclient.rocketmq.remoting.transactions import Check, TransactionEngine
from mqclient.rocketmq.remoting.url import merged

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from mqclient.rocketmq.remoting.keywords import (
        ClientKeywords,
        MemberKeywords,
        PopKeywords,
        ProducerKeywords,
        PushKeywords,
    )

__all__ = ["Admin", "Client", "PopConsumer", "Producer", "PullConsumer", "PushConsumer", "TransactionalProducer"]


class Client(Lazily):
    """One identity towards name servers and brokers; producers and consumers share its connections.

    `name_servers`: "a:9876;b:9876", a list, or a URL that holds options, too: "rocketmq://a:9876,b:9876/namespace?…";
    without it NAMESRV_ADDR, in one of these forms. Times are seconds. `impl`: "native" or "pure", by default what
    MQCLIENT_IMPL asks for. Other options: see `mqclient.rocketmq.remoting.client.Options`.
    """

    def __init__(
        self,
        name_servers: str | Sequence[str] | None = None,
        *,
        impl: str | None = None,
        **options: Unpack[ClientKeywords],
    ) -> None:
        given = os.environ.get("NAMESRV_ADDR", "") if name_servers is None else name_servers
        # Of the id there is one: whoever comes out of a pickle makes its own.
        self._recipe = (given, impl, {name: value for name, value in options.items() if name != "client_id"})
        servers, all_options = merged(given, options)
        chosen = Options.of(all_options)
        namespace = _impl.default if impl is None else _impl.select(impl)
        self._driver: AsyncDriver = AsyncioDriver("mqclient-rocketmq", send_now=namespace.remoting.send_now)
        with self._driver.enter():
            self._engine = ClientEngine(
                self._driver,
                namespace,
                servers,
                chosen,
                tls=None if chosen.tls is None else encrypted(chosen.tls),
                origin="name server" if name_servers is not None else "name server by NAMESRV_ADDR",
                blocking=False,  # unasync: drop
            )

    def _make(self, name_servers: str | Sequence[str] | None, impl: str | None, options: dict[str, Any]) -> None:
        self.__init__(name_servers, impl=impl, **options)  # type: ignore[misc]

    @property
    def client_id(self) -> str:
        """Who brokers think we are."""
        return self._engine.client_id

    def producer(self, group: str, **options: Unpack[ProducerKeywords]) -> Opening[Producer]:
        """A producer of this group; options: see `mqclient.rocketmq.remoting.producer_options.ProducerOptions`."""
        return Opening(self._open_producer(group, ProducerOptions.of(options)))

    def transactional_producer(
        self, group: str, *, check: Check, check_threads: int = 4, **options: Unpack[ProducerKeywords]
    ) -> Opening[TransactionalProducer]:
        """A producer whose messages are delivered if a local transaction commits.

        `check(message)` tells brokers what became of a transaction whose end they did not hear of, perhaps of another
        process of the group: a TransactionState. A function or a coroutine function; so many calls at once.
        """
        return Opening(self._open_transactional(group, check, check_threads, ProducerOptions.of(options)))

    def push_consumer(
        self,
        group: str,
        topics: str | Mapping[str, str] | Iterable[str],
        handler: Handler,
        *,
        timeout: float | None = 10.0,
        **options: Unpack[PushKeywords],
    ) -> Opening[PushConsumer]:
        """Calls `handler(messages)`: it returns, they are acknowledged; it raises, they come again later.

        `topics`: a name, names, or names with their expressions: tags, or `Sql(…)`. Options: model="broadcasting",
        start="first", "last" or a time, orderly, threads, batch, max_attempts, rate, …: see `MemberOptions` and
        `PushOptions` of `mqclient.rocketmq.remoting`.
        """
        return Opening(self._open_push(group, topics_of(topics), handler, *push_options(options), timeout))

    def pull_consumer(
        self,
        group: str,
        topics: str | Mapping[str, str] | Iterable[str] = (),
        *,
        assign: Mapping[MessageQueue, Ends] | None = None,
        expression: str = EVERYTHING,
        auto_commit: bool = True,
        timeout: float | None = 10.0,
        **options: Unpack[MemberKeywords],
    ) -> Opening[PullConsumer]:
        """A consumer that is asked: `batches()`, `receive()`, `receive_many()`; options as for `push_consumer`.

        With `assign`, a start offset or (start, end) of each queue instead of topics, it joins no group and commits
        nothing; an offset that is not there is an error. `expression` (tags, or `Sql(…)`) then chooses among the
        messages. When all ends are reached, `batches()` and iteration end, and `ended` is true.
        """
        given: dict[str, Any] = {} if assign is None else {"limits": LIMITS}
        given |= {"retries": False, "consume_type": "CONSUME_ACTIVELY", "pull_batch": 1024, **options}
        wanted = topics_of(topics) if assign is None else {}
        return Opening(self._open_pull(group, wanted, member_options(given), auto_commit, assign, expression, timeout))

    def pop_consumer(
        self, group: str, topic: str, *, timeout: float | None = 10.0, **options: Unpack[PopKeywords]
    ) -> Opening[PopConsumer]:
        """A consumer that borrows messages: whoever asks gets the next ones for a while, and acknowledges them.

        Needs 5.x brokers. Options: expression, invisible, batch, start, orderly; see
        `mqclient.rocketmq.remoting.pop.PopOptions`.
        """
        return Opening(self._open_pop(group, topic, pop_options(options), timeout))

    def admin(self) -> Opening[Admin]:
        """What operators ask for."""
        return Opening(self._open_admin())

    async def ping(self, timeout: float | None = 3.0) -> None:
        """Ask a name server something; the error says what is wrong."""
        with self._driver.enter():
            slot = run_steps(AdminEngine(self._engine).topics_steps())
        await self._driver.wait(slot, self._driver.deadline(timeout))

    def ready(self) -> bool:
        """For probes; nobody is asked. There is a connection, and consumers can pull every queue that they have.

        A client that did nothing yet has no connection: `ping()` makes one.
        """
        with self._driver.enter():
            return self._engine.ready()

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

    async def _open_producer(self, group: str, options: ProducerOptions) -> Producer:
        with self._driver.enter():
            engine = ProducerEngine(self._engine, group, options)
        return Producer(self._driver, engine, (type(self), self._recipe, group, options))

    async def _open_transactional(
        self, group: str, check: Check, threads: int, options: ProducerOptions
    ) -> TransactionalProducer:
        with self._driver.enter():
            engine = TransactionEngine.of(self._engine, group, options, check, threads)
        return TransactionalProducer(self._driver, engine)

    async def _open_push(
        self,
        group: str,
        topics: Mapping[str, str],
        handler: Handler,
        options: MemberOptions,
        push: PushOptions,
        timeout: float | None,
    ) -> PushConsumer:
        with self._driver.enter():
            engine = PushEngine(self._engine, group, topics, handler, options, push)
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
        expression: str,
        timeout: float | None,
    ) -> PullConsumer:
        with self._driver.enter():
            engine = PullEngine(self._engine, group, topics, options, auto_commit, assign, expression)
            slot = engine.start()
        await self._driver.wait(slot, self._driver.deadline(timeout))
        return PullConsumer(self._driver, engine)

    async def _open_pop(self, group: str, topic: str, options: PopOptions, timeout: float | None) -> PopConsumer:
        with self._driver.enter():
            engine = PopEngine(self._engine, group, topic, options)
            slot = engine.start()
        await self._driver.wait(slot, self._driver.deadline(timeout))
        return PopConsumer(self._driver, engine)

    async def _open_admin(self) -> Admin:
        with self._driver.enter():
            self._engine.check_open()
        return Admin(self._driver, AdminEngine(self._engine))

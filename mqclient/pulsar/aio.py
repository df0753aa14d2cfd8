"""The asyncio face of the Pulsar client.

async with mqclient.pulsar.aio.Client("pulsar://127.0.0.1:6650") as client:
    async with client.producer("orders") as producer:
        message_id = await producer.send(b"...", key="42")
    async with client.consumer("orders", "billing", type="shared") as consumer:
        async for message in consumer:
            await consumer.ack(message)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mqclient import _impl
from mqclient.config import TLS
from mqclient.core.driver import AsyncDriver
from mqclient.io.aio import AsyncioDriver
from mqclient.io.opening import Opening
from mqclient.io.pickled import Lazily
from mqclient.io.tls import encrypted
from mqclient.io.web import Web
from mqclient.pulsar import opening, producing, subscribing
from mqclient.pulsar.aio_consumer import Consumer, Reader
from mqclient.pulsar.aio_producer import Producer
from mqclient.pulsar.aio_table import TableView
from mqclient.pulsar.aio_transaction import Transaction
from mqclient.pulsar.auth import Authentication
from mqclient.pulsar.client import ClientEngine
from mqclient.pulsar.failover import Failover
from mqclient.pulsar.names import service_url
from mqclient.pulsar.table import open_table
from mqclient.pulsar.transactions import begin
from mqclient.pulsar.typed import T

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from mqclient._native.pulsar import MessageId
    from mqclient.pulsar.keywords import ConsumerKeywords, ProducerKeywords, ReaderKeywords
    from mqclient.pulsar.schema.base import Schema
    from mqclient.pulsar.subscribing import Topics

__all__ = ["Client", "Consumer", "Producer", "Reader", "TableView", "Transaction"]


class Client(Lazily):
    """One client of one cluster. Producers and consumers share its connections and are closed with it.

    `url`: `pulsar://host:port`, also with several hosts; `pulsar+ssl://`; `http(s)://` where brokers are looked up over
    HTTP; or a `Failover`; without it PULSAR_SERVICE_URL of the environment. Times are seconds. `tls`: of pulsar+ssl://
    and https:// URLs; the other side is checked unless it says not to. `memory_limit`: bytes of bodies that producers
    may have in flight. `listener`: which of the brokers' addresses is wanted, where they have several.
    `connections_per_broker`: so many are shared by producers and consumers, each in turn. `impl`: "native" or "pure",
    by default what MQCLIENT_IMPL asks for. A pickled client is, elsewhere, one with connections of its own, made when
    it is used.
    """

    def __init__(
        self,
        url: str | Failover | None = None,
        *,
        auth: Authentication | None = None,
        tls: TLS | None = None,
        operation_timeout: float = 30.0,
        connect_timeout: float = 10.0,
        keep_alive: float = 30.0,
        memory_limit: int = 64 << 20,
        listener: str | None = None,
        connections_per_broker: int = 1,
        impl: str | None = None,
    ) -> None:
        place: str | Failover = service_url(url)
        self._recipe = (
            place,
            {
                "auth": auth,
                "tls": tls,
                "operation_timeout": operation_timeout,
                "connect_timeout": connect_timeout,
                "keep_alive": keep_alive,
                "memory_limit": memory_limit,
                "listener": listener,
                "connections_per_broker": connections_per_broker,
                "impl": impl,
            },
        )
        namespace = _impl.default if impl is None else _impl.select(impl)
        first = place.primary if isinstance(place, Failover) else place
        sealed = encrypted(tls or TLS()) if first.startswith(("pulsar+ssl://", "https://")) else None
        self._driver: AsyncDriver = AsyncioDriver("mqclient-pulsar", send_now=namespace.pulsar.send_now)
        self._engine = ClientEngine(
            self._driver,
            namespace,
            place,
            auth=auth,
            tls=tls if sealed is None else sealed,
            web=Web(None if sealed is None else sealed.context, connect_timeout) if first.startswith("http") else None,
            blocking=False,  # unasync: drop
            operation_timeout=operation_timeout,
            connect_timeout=connect_timeout,
            keep_alive=keep_alive,
            memory_limit=memory_limit,
            listener=listener,
            connections_per_broker=connections_per_broker,
            seal=encrypted,
        )
        with self._driver.enter():
            self._driver.attach(self._engine)

    def _make(self, url: str | Failover, options: dict[str, Any]) -> None:
        self.__init__(url, **options)  # type: ignore[misc]

    def producer(
        self,
        topic: str,
        *,
        schema: Schema[T] | None = None,
        timeout: float | None = None,
        **options: Unpack[ProducerKeywords],
    ) -> Opening[Producer[T]]:
        """A producer of one topic; options: see `mqclient.pulsar.options.ProducerOptions`."""
        return Opening(self._open_producer(topic, {"schema": schema, **options}, timeout))

    def consumer(
        self,
        topic: Topics,
        subscription: str,
        *,
        schema: Schema[T] | None = None,
        timeout: float | None = None,
        **options: Unpack[ConsumerKeywords],
    ) -> Opening[Consumer[T]]:
        """A consumer of one subscription to a topic, partitioned or not, to several, or to all that match a
        `re.compile("tenant/namespace/orders-.*")`.

        Options: see `mqclient.pulsar.consumer_options.ConsumerOptions`.
        """
        return Opening(self._open_consumer(topic, subscription, {"schema": schema, **options}, timeout))

    def reader(
        self,
        topic: str | Sequence[str],
        *,
        start: MessageId | str,
        schema: Schema[T] | None = None,
        timeout: float | None = None,
        **options: Unpack[ReaderKeywords],
    ) -> Opening[Reader[T]]:
        """Read from a position on, without a subscription that stays: "earliest", "latest" or, of one topic without
        partitions, a message id."""
        return Opening(self._open_reader(topic, start, {"schema": schema, **options}, timeout))

    def table_view(
        self,
        topic: str | Sequence[str],
        *,
        schema: Schema[T] | None = None,
        timeout: float | None = None,
        **options: Unpack[ReaderKeywords],
    ) -> Opening[TableView[T]]:
        """Of each key of a topic what was said last; it is complete when it opens, and follows what comes."""
        return Opening(self._open_table(topic, {"schema": schema, **options}, timeout))

    def transaction(self, *, ttl: float = 60.0, timeout: float | None = None) -> Opening[Transaction]:
        """What is sent and acknowledged with `txn=` it takes effect as a whole when it is left, or not at all.

        It is aborted when an error leaves it, and by the broker after `ttl` seconds.
        """
        return Opening(self._begin(ttl, timeout))

    async def partitions(self, topic: str, timeout: float | None = None) -> list[str]:
        """The names to open: the topic's partitions, or itself if it has none."""
        with self._driver.enter():
            slot = opening.partitions(self._engine, topic, self._driver.deadline(timeout))
        return await self._driver.wait(slot)

    async def topics(self, pattern: str, timeout: float | None = None) -> list[str]:
        """The persistent topics that match "orders-.*", or "tenant/namespace/orders-.*"; partitions count as one."""
        with self._driver.enter():
            slot = opening.topics(self._engine, pattern, self._driver.deadline(timeout))
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

    def ready(self) -> bool:
        """For probes; nobody is asked. There is a connection, and every producer and consumer is open on one.

        A client that did nothing yet has no connection: `ping()` makes one.
        """
        with self._driver.enter():
            return self._engine.ready()

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

    async def _open_producer(self, topic: str, options: Mapping[str, Any], timeout: float | None) -> Producer[Any]:
        deadline = self._driver.deadline(timeout)
        with self._driver.enter():
            slot = producing.open_producer(self._engine, topic, options, deadline)
        return Producer(self._driver, await self._driver.wait(slot))

    async def _open_consumer(
        self, topic: Topics, subscription: str, options: Mapping[str, Any], timeout: float | None
    ) -> Consumer[Any]:
        deadline = self._driver.deadline(timeout)
        with self._driver.enter():
            slot = subscribing.open_consumer(self._engine, topic, subscription, options, deadline)
        return Consumer(self._driver, await self._driver.wait(slot))

    async def _begin(self, ttl: float, timeout: float | None) -> Transaction:
        with self._driver.enter():
            slot = begin(self._engine, ttl, self._driver.deadline(timeout))
        return Transaction(self._driver, await self._driver.wait(slot))

    async def _open_table(
        self, topic: str | Sequence[str], options: Mapping[str, Any], timeout: float | None
    ) -> TableView[Any]:
        deadline = self._driver.deadline(timeout)
        with self._driver.enter():
            slot = open_table(self._engine, topic, options, deadline)
        return TableView(self._driver, await self._driver.wait(slot))

    async def _open_reader(
        self, topic: str | Sequence[str], start: MessageId | str, options: Mapping[str, Any], timeout: float | None
    ) -> Reader[Any]:
        deadline = self._driver.deadline(timeout)
        with self._driver.enter():
            slot = subscribing.open_reader(self._engine, topic, start, options, deadline)
        return Reader(self._driver, await self._driver.wait(slot))

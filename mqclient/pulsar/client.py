"""Owns what a client's producers and consumers share: ids, timers, the pool of connections, lookups, credentials."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from itertools import count, cycle
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from mqclient.core.budget import Budget
from mqclient.core.driver import Address, Driver, Now
from mqclient.core.slot import Slot, completed
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.core.timers import Timers
from mqclient.errors import ClosedError, ConfigError, LinkError, MQError, ProtocolError
from mqclient.pulsar import requests
from mqclient.pulsar.auth import Authentication, NoAuthentication, TlsAuthentication
from mqclient.pulsar.codes import LookupType
from mqclient.pulsar.connection import Connection
from mqclient.pulsar.failover import Failover, Shown, Watch, shown
from mqclient.pulsar.names import ServiceUrl, TopicName
from mqclient.pulsar.web_lookup import Web, WebLookup

if TYPE_CHECKING:
    from mqclient.pulsar.transactions import Coordinators

T = TypeVar("T")

MAX_REDIRECTS = 20


class Member(Protocol):
    """A producer or consumer of the client: closed with it."""

    @property
    def ready(self) -> bool:
        """It is open at its broker, all parts of it."""

    def close_steps(self) -> Steps[None]: ...

    def abandon(self, error: MQError) -> None: ...

    def renew(self) -> None:
        """In a forked child: go on there, if that makes sense."""


def _kind(given: object) -> str:
    return type(given).__name__


def _no_seal(_: Any) -> object:
    raise ConfigError("encrypted connections need somebody who makes them")


class ClientEngine:
    """One client. Everything but the constructor runs inside `driver.enter()`."""

    def __init__(
        self,
        driver: Driver,
        impl: Any,
        url: str | Failover,
        *,
        auth: Authentication | None = None,
        tls: object | None = None,
        web: Web | None = None,
        blocking: bool = True,
        operation_timeout: float = 30.0,
        connect_timeout: float = 10.0,
        keep_alive: float = 30.0,
        memory_limit: int = 64 << 20,
        listener: str | None = None,
        connections_per_broker: int = 1,
        seal: Callable[[Any], object] | None = None,
        random: Random | None = None,
    ) -> None:
        self.driver = driver
        self.impl = impl
        self.url = ServiceUrl.parse(url.primary if isinstance(url, Failover) else url)
        if self.url.encrypted != (tls is not None):
            raise ConfigError(
                f"service URL {self.url.text!r}: encrypted connections have pulsar+ssl:// and TLS options, others not"
            )
        if self.url.web and web is None:
            raise ConfigError(f"service URL {self.url.text!r}: lookups over HTTP need somebody who asks")
        if connections_per_broker < 1:
            raise ConfigError(f"connections_per_broker={connections_per_broker}: it is at least 1")
        if auth is not None and not hasattr(auth, "data"):
            raise ConfigError(f"auth is what pulsar.token(), basic(), mutual_tls() or oauth2() give, no {_kind(auth)}")
        self._home = Shown(auth or NoAuthentication(), tls)
        self._shown = shown(url, self._home, seal or _no_seal)
        if tls is None and any(isinstance(one.auth, TlsAuthentication) for one in (self._home, *self._shown.values())):
            raise ConfigError("mutual_tls() needs a pulsar+ssl:// URL, and tls=TLS(certificate=…, key=…)")
        self._listener = listener
        self.blocking = blocking
        """Whether the driver's `wait` blocks; under asyncio it is awaited."""
        self.operation_timeout = operation_timeout
        self.connect_timeout = connect_timeout
        self.keep_alive = keep_alive
        self.timers = Timers(driver)
        self.budget = Budget(memory_limit)
        """Of what producers took and the broker has not confirmed."""
        self.random = random or Random()
        self.closed = False
        self._pool: dict[tuple[str, int, str | None, int], Connection] = {}
        self._lanes = cycle(range(connections_per_broker))
        self._members: dict[Member, None] = {}
        self._attempts = count()
        self._request_ids = count(1)
        self._producer_ids = count()
        self._consumer_ids = count()
        self._coordinators: Coordinators | None = None
        self._web = WebLookup(self, web) if web is not None and self.url.web else None
        self._watch = Watch(self, url) if isinstance(url, Failover) else None

    def on_timer(self, now: Now) -> None:
        self.timers.fire(now)

    @property
    def coordinators(self) -> Coordinators:
        """Of transactions."""
        if self._coordinators is None:
            from mqclient.pulsar.transactions import Coordinators

            self._coordinators = Coordinators(self)
        return self._coordinators

    def next_request_id(self) -> int:
        return next(self._request_ids)

    def next_producer_id(self) -> int:
        return next(self._producer_ids)

    def next_consumer_id(self) -> int:
        return next(self._consumer_ids)

    def deadline(self) -> float:
        """When an operation that begins now is given up."""
        return self.driver.now.mono + self.operation_timeout

    def join(self, member: Member) -> None:
        if self.closed:
            raise ClosedError("the client is closed")
        self._members[member] = None

    def leave(self, member: Member) -> None:
        self._members.pop(member, None)

    def next_lane(self) -> int:
        """Which of the connections to its broker a producer or consumer uses, wherever that is: each in turn."""
        return next(self._lanes)

    @property
    def auth(self) -> Authentication:
        """What is shown in the present cluster."""
        return self.shown_at(self.url).auth

    @property
    def _tls(self) -> object | None:
        return self.shown_at(self.url).tls

    def shown_at(self, url: ServiceUrl) -> Shown:
        return self._shown.get(url.text, self._home)

    def credentials(self, auth: Authentication | None = None) -> Slot[bytes | None]:
        """What to show now. A supplier may be user code, and slow, so it is asked outside."""
        auth = auth or self.auth
        if isinstance(auth, NoAuthentication | TlsAuthentication):
            return completed(None)
        return self.ask_user(auth.data)

    def ask_user(self, ask: Callable[[], T | Awaitable[T]]) -> Slot[T]:
        """Call the user's code outside of any entry; its answer may be awaited for."""
        slot: Slot[T] = Slot()

        def call(_: Any) -> Any:
            try:
                found = ask()
            except Exception as error:
                return self._answered(slot, None, error)
            return wait(found) if isawaitable(found) else self._answered(slot, found, None)

        async def wait(found: Awaitable[T]) -> None:
            try:
                answer = await found
            except Exception as error:
                self._answered(slot, None, error)
            else:
                self._answered(slot, answer, None)

        self.driver.run_user(call, None)
        return slot

    def _answered(self, slot: Slot[Any], found: Any, error: Exception | None) -> None:
        with self.driver.enter():
            if error is not None:
                slot.fail(error)
            else:
                slot.complete(found)

    # ---- connections and lookups

    def connection_steps(
        self, address: Address, proxy_to: str | None, deadline: float, lane: int = 0
    ) -> Steps[Connection]:
        """The pooled connection, made if need be, when its handshake is done."""
        if self.closed:
            raise ClosedError("the client is closed")
        if self._watch is not None:
            self._watch.start()
        key = (address.host, address.port, proxy_to, lane)
        connection = self._pool.get(key)
        if connection is None or not connection.usable:
            connection = self._pool[key] = Connection(self, address, proxy_to, self.auth)
            connection.connect(min(deadline, self.driver.now.mono + self.connect_timeout))
        ready = connection.when_ready()
        if not ready.done:
            # A, who has 1 s, may have joined the connection that B began and has 10 s for.
            yield self.timers.within(ready, deadline - self.driver.now.mono)
            if not ready.done:
                raise connection.late()
        yield ready
        return connection

    def lookup_steps(
        self, topic: TopicName, deadline: float, cluster: ServiceUrl | None = None, lane: int = 0
    ) -> Steps[Connection]:
        """The connection to the broker that serves the topic. `cluster`: to which the topic went."""
        if self._web is not None and cluster is None:
            return (yield from self._found_steps(topic, deadline, lane))
        address, proxy_to, authoritative = self._service_address(cluster), None, False
        for _ in range(MAX_REDIRECTS):
            connection = yield run_steps(self.connection_steps(address, proxy_to, deadline))
            reply = yield connection.request(requests.lookup(str(topic), authoritative, self._listener), deadline)
            proxied = reply.proxy_through_service_url
            served = self.broker_address(reply.brokerServiceUrlTls if self._tls else reply.brokerServiceUrl)
            there, through = (address, _host_port(served)) if proxied else (served, None)
            if through == _host_port(address):
                through = None
            if reply.response == LookupType.Connect:
                found: Connection = yield run_steps(self.connection_steps(there, through, deadline, lane))
                return found
            address, proxy_to, authoritative = there, through, reply.authoritative
        raise LinkError(f"more than {MAX_REDIRECTS} redirects in the lookup of {topic}")

    def connect_to_steps(
        self, broker_url: str, deadline: float, lane: int = 0, proxy: Address | None = None
    ) -> Steps[Connection]:
        """Straight to the broker that the last one named; `proxy`: by the one that led to the last one."""
        address = self.broker_address(broker_url)
        there, through = (address, None) if proxy is None else (proxy, _host_port(address))
        found: Connection = yield run_steps(self.connection_steps(there, through, deadline, lane))
        return found

    def partitions_steps(self, topic: TopicName, deadline: float) -> Steps[int]:
        """How many partitions the topic has; 0: it is not partitioned."""
        if topic.partition >= 0:
            return 0
        if self._web is not None:
            return (yield from self._web.partitions_steps(topic, deadline))
        connection = yield run_steps(self.service_steps(deadline))
        reply = yield connection.request(requests.partitions(str(topic)), deadline)
        return int(reply.partitions)

    def service_steps(self, deadline: float, namespace: str = "public/default") -> Steps[Connection]:
        """A connection for questions that any broker answers; over HTTP one is found by a topic of the namespace, which
        need not be there."""
        if self._web is None:
            return self.connection_steps(self._service_address(), None, deadline)
        return self._found_steps(TopicName.parse(f"{namespace}/any"), deadline)

    def _found_steps(self, topic: TopicName, deadline: float, lane: int = 0) -> Steps[Connection]:
        assert self._web is not None
        address = yield from self._web.broker_steps(topic, self._listener, deadline)
        found: Connection = yield run_steps(self.connection_steps(address, None, deadline, lane))
        return found

    def on_connection_lost(self, connection: Connection) -> None:
        for key, pooled in list(self._pool.items()):
            if pooled is connection:
                del self._pool[key]

    def broker_address(self, url: str) -> Address:
        try:
            found = ServiceUrl.parse(url)
        except ConfigError as error:
            raise ProtocolError(f"the lookup named no usable broker: {error}") from error
        if found.web:
            raise ProtocolError(f"the lookup named no usable broker: {url} is no address of the binary protocol")
        return found.address(0, self._tls)._replace(source=f"by lookup at {self.url.text}")

    def cluster(self, url: str) -> ServiceUrl:
        """Another cluster, as a broker names it, of the same kind of connection."""
        try:
            found = ServiceUrl.parse(url)
        except ConfigError as error:
            raise ProtocolError(f"the broker named no usable cluster: {error}") from error
        if found.web or found.encrypted != (self._tls is not None):
            raise ProtocolError(f"the broker named no usable cluster: {url}")
        return found

    def next_base(self) -> str:
        """Of the web service: each host in turn."""
        return self.url.base(next(self._attempts))

    def _service_address(self, cluster: ServiceUrl | None = None) -> Address:
        return (cluster or self.url).address(next(self._attempts), self._tls)

    # ---- moving between clusters

    def probe_steps(self, url: ServiceUrl) -> Steps[None]:
        """Whether somebody answers there; with several hosts one of them is enough."""
        failure: MQError | None = None
        for attempt in range(len(url.hosts)):
            try:
                yield run_steps(self._probe_one_steps(url, attempt))
                return
            except LinkError as error:
                failure = error
        assert failure is not None
        raise failure

    def _probe_one_steps(self, url: ServiceUrl, attempt: int) -> Steps[None]:
        if url.web:
            assert self._web is not None
            yield from self._web.probe_steps(url.base(attempt), self.shown_at(url).auth)
            return
        auth, tls = self.shown_at(url)
        connection = Connection(self, url.address(attempt, tls), None, auth)
        connection.connect(self.driver.now.mono + self.connect_timeout)
        try:
            yield connection.when_ready()
        finally:
            connection.close()

    def move(self, url: ServiceUrl) -> None:
        """All that is open here is opened there."""
        self.url = url
        cause = LinkError(f"the client moves to {url.text}")
        for connection in list(self._pool.values()):
            connection.link.abort(cause)
        self._pool.clear()

    # ---- life

    def ping_steps(self, deadline: float) -> Steps[str]:
        """Connect to the service and say which software answers."""
        connection = yield run_steps(self.service_steps(deadline))
        return str(connection.server)

    def close_steps(self) -> Steps[None]:
        """Members first, in the order in which they came, so that what they still have to say is said."""
        if self.closed:
            return
        members = list(self._members)
        yield gather([run_steps(member.close_steps()) for member in members])
        self.closed = True
        self.budget.close(ClosedError("the client is closed"))
        for connection in list(self._pool.values()):
            connection.close()
        self._pool.clear()
        self.timers.clear()

    def on_exit(self) -> Slot[Any]:
        """The interpreter ends and nobody closed us: send what gathers, done when all of it has its outcome."""
        from mqclient.pulsar import leaving

        return leaving.say_all(self._members)

    def unsettled(self) -> dict[str, int]:
        """How many messages have no outcome, by whose they are."""
        from mqclient.pulsar import leaving

        return leaving.unsettled(self._members)

    def on_fork(self) -> None:
        """In a forked child: what was open is the parent's. The client itself goes on, with connections of its own."""
        error = ClosedError("it belongs to the parent process: make another one from the client in this process")
        members = list(self._members)
        for member in members:
            member.abandon(error)
        for connection in list(self._pool.values()):
            connection.link.handle = None  # the driver has closed our copy of it, without a word to the broker
            connection.close()
        self._pool.clear()
        self.timers.clear()
        if self._watch is not None:
            self._watch.restart()
        # Whoever waited for room was a thread of the parent's: in here nobody gives it back.
        self.budget.close(error)
        self.budget = Budget(self.budget.max_bytes)
        for member in members:
            member.renew()

    def ready(self) -> bool:
        """For probes; nobody is asked. There is a connection, and every producer and consumer is open on one."""
        connected = any(connection.ready for connection in self._pool.values())
        return connected and not self.closed and all(member.ready for member in self._members)

    def diagnose(self) -> dict[str, Any]:
        """Connections as they are now, for people."""
        return {
            "url": self.url.text,
            "auth": self.auth.method,
            "connections": [
                {
                    "address": str(connection.link.address),
                    "state": "ready" if connection.ready else connection.link.state,
                    "server": connection.server,
                    "in_flight": len(connection.link.inflight),
                    "producers": len(connection.producers),
                    "consumers": len(connection.consumers),
                    "strays": connection.strays,
                }
                for connection in self._pool.values()
            ],
        }


def _host_port(address: Address) -> str:
    return f"{address.host}:{address.port}"

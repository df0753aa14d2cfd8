"""Owns the embedded broker's life: one thread with one loop, the doors plugged into it, their addresses."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from asyncio import Server
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from random import Random
from types import TracebackType
from typing import Any, Final, Protocol

from mqclient import _impl
from mqclient.broker.control import Clock, Control
from mqclient.broker.data import Data
from mqclient.broker.log_retention import LIMIT, Retention, Trim
from mqclient.broker.overview import TopicRow
from mqclient.broker.store import Log
from mqclient.broker.trickle import Shut
from mqclient.broker.watched import Watched
from mqclient.errors import ConfigError

LOG = logging.getLogger("mqclient.broker")

DOORS: Final = {
    "rocketmq": "mqclient.broker.remoting.door",
    "pulsar": "mqclient.broker.pulsar.door",
}
"""Protocol to the module whose `make(house)` gives its front door; imported when a broker opens it."""


@dataclass(slots=True)
class House:
    """What the doors of one embedded broker share."""

    impl: Any
    """The namespace of the six native modules or of their twins."""
    clock: Clock
    control: Control
    random: Random
    brokers: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    data: Data | None = None
    """Where it is all kept; None: in memory only."""
    ports: Watched[str, int] = field(default_factory=Watched)
    """Where each address was last: there it is again, if that is free."""

    async def listen(self, name: str, make: Callable[[], asyncio.BaseProtocol], host: str, tls: Any = None) -> Server:
        """Open the port of this address: the one that the settings ask for, else its last one, else a free one."""
        loop = asyncio.get_running_loop()
        asked = int(self.settings.get(f"{name.replace('-', '_')}_port", 0))
        known = 0 if asked else self.ports.get(name, 0)

        def visitor() -> asyncio.BaseProtocol:
            return Shut() if self.control.refusing else make()

        try:
            server = await loop.create_server(visitor, host, asked or known, ssl=tls)
        except OSError:
            if not known:
                raise
            server = await loop.create_server(visitor, host, 0, ssl=tls)
        self.ports[name] = server.sockets[0].getsockname()[1]
        return server

    @property
    def unsaved(self) -> bool:
        """Whether something is in no file yet that has to be: nobody may be told of it before `save`."""
        return self.data is not None and self.data.dirty

    def save(self) -> bool:
        """Write it; False if that failed: then nobody may be told."""
        try:
            if self.data is not None:
                self.data.commit()
        except OSError as error:
            LOG.error(
                "%s: could not be written, clients are cut off: %s",
                self.data.folder if self.data is not None else "",
                error,
            )
            return False
        return True


class Door(Protocol):
    """One protocol's entrance: it listens on ports of its own and serves what comes."""

    def addresses(self) -> dict[str, str]:
        """What users connect to, by name: `name_server`, `pulsar_url`."""

    def overview(self) -> Iterable[TopicRow]:
        """What goes on, for people to look at."""

    def logs(self) -> Iterator[tuple[Log, Trim]]:
        """Everything that grows with messages, and how each is trimmed."""

    async def start(self, host: str) -> None: ...

    async def stop(self) -> None: ...


class EmbeddedBroker:
    """RocketMQ (name server and brokers) and Pulsar in this process, on free ports of the loopback.

    >>> from mqclient.broker import EmbeddedBroker
    >>> with EmbeddedBroker(doors=["rocketmq"], impl="pure") as broker:
    ...     host, _, port = broker.name_server.partition(":")
    >>> host
    '127.0.0.1'

    `brokers`: how many RocketMQ brokers (`broker-a`, `broker-b` …) stand behind the one name server. `impl`: "native"
    or "pure", by default what the client uses. `seed`: everything that is left to chance. `settings`: broker options in
    the protocols' own words, such as `useServerSideResetOffset="false"`; among them:

    - `accounts`: a list of dicts as in plain_acl.yml (`accessKey`, `secretKey`, `admin`, `topicPerms` …), asked for by
      `aclEnable=True` as 4.9 does it or `authenticationEnabled=True` as 5.x does; of Pulsar `pulsar_token` or
      `tokenSecretKey`, `pulsar_basic={user: password}`, `pulsar_tls_roles=True`, `anonymousUserRole`.
    - `tlsCertificateFilePath`, `tlsKeyFilePath` (PEM): TLS on both protocols, on Pulsar at `pulsar_tls_url`;
      `tlsTrustCertsFilePath` and `tlsRequireTrustedClientCertOnConnect` for clients with certificates;
      `tlsServerMode="enforcing"` for RocketMQ connections without TLS to be refused.
    - `address_server=True`: a page that lists the name server, at `addresses()["address_server"]`.
    - `serializeType="ROCKETMQ"`: RocketMQ headers in the binary form, not as JSON.
    - `mqcloud_patch=True`: the two changes of MQCloud's brokers to resets; `server_side_reset=False`: resets as of 4.x.

    `data`: a folder that keeps logs, offsets, topics and cursors: what was acknowledged is there at the next start,
    however this process ended. With `fsync` it also outlives the machine. Without a folder all is in memory.
    An address is where it was in the run before, or where `name_server_port`, `broker_a_port` …, `pulsar_port` and
    `pulsar_rest_port` ask for it, else free. `retention_bytes` and `retention_seconds`: how much is kept of messages,
    and how long; the oldest go first.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        doors: Iterable[str] | None = None,
        brokers: int = 1,
        impl: Any = None,
        seed: int = 0,
        data: str | os.PathLike[str] | None = None,
        fsync: bool = False,
        retention_bytes: int | None = None,
        retention_seconds: float | None = None,
        **settings: Any,
    ) -> None:
        names = list(DOORS) if doors is None else list(doors)
        for name in names:
            if name not in DOORS:
                raise ConfigError(f"door {name!r} is not known: the doors are {', '.join(DOORS)}")
        if fsync and data is None:
            raise ConfigError("fsync=True needs data=, the folder that is to be synced")
        if brokers < 1:
            raise ConfigError(f"brokers={brokers}: at least one is needed")
        clock = Clock()
        self.control: Control = Control(clock, seed)
        namespace = _impl.select(impl) if isinstance(impl, str) else impl or _impl.default
        self.house = House(namespace, clock, self.control, Random(seed), brokers, settings)
        if data is not None:
            self.house.data = Data(os.fspath(data), namespace.digest, fsync=fsync)
            self.house.data.shelf("addresses")
            self.house.data.keep("addresses", "ports", self.house.ports)
        self._host = host
        self._doors: list[Door] = [import_module(DOORS[name]).make(self.house) for name in names]
        limit = LIMIT if retention_bytes is None else retention_bytes
        self.retention = Retention(clock, self._logs, limit, retention_seconds)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def name_server(self) -> str:
        """The RocketMQ name server, `host:port`."""
        return self._address("name_server")

    @property
    def pulsar_url(self) -> str:
        """The Pulsar broker, `pulsar://host:port`."""
        return self._address("pulsar_url")

    @property
    def pulsar_rest(self) -> str:
        """The Pulsar broker's administration, `http://host:port`."""
        return self._address("pulsar_rest")

    @property
    def pulsar_tls_url(self) -> str:
        """The Pulsar broker by TLS, `pulsar+ssl://host:port`; there if `tlsCertificateFilePath` was given."""
        return self._address("pulsar_tls_url")

    def addresses(self) -> dict[str, str]:
        """Everything that is listened on, by name."""
        return {name: address for door in self._doors for name, address in door.addresses().items()}

    def overview(self) -> list[TopicRow]:
        """What goes on: topics and their groups, with counts and permits, as of now."""
        found: list[TopicRow] = self.control.call(lambda: [row for door in self._doors for row in door.overview()])
        return found

    def start(self) -> EmbeddedBroker:
        """Listen; returns when every port is open."""
        if self._thread is not None:
            return self
        if self.house.data is not None:
            self.house.data.open()
        ready = threading.Event()
        failure: list[BaseException] = []
        self._thread = threading.Thread(
            target=self._run, args=(ready.set, failure.append), name="mqclient-broker", daemon=True
        )
        self._thread.start()
        ready.wait()
        if failure:
            self._thread.join()
            self._thread = None
            self._close_data()
            raise failure[0]
        return self

    def stop(self) -> None:
        """Close every connection and port; returns when the thread has ended. May be called twice."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        self._thread = None
        self.control.resume()
        asyncio.run_coroutine_threadsafe(self._stop_doors(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        self._loop = None
        self._close_data()

    def __enter__(self) -> EmbeddedBroker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _logs(self) -> Iterator[tuple[Log, Trim]]:
        for door in self._doors:
            for log, trim in door.logs():
                yield log, partial(self._trim, log, trim)

    def _trim(self, log: Log, trim: Trim, first: int) -> None:
        trim(first)
        if self.house.data is not None:
            self.house.data.trimmed(log)

    def _close_data(self) -> None:
        if self.house.data is not None:
            self.house.data.close()

    def _run(self, ready: Callable[[], None], fail: Callable[[BaseException], None]) -> None:
        loop = asyncio.new_event_loop()
        self.house.clock.attach(loop)
        if self.house.data is not None:
            self.house.data.attach(loop)
        try:
            loop.run_until_complete(self._start_doors())
        except BaseException as error:
            fail(error)
            loop.run_until_complete(self._stop_doors())
            loop.close()
            ready()
            return
        self._loop = loop
        ready()
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    async def _start_doors(self) -> None:
        for door in self._doors:
            await door.start(self._host)
        self.retention.start()

    async def _stop_doors(self) -> None:
        for door in self._doors:
            await door.stop()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _address(self, name: str) -> str:
        found = self.addresses().get(name)
        if found is None:
            raise ConfigError(f"the broker has no {name}: its doors are {', '.join(self.addresses()) or 'not open'}")
        return found

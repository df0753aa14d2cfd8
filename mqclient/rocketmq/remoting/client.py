"""Owns what the producers and consumers of one client share: links, the name servers, routes, the beats."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import count
from random import Random
from typing import Any, Final, Protocol, TypeVar

from mqclient.config import TLS
from mqclient.core.driver import Address, Driver, Now
from mqclient.core.inflight import Waiting
from mqclient.core.link import Buffer, Link
from mqclient.core.slot import Slot
from mqclient.core.steps import Steps, gather, run_steps
from mqclient.core.timers import Timers
from mqclient.errors import ClosedError, ConfigError, DeadlineError, LinkError, MQError
from mqclient.rocketmq.codes import BrokerError, Request, Response
from mqclient.rocketmq.remoting.address_server import EVERY, FIRST, AddressServer
from mqclient.rocketmq.remoting.advice import hint
from mqclient.rocketmq.remoting.asked import Asked
from mqclient.rocketmq.remoting.bodies import read_body
from mqclient.rocketmq.remoting.cache import UNLIMITED, Cache
from mqclient.rocketmq.remoting.dressing import Dresser
from mqclient.rocketmq.remoting.heartbeat import Heartbeats
from mqclient.rocketmq.remoting.identity import Identity
from mqclient.rocketmq.remoting.nameserver import NameServers, private, split_address, vip
from mqclient.rocketmq.remoting.namespaces import encoded, names_of
from mqclient.rocketmq.remoting.process_queue import Limits
from mqclient.rocketmq.remoting.replies import Replies
from mqclient.rocketmq.remoting.routes import Routes
from mqclient.rocketmq.signing import ACL

LOG = logging.getLogger("mqclient.remoting")

ONEWAY: Final = 2
RESPONSE: Final = 1
OPENED: Final = 64
"""Connections to one address whose time is remembered."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """What a client is made with; times in seconds, the defaults are the protocol's."""

    client_id: str | None = None
    connect_timeout: float = 3.0
    request_timeout: float = 3.0
    route_interval: float = 30.0
    heartbeat_interval: float = 30.0
    rebalance_interval: float = 20.0
    persist_interval: float = 5.0
    offset_dir: str | None = None
    instance: str | None = None
    """The slot of `offset_dir` that this process uses; None: the lowest that is free."""
    allow_relayed_reset: bool = True
    """Whether an mqclient of an operator may move our broadcasting offsets through the broker (request 307)."""
    cache_limits: Limits = UNLIMITED
    """What all consumers of the client may hold together before they pull no more."""
    auth: ACL | None = None
    """Credentials, as `rocketmq.acl(access_key, secret_key, token=None)` makes them: every request is signed."""
    tls: TLS | None = None
    """Connections are encrypted, and the other side is checked as this says."""
    namespace: str | None = None
    """Topics and groups are those of this namespace: brokers know them as `namespace%name`, we by their short names."""
    namespace_v2: str | None = None
    """Told with every request, for proxies and clouds that keep namespaces apart themselves."""
    address_server: str | None = None
    """http://host:port/path of a page that lists the name servers; read again every two minutes."""
    unit_name: str | None = None
    """A part of the client id, and of the address server's page."""
    vip_channel: bool = False
    """Whether sends go to the brokers' second port, two below the first, as old Java clients did by default."""
    rewrite_address: Callable[[str], str] | None = None
    """Gives for each broker's `host:port` that a name server tells the one to be used; called within the engine."""
    seed: int | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Options:
        check_options(options, cls.__slots__)
        return cls(**options)


def check_options(options: Mapping[str, Any], known: Iterable[str]) -> None:
    """ConfigError for an option that is not known, with the nearest one that is."""
    names = list(known)
    for name in options:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f": did you mean {near[0]!r}?" if near else f": there are {', '.join(sorted(names))}"
            raise ConfigError(f"option {name!r} is not known{hint}")


class Participant(Protocol):
    """A producer or consumer of the client, as heartbeats and brokers' requests see it."""

    @property
    def group(self) -> str: ...

    @property
    def closed(self) -> bool: ...

    def on_route(self, topic: str) -> None: ...

    def close_steps(self) -> Steps[None]: ...


class ClientEngine:
    """Entered by faces, links and timers; everything else of the remoting side hangs on it."""

    def __init__(
        self,
        driver: Driver,
        impl: Any,
        name_servers: str | Sequence[str],
        options: Options,
        *,
        blocking: bool = True,
        tls: object | None = None,
        origin: str = "name server",
    ) -> None:
        self.blocking = blocking
        self._origin = origin
        self.driver = driver
        self.impl = impl
        self.options = options
        self.timers = Timers(driver)
        self.random = Random(options.seed)
        self._tls = tls
        self.names = names_of(options.namespace, name_servers)
        self._dresser = Dresser(impl.remoting, options.auth, self.names, options.namespace_v2)
        self.dresses = self._dresser.needed
        """Whether requests are changed before they go out: signed, for one."""
        self.name_servers = NameServers(name_servers, self.random, wanted=options.address_server is None)
        self._address_server: AddressServer | None = None
        if options.address_server is not None:
            self._address_server = AddressServer(self, options.address_server, options.unit_name)
        self._looking: Slot[None] | None = None
        self.routes = Routes(self, self.random)
        self.routes.on_change.append(self._on_route)
        self.producers: dict[str, Any] = {}
        self.consumers: dict[str, Any] = {}
        self.unjoined: list[Any] = []
        """Consumers of queues assigned by hand: brokers hear nothing of them."""
        self.cache = Cache(options.cache_limits)
        self.heartbeats = Heartbeats(self)
        self.replies = Replies(self)
        self.asked = Asked(self)
        self._identify(options.client_id)
        self.closed = False
        self.ever_local: set[str] = set()
        """Every address of our own that a connection of this client ever had."""
        self._opened: dict[str, deque[float]] = {}
        """By address: when connections to it were made, the last ones."""
        self.links: dict[str, Link] = {}
        self.opaques = count(1)
        driver.attach(self)
        self._arm()

    def _identify(self, given: str | None) -> None:
        """Who we are, and the ids of our messages."""
        self.identity = Identity(self.driver.now.wall_ms, given, self.options.unit_name)
        keys = self.impl.remoting.UniqueKeys
        self.keys = keys(bytes((127, 0, 0, 1)), self.identity.pid & 0xFFFF, self.identity.salt)

    def _arm(self) -> None:
        self.timers.after(self.options.route_interval, self._refresh_routes)
        self.timers.after(self.options.heartbeat_interval, self._beat)
        if self._address_server is not None:
            self.timers.after(FIRST, self._look_again)

    @property
    def client_id(self) -> str:
        return self.identity.client_id

    def local_address(self, address: str) -> str:
        """Our own side of the connection to an address, as the broker there sees it if nothing rewrites it."""
        link = self.links.get(address)
        return link.local if link is not None else ""

    def opened_lately(self, address: str, seconds: float) -> int:
        """How many connections to this address were made within so many seconds, and the one there is."""
        since = self.driver.now.mono - seconds
        return max(1, sum(when >= since for when in self._opened.get(address, ())))

    def ready(self) -> bool:
        """Whether there is a connection, and every consumer can work with what it has."""
        if self.closed or not any(link.state == "open" for link in self.links.values()):
            return False
        return all(member.ready() for member in self.consumers.values())

    # ---- requests

    def check_open(self) -> None:
        if self.closed:
            raise ClosedError("the client is closed")

    def link(self, address: str) -> Link:
        """The connection to an address, begun if there is none."""
        self.check_open()
        link = self.links.get(address)
        if link is None:
            host, port = split_address(address)
            where = Address(host, port, self._source(address), self._tls)
            link = self.links[address] = Link(self.driver, self.timers, self, where, self.impl.remoting.FrameReader)
        if not link.usable:
            link.connect(self.driver.now.mono + self.options.connect_timeout)
        return link

    def _source(self, address: str) -> str:
        """Where an address is from, for people who look for the reason why nobody answers there."""
        if address in self.name_servers.addresses:
            return self._origin if self._address_server is None else f"from {self._address_server.url}"
        cure = "the broker's brokerIP1, or rewrite_address=, can change it" if private(address) else "of a route"
        return f"told by name server {self.name_servers.current}: {cure}"

    def sending_address(self, name: str) -> str:
        """As `broker_address`, for sends: the VIP channel's if that is wanted."""
        address = self.routes.address(name) or self.broker_address(name)  # which says that there is none
        return vip(address) if self.options.vip_channel else address

    def broker_address(self, name: str) -> str:
        """Where requests to a broker go; a LinkError that asks for a fresh route if no route names it."""
        address = self.routes.address(name)
        if address is None:
            raise LinkError(f"no route names the broker {name}")
        return address

    def opaque(self) -> int:
        return next(self.opaques) & 0x7FFFFFFF

    def ask(
        self,
        address: str,
        code: Request,
        fields: Mapping[str, str],
        body: bytes = b"",
        *,
        timeout: float | None = None,
    ) -> Slot[Any]:
        """Send a request; the slot gets the answer's frame, whatever its code."""
        opaque = self.opaque()
        frame = self.impl.remoting.encode_frame(int(code), opaque, fields=fields, body=body)
        return self.send(address, opaque, frame, code.name, timeout=timeout)

    def send(self, address: str, opaque: int, frame: bytes, request: str, *, timeout: float | None = None) -> Slot[Any]:
        """Send a frame that is encoded already."""
        slot: Slot[Any] = Slot()
        deadline = self.driver.now.mono + (self.options.request_timeout if timeout is None else timeout)
        self.send_for(slot, address, opaque, frame, deadline, request)
        return slot

    def send_for(
        self,
        waiting: Waiting,
        address: str,
        opaque: int,
        frame: bytes,
        deadline: float,
        request: str,
        behind: Buffer | None = None,
    ) -> None:
        """Send a frame that is encoded already; whoever waits for the answer is told. `behind`: the rest of it."""
        if self.dresses:
            frame, behind = self._dresser.dress(frame if behind is None else frame + behind), None
        link = self.links.get(address)
        if link is None or self.closed or (link.state != "open" and not link.usable):
            link = self.link(address)
        link.send(opaque, frame, waiting, deadline, request, behind)

    def write(self, address: str, frame: bytes) -> None:
        """Send a request that nobody answers, encoded already."""
        self.link(address).write(self._dresser.dress(frame) if self.dresses else frame)

    def tell(
        self,
        address: str,
        code: Request,
        fields: Mapping[str, str],
        body: bytes = b"",
        *,
        remark: str | None = None,
    ) -> None:
        """Send a request that nobody answers."""
        encode = self.impl.remoting.encode_frame
        frame = encode(int(code), self.opaque(), flag=ONEWAY, fields=fields, body=body, remark=remark)
        self.write(address, frame)

    def ask_steps(
        self,
        address: str,
        code: Request,
        fields: Mapping[str, str],
        body: bytes = b"",
        *,
        timeout: float | None = None,
    ) -> Steps[Any]:
        """The frame of a success; any other answer is raised."""
        frame = yield self.ask(address, code, fields, body, timeout=timeout)
        if frame.code != Response.SUCCESS:
            raise BrokerError(frame.code, frame.remark or "", remote=address, request=code.name)
        return frame

    def ask_body_steps(self, address: str, code: Request, fields: Mapping[str, str], body: bytes = b"") -> Steps[Any]:
        """The body of a success, read."""
        frame = yield from self.ask_steps(address, code, fields, body)
        return read_body(frame.body)

    def ask_name_server_steps(self, code: Request, fields: Mapping[str, str]) -> Steps[bytes]:
        """The body of a success of any name server; one that cannot be reached is passed over."""
        lost: MQError | None = None
        if not len(self.name_servers):
            yield from self._find_name_servers_steps()
        for _ in range(len(self.name_servers)):
            address = self.name_servers.current
            try:
                frame = yield from self.ask_steps(address, code, fields)
            except (LinkError, DeadlineError) as error:
                lost = error
                self.name_servers.failed(address)
            else:
                body: bytes = frame.body
                return body
        step = hint(lost, encrypted=self._tls is not None)
        raise LinkError(f"no name server of {self.name_servers} answered: {lost}{step}") from lost

    def _find_name_servers_steps(self) -> Steps[None]:
        """Wait for the address server's page; one request for all who wait."""
        if self._looking is None:
            self._looking = run_steps(self._look_steps())
            self._looking.then(self._looked)
        yield self._looking

    def _looked(self, slot: Slot[None]) -> None:
        self._looking = None

    def _look_steps(self) -> Steps[None]:
        assert self._address_server is not None
        found = yield from self._address_server.fetch_steps()
        if self.name_servers.replace(found):
            LOG.info("name servers by %s: %s", self._address_server.url, self.name_servers)

    def _look_again(self, now: Now) -> None:
        """The list may have changed; while the page cannot be had, the last one is used."""
        self.timers.after(EVERY, self._look_again)
        run_steps(self._find_name_servers_steps()).then(self._told_by_address_server)

    @staticmethod
    def _told_by_address_server(slot: Slot[None]) -> None:
        if slot.error is not None:
            LOG.warning("%s", slot.error)

    def outside(self, call: Callable[[], T]) -> Slot[T]:
        """Do what may block, such as writing a file, where it harms nobody; the slot gets what came of it."""
        slot: Slot[T] = Slot()

        def job(_: None) -> None:
            try:
                value = call()
            except Exception as error:
                with self.driver.enter():
                    slot.fail(error)
            else:
                with self.driver.enter():
                    slot.complete(value)

        self.driver.run_user(job, None)
        return slot

    # ---- told by links and timers

    def on_timer(self, now: Now) -> None:
        self.timers.fire(now)

    def on_open(self, link: Link) -> None:
        self.ever_local.add(link.local)
        self._opened.setdefault(str(link.address), deque(maxlen=OPENED)).append(self.driver.now.mono)
        LOG.info("connected to %s (%s)", link.address, link.address.source)

    def on_frames(self, link: Link, frames: Sequence[Any]) -> None:
        complete = link.inflight.complete
        if self.names is not None:
            frames = [self.names.stripped(self.impl.remoting, frame) for frame in frames]
        for frame in frames:
            if frame.is_response:
                complete(frame.opaque, frame)
            else:
                self.asked.on_request(link, frame)

    def on_lost(self, link: Link, cause: MQError) -> None:
        if not self.closed:
            LOG.info("%s", cause)
            self.heartbeats.on_lost(str(link.address))

    def respond(
        self, link: Link, frame: Any, code: int, *, remark: str | None = None, body: bytes = b"", **fields: str
    ) -> None:
        """Answer a broker's request."""
        if not frame.is_oneway and link.usable:
            encode, body = self.impl.remoting.encode_frame, encoded(self.names, body)
            link.write(encode(int(code), frame.opaque, flag=RESPONSE, fields=fields, body=body, remark=remark))

    def on_fork(self) -> None:
        """In a forked child: consumers are the parent's; the client and its producers go on under a new identity.

        Sequence: consumers first, so that nothing of theirs asks anew when the parent's connections end here.
        """
        for member in [*self.consumers.values(), *self.unjoined]:
            member.taker.abandon()
        self.consumers.clear()
        self.unjoined.clear()
        for producer in self.producers.values():
            producer.on_fork()
        for link in self.links.values():
            link.handle = None  # the driver has closed our copy of it, without a word to the broker
            link.close()
        self.links.clear()
        self.timers.clear()
        self.ever_local.clear()
        self._opened.clear()
        self.heartbeats = Heartbeats(self)
        self.replies.waiting.clear()
        self._identify(None)
        self._arm()

    def shutdown(self) -> Slot[None]:
        """Close consumers, then producers, then everything."""
        return run_steps(self._shutdown_steps())

    def _shutdown_steps(self) -> Steps[None]:
        if self.closed:
            return
        for member in [*self.consumers.values(), *self.unjoined]:
            yield from member.taker.close_steps()
        for producer in list(self.producers.values()):
            yield from producer.close_steps()
        self.close()

    def on_exit(self) -> Slot[Any]:
        """The interpreter ends and nobody closed us: send what gathers, done when all of it has its outcome."""
        return gather([producer.flush() for producer in self.producers.values()])

    def unsettled(self) -> dict[str, int]:
        """How many messages of each producer have no outcome."""
        counts = {f"producer {group!r}": producer.account().pending for group, producer in self.producers.items()}
        return {} if self.closed else {name: count for name, count in counts.items() if count}

    def diagnose(self) -> dict[str, Any]:
        """The state of this client, for people."""
        return {
            "client_id": self.client_id,
            "name_servers": self.name_servers.addresses,
            "links": {address: link.state for address, link in self.links.items()},
            "topics": sorted(route.topic for route in self.routes.known()),
            "producers": sorted(self.producers),
            "consumers": {group: member.taker.diagnose() for group, member in self.consumers.items()},
        }

    def close(self) -> None:
        """The end: everything in flight fails with ClosedError."""
        self.closed = True
        self.timers.clear()
        for link in self.links.values():
            link.close()

    def _refresh_routes(self, now: Now) -> None:
        self.timers.after(self.options.route_interval, self._refresh_routes)
        self.routes.refresh()

    def _beat(self, now: Now) -> None:
        self.timers.after(self.options.heartbeat_interval, self._beat)
        self.heartbeats.beat_all()

    def _on_route(self, topic: str) -> None:
        for participant in [*self.producers.values(), *self.consumers.values()]:
            participant.on_route(topic)

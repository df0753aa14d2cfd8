"""Owns one connection to a broker: handshake, credentials, keep-alive, and the tables id -> producer or consumer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mqclient.core.causes import NO_WAY
from mqclient.core.driver import Address, Now
from mqclient.core.link import Link
from mqclient.core.slot import Slot, completed, failed
from mqclient.core.steps import Steps, run_steps
from mqclient.core.timers import Timer
from mqclient.errors import ClosedError, LinkError, MQError, ProtocolError
from mqclient.pulsar import requests
from mqclient.pulsar.advice import SILENT, advised
from mqclient.pulsar.requests import Command

if TYPE_CHECKING:
    from mqclient.pulsar.auth import Authentication
    from mqclient.pulsar.client import ClientEngine
    from mqclient.pulsar.names import ServiceUrl

log = logging.getLogger("mqclient.pulsar")

MAX_AUTH_ROUNDS = 10


class Handler(Protocol):
    """A producer or consumer that lives on a connection."""

    def on_lost(self, connection: Connection, cause: MQError) -> None: ...

    def on_closed_by_broker(self, connection: Connection, broker_url: str | None) -> None: ...

    def on_migrated(self, connection: Connection, cluster: ServiceUrl) -> None:
        """The topic is in another cluster from now on; CLOSE follows, or what was asked is not answered."""


class ProducerHandler(Handler, Protocol):
    def on_receipts(self, events: Sequence[Any], at: int) -> int: ...

    def on_send_error(self, sequence_id: int, error: MQError) -> None: ...


class ConsumerHandler(Handler, Protocol):
    def on_entries(self, entries: list[Any]) -> None: ...

    def on_active(self, active: bool) -> None: ...

    def on_end_of_topic(self) -> None: ...


class Watcher(Protocol):
    """Somebody who is told when topics come or go."""

    def on_topics_changed(self) -> None: ...

    def on_watcher_lost(self) -> None: ...


class Connection:
    """One TCP connection; made, used and thrown away: the pool makes another.

    Nothing is written before the broker answered CONNECTED: whoever wants to send asks `when_ready` first.
    """

    __slots__ = (
        "_auth",
        "_auth_rounds",
        "_client",
        "_pinged",
        "_proxy_to",
        "_timer",
        "_waiting",
        "consumers",
        "error",
        "features",
        "link",
        "max_message_size",
        "producers",
        "protocol_version",
        "ready",
        "server",
        "strays",
        "watchers",
    )

    def __init__(
        self,
        client: ClientEngine,
        address: Address,
        proxy_to: str | None = None,
        auth: Authentication | None = None,
    ) -> None:
        self._client = client
        self._auth = auth or client.auth
        self._proxy_to = proxy_to
        self._waiting: list[Slot[None]] = []
        self._timer: Timer | None = None
        self._pinged = 0.0
        self._auth_rounds = 0
        self.producers: dict[int, ProducerHandler] = {}
        self.consumers: dict[int, ConsumerHandler] = {}
        self.watchers: dict[int, Watcher] = {}
        self.ready = False
        self.error: MQError | None = None
        self.features: dict[str, bool] = {}
        self.max_message_size: int = client.impl.pulsar.MAX_MESSAGE
        self.protocol_version = 0
        self.server = ""
        self.strays = 0
        """Frames for a producer or consumer that is gone: counted, dropped."""
        self.link = Link(client.driver, client.timers, self, address, client.impl.pulsar.FrameReader)

    def connect(self, deadline: float) -> None:
        self._timer = self._client.timers.at(deadline, self._too_late)
        self.link.connect(deadline)

    @property
    def proxy(self) -> Address | None:
        """Who leads to the broker; None: nobody has to."""
        return None if self._proxy_to is None else self.link.address

    @property
    def usable(self) -> bool:
        """Worth keeping in the pool: it is open or on its way there."""
        return self.error is None and self.link.usable

    def when_ready(self) -> Slot[None]:
        """Done when the handshake is; fails with what ended it."""
        if self.error is not None:
            return failed(self.error)
        if self.ready:
            return completed(None)
        slot: Slot[None] = Slot()
        self._waiting.append(slot)
        return slot

    def request(self, command: Command, deadline: float) -> Slot[Any]:
        """Send a command that carries a request id; the slot gets the parsed reply, or its error."""
        impl = self._client.impl
        return self.request_by(lambda request_id: command.encode(impl, request_id), command.name, deadline)

    def request_by(self, encode: Callable[[int], bytes], name: str, deadline: float) -> Slot[Any]:
        """The same for a frame that the native codec makes."""
        request_id = self._client.next_request_id()
        slot: Slot[Any] = Slot()
        self.link.send(request_id, encode(request_id), slot, deadline, name)
        return slot

    def tell(self, command: Command) -> None:
        """Send a command that nobody answers, or whose answer nobody waits for."""
        if self.link.state == "open":
            self.link.write(command.encode(self._client.impl, self._client.next_request_id()))

    def write(self, *frames: bytes) -> None:
        self.link.write(*frames)

    def close(self) -> None:
        error = ClosedError(f"closed the connection to {self.link.address}")
        self._end(error)
        self.link.close()

    # ---- told by the link

    def on_open(self, link: Link) -> None:
        run_steps(self._connect_steps()).then(self._on_sent)

    def on_frames(self, link: Link, frames: Sequence[Any]) -> None:
        codec = self._client.impl.pulsar
        message, receipt, ping = codec.MESSAGE, codec.SEND_RECEIPT, codec.PING
        at, many = 0, len(frames)
        while at < many:
            event = frames[at]
            kind = event[0]
            at += 1
            if kind == message:
                entries = codec.take_run(frames, at - 1)
                at += len(entries) - 1
                consumer = self.consumers.get(event[1].consumer_id)
                if consumer is not None:
                    consumer.on_entries(entries)
                else:
                    self.strays += len(entries)
            elif kind == receipt:
                producer = self.producers.get(event[1])
                if producer is not None:
                    at += producer.on_receipts(frames, at - 1) - 1
                else:
                    self.strays += 1
            elif kind == ping:
                link.write(codec.PONG_FRAME)
            elif len(event) == 2:
                self._on_command(event[0], event[1])

    def on_lost(self, link: Link, cause: MQError) -> None:
        log.info("lost %s: %s", link.address, cause)
        self._end(cause if self.ready else advised(cause, encrypted=link.address.tls is not None))

    # ---- handshake and keep-alive

    def _connect_steps(self) -> Steps[None]:
        data = yield self._client.credentials(self._auth)
        self.link.write(requests.connect(self._auth.method, data, self._proxy_to).encode(self._client.impl, 0))

    def _auth_steps(self) -> Steps[None]:
        data = yield self._client.credentials(self._auth)
        self.link.write(requests.auth_response(self._auth.method, data).encode(self._client.impl, 0))

    def _on_sent(self, slot: Slot[None]) -> None:
        if slot.error is not None and self.link.state == "open":
            error = slot.error if isinstance(slot.error, MQError) else LinkError(f"no credentials: {slot.error!r}")
            error.__cause__ = slot.error
            self._abort(error)

    def _on_connected(self, body: bytes) -> None:
        reply = requests.parse("CommandConnected", body)
        self.server = reply.server_version
        self.protocol_version = reply.protocol_version
        self.features = requests.flags(reply.feature_flags)
        if reply.max_message_size > 0:
            self.max_message_size = reply.max_message_size
        # The link types its reader by what every protocol has; this one's frame limit follows the broker's word.
        reader: Any = self.link.reader
        reader.max_frame = self.max_message_size + self._client.impl.pulsar.FRAME_PADDING
        self.ready = True
        log.info("connected to %s, %s", self.link.address, self.server)
        self._set_timer(self._client.keep_alive)
        waiting, self._waiting = self._waiting, []
        for slot in waiting:
            slot.complete(None)

    def _on_challenge(self) -> None:
        self._auth_rounds = 0 if self.ready else self._auth_rounds + 1
        if self._auth_rounds > MAX_AUTH_ROUNDS:
            self._abort(ProtocolError(f"{self.link.address} asks for credentials again and again"))
        else:
            run_steps(self._auth_steps()).then(self._on_sent)

    def _set_timer(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._client.timers.after(seconds, self._keep_alive) if seconds else None

    def _keep_alive(self, now: Now) -> None:
        if self._pinged and self.link.last_read < self._pinged:
            self._abort(LinkError(f"{self.link.address} did not answer PING in {self._client.keep_alive} s"))
            return
        self._pinged = now.mono
        self.link.write(self._client.impl.pulsar.PING_FRAME)
        self._set_timer(self._client.keep_alive)

    def _too_late(self, now: Now) -> None:
        self._abort(self.late())

    def late(self) -> MQError:
        """Why it is not ready at the deadline of whoever waits for it."""
        address = self.link.address
        if self.link.state == "connecting":  # its own alarm for this moment comes only after ours
            text = f"could not connect to {address} ({address.source}): no connection in time ({NO_WAY})"
        else:
            text = f"{address} ({address.source}) did not finish the handshake in time ({SILENT})"
        return LinkError(text).about(remote=str(address))

    def _abort(self, error: MQError) -> None:
        """End with our own word for it: the link's cause would say less."""
        self._end(error)
        self.link.abort(error)

    def _end(self, error: MQError) -> None:
        """Once: whoever waits fails, whoever lives here is told; the pool forgets the connection."""
        if self.error is not None:
            return
        self.error = error
        self.ready = False
        if self._timer is not None:
            self._timer.cancel()
        self._client.on_connection_lost(self)
        waiting, self._waiting = self._waiting, []
        for slot in waiting:
            slot.fail(error)
        handlers: list[Handler] = [*self.producers.values(), *self.consumers.values()]
        self.producers.clear()
        watchers = list(self.watchers.values())
        self.consumers.clear()
        self.watchers.clear()
        # In flight before handlers: an attempt to open that was under way fails by its request and then finds itself.
        self.link.inflight.fail_all(LinkError(str(error)).about(remote=str(self.link.address)))
        for handler in handlers:
            handler.on_lost(self, error)
        for watcher in watchers:
            watcher.on_watcher_lost()

    # ---- cold commands

    def _on_command(self, kind: int, body: bytes) -> None:
        try:
            self._dispatch(kind, body)
        except ProtocolError as error:
            self._abort(error)

    def _dispatch(self, kind: int, body: bytes) -> None:
        if kind in requests.REPLIES:
            reply = requests.parse(requests.REPLIES[kind], body)
            error = requests.error_of(reply, str(self.link.address))
            if error is not None and reply.request_id == requests.NO_REQUEST_ID:
                self._abort(error)
            elif error is not None:
                self.link.inflight.fail(reply.request_id, error)
            elif requests.is_waiting(reply):
                self.link.inflight.hold(reply.request_id)
            else:
                self.link.inflight.complete(reply.request_id, reply)
        elif kind == requests.CONNECTED:
            self._on_connected(body)
        elif kind == requests.AUTH_CHALLENGE:
            self._on_challenge()
        elif kind == requests.SEND_ERROR:
            reply = requests.parse("CommandSendError", body)
            producer = self.producers.get(reply.producer_id)
            if producer is not None:
                producer.on_send_error(reply.sequence_id, requests.remote_error(reply, str(self.link.address)))
        elif kind == requests.TOPIC_UPDATE:
            watcher = self.watchers.get(requests.parse("CommandWatchTopicUpdate", body).watcher_id)
            if watcher is not None:
                watcher.on_topics_changed()
        elif kind == requests.TOPIC_MIGRATED:
            self._on_migrated(requests.parse("CommandTopicMigrated", body))
        elif kind in requests.TO_PRODUCER:
            self._to_producer(requests.parse(requests.TO_PRODUCER[kind], body))
        elif kind in requests.TO_CONSUMER:
            self._to_consumer(kind, requests.parse(requests.TO_CONSUMER[kind], body))

    def _on_migrated(self, told: Any) -> None:
        of_producer, url = requests.migrated_to(told, self.link.address)
        member = self.producers.get(told.resource_id) if of_producer else self.consumers.get(told.resource_id)
        if member is not None:
            member.on_migrated(self, self._client.cluster(url))

    def _to_producer(self, told: Any) -> None:
        producer = self.producers.pop(told.producer_id, None)
        if producer is not None:
            producer.on_closed_by_broker(self, requests.assigned_broker(told, self.link.address))

    def _to_consumer(self, kind: int, told: Any) -> None:
        if kind == requests.CLOSE_CONSUMER:
            gone = self.consumers.pop(told.consumer_id, None)
            if gone is not None:
                gone.on_closed_by_broker(self, requests.assigned_broker(told, self.link.address))
            return
        consumer = self.consumers.get(told.consumer_id)
        if consumer is not None and kind == requests.ACTIVE_CONSUMER_CHANGE:
            consumer.on_active(told.is_active)
        elif consumer is not None:
            consumer.on_end_of_topic()

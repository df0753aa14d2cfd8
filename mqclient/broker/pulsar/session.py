"""Owns one client's connection: frames in, commands to their families, frames out, and what lives on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqclient import _schema
from mqclient.broker.control import Alarm, Fault
from mqclient.broker.outgoing import write_parts
from mqclient.broker.pulsar import (
    acks,
    connect,
    lookup,
    produce,
    producers,
    schemas,
    seek,
    subscribe,
    transactions,
    watchers,
)
from mqclient.broker.pulsar.auth import NOBODY
from mqclient.broker.pulsar.refused import Refused
from mqclient.broker.pulsar.topics import Topics
from mqclient.broker.trickle import Trickle
from mqclient.core.link import Buffer
from mqclient.pulsar.codes import ServerError

if TYPE_CHECKING:
    from mqclient.broker.pulsar.door import PulsarDoor

log = logging.getLogger("mqclient.broker")

KEEP_ALIVE = 30.0
LIVENESS = 5.0
WRITE_BUFFER = 4 << 20
"""Bytes that may wait for a client that reads slowly; while there are more, nothing is dispatched to it."""
Handler = Callable[["Session", Any], None]

FAMILIES = (connect, lookup, producers, produce, subscribe, acks, seek, schemas, watchers, transactions)
HANDLERS: dict[int, Handler] = {kind: handler for family in FAMILIES for kind, handler in family.HANDLERS.items()}
NAMES = {number: name for name, number in _schema.enum("BaseCommand.Type").items()}
OPENING = frozenset(("SUBSCRIBE", "PRODUCER"))
"""A scripted delay of these is a slow opening, which the client can overtake: their family sees to it."""


class Session(asyncio.BufferedProtocol):
    """Commands are handled in order; answers of slow ones come when they are ready.

    What comes goes straight into the frame reader's buffer."""

    def __init__(self, door: PulsarDoor) -> None:
        self.door = door
        self.house = door.house
        self.impl = door.house.impl
        self.topics: Topics = door.topics
        self.producers: dict[int, producers.Producer] = {}
        self.closed_producers: dict[int, float] = {}
        self.consumers: dict[int, subscribe.Place] = {}
        self.watchers: dict[int, watchers.Watcher] = {}
        self.connected = False
        self.closed = False
        self.writable = True
        self.peer = ""
        self.client_version = ""
        self.protocol_version = 0
        self.principal = NOBODY
        self.auth_method = ""
        self.refreshes = False
        self.challenged = False
        self.pending_delay = 0.0
        self._reader = self.impl.pulsar.FrameReader()
        self._transport: asyncio.Transport | None = None
        self._out: list[Buffer] = []
        self._last_read = 0.0
        self._reads = 0
        self._pinged = 0.0
        self._alarm: Alarm | None = None

    # ---- told by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._adopt(transport)

    def _adopt(self, transport: asyncio.Transport) -> None:
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self._transport = transport
        host, port = (transport.get_extra_info("peername") or ("", 0))[:2]  # None: it is gone again
        self.peer = f"{host}:{port}"
        self.door.sessions.add(self)
        self._alarm = self.house.clock.after(KEEP_ALIVE, self._keep_alive)

    def get_buffer(self, sizehint: int) -> memoryview:
        vacancy: memoryview = self._reader.vacancy()
        return vacancy

    def buffer_updated(self, nbytes: int) -> None:
        self._received(self._reader.filled(nbytes))

    def _received(self, events: list[Any]) -> None:
        self._last_read = self.house.clock.mono()
        self._reads += 1
        for event in events:
            if self.closed:
                return
            self._on_event(event)
        if not self.house.unsaved:  # else the turn's end writes once what all of them brought, and flushes then
            self.flush()
        if self._reader.error is not None and not self.closed:
            self.close(f"bad bytes: {self._reader.error}")

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        for place in self.consumers.values():
            if place.consumer is not None:
                place.consumer.subscription.poke()

    def connection_lost(self, error: Exception | None) -> None:
        self._end()

    # ---- what families use

    def certificate(self) -> Any:
        """What the client showed in the TLS handshake, as `ssl` tells it."""
        return None if self._transport is None else self._transport.get_extra_info("peercert")

    def write(self, frame: Buffer) -> None:
        """With everything else that this turn writes, in one go."""
        if self.closed:
            return
        if not self._out:
            self.soon(self.flush)
        self._out.append(frame)

    def send(self, kind: int, name: str, **fields: Any) -> None:
        fields = {field: value for field, value in fields.items() if value is not None}
        self.write(self.impl.pulsar.encode_command(kind, _schema.message(name)(**fields).SerializeToString()))

    def success(self, request_id: int) -> None:
        self.send(13, "CommandSuccess", request_id=request_id)

    def error(self, request_id: int, code: int, text: str) -> None:
        self.send(14, "CommandError", request_id=request_id, error=code, message=text)

    def active_consumer_change(self, consumer_id: int, active: bool) -> None:
        self.send(31, "CommandActiveConsumerChange", consumer_id=consumer_id, is_active=active)

    def soon(self, call: Callable[[], None]) -> None:
        """When what is being handled now is done."""
        self.door.soon(call)

    def flush(self) -> None:
        # a transport that broke in this turn is still there, and must not be written to: see remoting/server.py
        if self._out and self._transport is not None and not self.closed and not self._transport.is_closing():
            out, self._out = self._out, []
            if self.house.save():
                write_parts(self._transport, out, self.impl.pulsar.send_now)
            else:
                self._abort()

    def close(self, why: str) -> None:
        """Write what was said, then end."""
        if self.closed:
            return
        log.info("%s: closed: %s", self.peer, why)
        self.flush()
        if self._transport is not None:
            self._transport.close()
        self._end()

    def alive(self, answer: Callable[[bool], None]) -> None:
        """Ask the client whether it is there; a newcomer wants the place of something that lives here."""
        asked, reads = self.house.clock.mono(), self._reads
        self.write(self.impl.pulsar.PING_FRAME)
        step = LIVENESS / 50

        def look() -> None:
            now = self.house.clock.mono()
            if self.closed or self._reads > reads:
                answer(not self.closed)
            elif now - asked >= LIVENESS:
                self.close("no answer to PING while another waits for its place")
                answer(False)
            else:
                self.house.clock.after(step, look)

        self.house.clock.after(step / 10, look)

    # ---- inside

    def _on_event(self, event: Any) -> None:
        kind = event[0]
        name = NAMES.get(kind, str(kind))
        fault = self.house.control.fault(name, self.peer)
        if fault is None:
            self._handle(kind, event)
        elif fault.action in ("cut", "cut_after"):
            if fault.action == "cut_after":
                self._handle(kind, event)
                self._out.clear()
            self._abort()
        elif fault.action == "trickle":
            if self._transport is not None:
                self.flush()
                self._transport = Trickle(self._transport, fault.seconds)
            self._handle(kind, event)
        elif fault.action == "delay" and name not in OPENING:
            self.house.clock.after(fault.seconds, lambda: None if self.closed else self._handle(kind, event))
        elif fault.action == "delay":
            self.pending_delay = fault.seconds
            self._handle(kind, event)
            self.pending_delay = 0.0
        elif fault.action == "answer":
            self._answer(kind, event, fault)

    def _handle(self, kind: int, event: Any) -> None:
        request = event
        if len(event) == 2 and isinstance(event[1], bytes):
            try:
                request = _schema.read_command(kind, event[1])
            except Exception as error:  # protobuf's DecodeError
                self.close(f"{NAMES.get(kind, kind)} cannot be read: {error}")
                return
        if not self.connected and kind not in connect.BEFORE:
            self.close(f"{NAMES.get(kind, kind)} before CONNECT")
            return
        handler = HANDLERS.get(kind)
        try:
            if handler is None:
                self._unsupported(kind, request)
            else:
                handler(self, request)
        except Refused as refused:
            self.error(request.request_id, refused.code, str(refused))

    def _unsupported(self, kind: int, request: Any) -> None:
        """The protocol's own word for it, where the command can be answered; unknown commands are skipped."""
        if request is not None and "request_id" in request.DESCRIPTOR.fields_by_name:
            text = f"{NAMES[kind]} is not supported by mqclient's embedded broker"
            self.error(request.request_id, ServerError.NotAllowedError, text)

    def _answer(self, kind: int, event: Any, fault: Fault) -> None:
        """Scripted: ERROR instead of the work; of a SEND its own kind."""
        if kind == self.impl.pulsar.SEND:
            self.send(
                8,
                "CommandSendError",
                producer_id=event[1],
                sequence_id=event[2],
                error=fault.code,
                message=fault.remark,
            )
            return
        request = _schema.read_command(kind, event[1]) if len(event) == 2 else None
        if request is not None and "request_id" in request.DESCRIPTOR.fields_by_name:
            self.error(request.request_id, fault.code, fault.remark)

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._end()

    def _keep_alive(self) -> None:
        if not self.connected:
            self.close("no CONNECT in time")
        elif self._pinged and self._last_read < self._pinged:
            self.close("no answer to PING")
        else:
            self._pinged = self.house.clock.mono()
            self.write(self.impl.pulsar.PING_FRAME)
            self._alarm = self.house.clock.after(KEEP_ALIVE, self._keep_alive)

    def _end(self) -> None:
        """Everything that lived here is gone; subscriptions hand on what it had."""
        if self.closed:
            return
        self.closed = True
        self.door.sessions.discard(self)
        if self._alarm is not None:
            self._alarm.cancel()
        for producer in list(self.producers.values()):
            producer.leave()
        self.producers.clear()
        places, self.consumers = self.consumers, {}
        for place in places.values():
            place.leave()

"""Owns the connections of one RocketMQ port: frames in, a table of handlers, answers and pushes out."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mqclient.broker.outgoing import LARGE, write_parts
from mqclient.broker.remoting.doorstep import Guest, greeter
from mqclient.broker.trickle import Trickle
from mqclient.errors import ConfigError, MQError
from mqclient.rocketmq.codes import Request, Response

if TYPE_CHECKING:
    from mqclient.broker.broker import House
    from mqclient.broker.control import Alarm, Fault

LOG = logging.getLogger("mqclient.broker")

VERSION: Final = 513
"""The ordinal of 5.5.0: what clients learn from heartbeat answers."""
RESPONSE: Final = 1
ONEWAY: Final = 2
LONG: Final = 1 << 63
LONGEST_NUMBER: Final = 20
KINDS: Final = {int(request): request.name for request in Request}
FORMS: Final = {"JSON": 0, "ROCKETMQ": 1}
WRITE_BUFFER: Final = 4 << 20
"""Bytes that may wait for a client that does not read; while there are more, what it asks waits unread."""

Buffer = bytes | bytearray | memoryview


class Reply(NamedTuple):
    """How a request is answered."""

    code: int = Response.SUCCESS
    remark: str | None = None
    fields: Mapping[str, str] = {}
    body: Buffer | Sequence[Buffer] = b""


class Refused(Exception):
    """Raised by a handler to answer with an error."""

    def __init__(self, code: int, remark: str, **fields: str) -> None:
        super().__init__(remark)
        self.reply = Reply(code, remark, fields)


class Ask:
    """One request: its frame, who sent it, and readers of its fields."""

    __slots__ = ("frame", "peer")

    def __init__(self, frame: Any, peer: Peer) -> None:
        self.frame = frame
        self.peer = peer

    @property
    def body(self) -> bytes:
        body: bytes = self.frame.body
        return body

    def text(self, name: str, default: str | None = None) -> str:
        value: str | None = self.frame.field(name, default)
        if value is None:
            raise Refused(Response.SYSTEM_ERROR, f"the field {name} is missing")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        return number_of(name, self.frame.field(name), default)

    def flag(self, name: str) -> bool:
        return bool(self.frame.field(name, "").lower() == "true")

    def answer(self, reply: Reply) -> None:
        """For handlers that held the request; a oneway one is never answered."""
        if not self.frame.is_oneway:
            self.peer.answer(self.frame, reply)


def number_of(name: str, value: str | None, default: int | None = None) -> int:
    """The number in a field; one that is not there and has no default is refused, as is what is no number."""
    if value is None:
        if default is None:
            raise Refused(Response.SYSTEM_ERROR, f"the field {name} is missing")
        return default
    try:
        number = int(value) if len(value) <= LONGEST_NUMBER else LONG
    except ValueError:
        number = LONG
    if not -LONG <= number < LONG:
        raise Refused(Response.SYSTEM_ERROR, f'For input string: "{value}"')
    return number


Handler = Callable[[Ask], Reply | None]
"""None: it answers later, or never."""


class Peer(Guest):
    """One connection. What comes goes straight into the frame reader's buffer; `data_received` is for doorsteps."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._reader = server.house.impl.remoting.FrameReader()
        self._transport: asyncio.Transport | None = None
        self._out: list[Buffer] = []
        self._out_size = 0
        self._frames: deque[Any] = deque()
        self._slow = False
        self._opaque = count()
        self._asked: dict[int, tuple[Callable[[Any], None], Alarm]] = {}
        self.address = ""
        self.host = "", 0
        self.language = "JAVA"
        self.version = 0

    @property
    def open(self) -> bool:
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        self._transport = transport
        host, port = self.host = (transport.get_extra_info("peername") or self.host)[:2]  # None: it is gone again
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._server.peers.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._frames.clear()
        self._server.peers.discard(self)
        asked, self._asked = self._asked, {}
        for heard, alarm in asked.values():
            alarm.cancel()
            heard(None)
        self._server.on_lost(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        vacancy: memoryview = self._reader.vacancy()
        return vacancy

    def buffer_updated(self, nbytes: int) -> None:
        self._received(self._reader.filled(nbytes))

    def data_received(self, data: bytes) -> None:
        self._received(self._reader.feed(data))

    def _received(self, frames: list[Any]) -> None:
        self._frames.extend(frames)
        self._work()
        if self._reader.error is not None:
            LOG.warning("%s: closed after bad bytes: %s", self.address, self._reader.error)
            self.close()

    def pause_writing(self) -> None:
        self._slow = True

    def resume_writing(self) -> None:
        # Not here: asyncio, which calls this while it writes, would end a connection twice whose next write fails.
        self._slow = False
        self._server.loop.call_soon(self._work)

    def _work(self) -> None:
        """Serve what was asked, as far as the answers have room: who does not read is not heard either."""
        while self._frames and not self._slow and self._out_size < WRITE_BUFFER:
            frame = self._frames.popleft()
            if frame.is_response:
                self._heard(frame)
            else:
                self._server.serve(Ask(frame, self))
            if self._out_size >= WRITE_BUFFER and not self._server.house.unsaved:
                self._flush()
        if not self._server.house.unsaved:  # else the turn's end writes once what all of them brought, and flushes then
            self._flush()
        if self._transport is not None and not self._transport.is_closing():
            if self._frames:
                self._transport.pause_reading()
            else:
                self._transport.resume_reading()

    def answer(self, frame: Any, reply: Reply) -> None:
        given: Any = reply.body
        body: Sequence[Buffer] = given if isinstance(given, (list, tuple)) else (given,)
        size = sum(map(len, body))
        apart = size >= LARGE  # it goes to the socket from where it lies
        self._write(
            self._server.house.impl.remoting.encode_frame(
                int(reply.code),
                frame.opaque,
                flag=RESPONSE,
                fields=reply.fields,
                body=b"" if apart else body,
                remark=reply.remark,
                language="JAVA",
                version=VERSION,
                serialize=self._server.serialize,
                behind=size if apart else 0,
            )
        )
        if apart:
            for part in body:
                self._write(part)

    def pass_on(self, frame: Any, answered: Any) -> None:
        """Give the answer that somebody else made: code, remark, fields and body as they are."""
        self.answer(frame, Reply(answered.code, answered.remark, answered.fields, answered.body))

    def push(self, code: int, fields: Mapping[str, str], body: bytes = b"") -> None:
        """Ask the client for something without wanting an answer."""
        self._ask(code, fields, body, ONEWAY)

    def ask(
        self, code: int, fields: Mapping[str, str], body: bytes, seconds: float, heard: Callable[[Any], None]
    ) -> None:
        """Ask the client; `heard(frame)`, or None if it did not answer in time."""
        opaque = self._ask(code, fields, body, 0)
        alarm = self._server.house.clock.after(seconds, lambda: self._unheard(opaque))
        self._asked[opaque] = (heard, alarm)

    def close(self) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def trickle(self, seconds: float) -> None:
        """From now on bytes leave one at a time; for tests."""
        if self._transport is not None:
            self._transport = Trickle(self._transport, seconds)

    def _ask(self, code: int, fields: Mapping[str, str], body: bytes, flag: int) -> int:
        opaque = next(self._opaque)
        encode, form = self._server.house.impl.remoting.encode_frame, self._server.serialize
        whole = encode(
            code, opaque, flag=flag, fields=fields, body=body, language="JAVA", version=VERSION, serialize=form
        )
        self._write(whole)
        return opaque

    def _heard(self, frame: Any) -> None:
        entry = self._asked.pop(frame.opaque, None)
        if entry is not None:
            entry[1].cancel()
            entry[0](frame)

    def _unheard(self, opaque: int) -> None:
        entry = self._asked.pop(opaque, None)
        if entry is not None:
            entry[0](None)

    def _write(self, data: Buffer) -> None:
        # One write a loop turn: the answers to what one read held leave together.
        if not self._out:
            self._server.loop.call_soon(self._flush)
        self._out.append(data)
        self._out_size += memoryview(data).nbytes

    def _flush(self) -> None:
        out, self._out = self._out, []
        full, self._out_size = self._out_size >= WRITE_BUFFER, 0
        # Cut in the turn in which this was planned, the transport is still there: CPython 3.12.0-8 and 3.13.0-1 would
        # watch its descriptor again, and whoever gets that number next would never be read.
        if out and self._transport is not None and not self._transport.is_closing():
            if self._server.house.save():
                write_parts(self._transport, out)
            else:
                self.cut()
        if full and not self._slow and self._frames:
            self._server.loop.call_soon(self._work)


class Server:
    """One listening port and the table of what it serves."""

    def __init__(
        self,
        house: House,
        table: Mapping[int, Handler],
        on_lost: Callable[[Peer], None],
        guard: Callable[[Ask], None] | None = None,
        *,
        name: str = "name_server",
    ) -> None:
        self.house = house
        self.serialize = _form(str(house.settings.get("serializeType", "JSON")))
        """The form of headers in which this server writes, whatever it is asked in."""
        self._guard = guard
        self.peers: set[Peer] = set()
        self.on_lost = on_lost
        self._table = table
        self._server: asyncio.Server | None = None
        self.name = name
        self.host = ""
        self.port = 0

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    async def start(self, host: str) -> None:
        self.loop = asyncio.get_running_loop()
        self._server = await self.house.listen(self.name, greeter(self.house.settings, lambda: Peer(self)), host)
        self.host, self.port = self._server.sockets[0].getsockname()[:2]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for peer in list(self.peers):
            peer.close()

    def serve(self, ask: Ask) -> None:
        """One request, with what a test scripted for its kind."""
        ask.peer.language, ask.peer.version = ask.frame.language, ask.frame.version
        fault = self.house.control.fault(kind_of(ask.frame.code), ask.peer.address)
        if fault is None:
            self._serve(ask)
        else:
            self._fail(ask, fault)

    def _fail(self, ask: Ask, fault: Fault) -> None:
        if fault.action == "answer":
            ask.answer(Reply(fault.code, fault.remark))
        elif fault.action == "delay":
            self.house.clock.after(fault.seconds, lambda: self._serve(ask))
        elif fault.action == "trickle":
            ask.peer.trickle(fault.seconds)
            self._serve(ask)
        elif fault.action == "cut":
            ask.peer.cut()
        elif fault.action == "cut_after":
            self._handle(ask)
            ask.peer.cut()

    def _serve(self, ask: Ask) -> None:
        reply = self._handle(ask)
        if reply is not None:
            ask.answer(reply)

    def _handle(self, ask: Ask) -> Reply | None:
        handler = self._table.get(ask.frame.code)
        try:
            if self._guard is not None:
                self._guard(ask)
            if handler is None:
                remark = f" request type {ask.frame.code} not supported"
                return Reply(Response.REQUEST_CODE_NOT_SUPPORTED, remark)
            return handler(ask)
        except Refused as refused:
            return refused.reply
        except MQError as error:
            return Reply(Response.SYSTEM_ERROR, str(error))
        except Exception as error:
            LOG.exception("%s: request %s failed", ask.peer.address, kind_of(ask.frame.code))
            return Reply(Response.SYSTEM_ERROR, f"{type(error).__name__}: {error}")


def _form(name: str) -> int:
    if name not in FORMS:
        raise ConfigError(f"serializeType={name!r}: it is one of {', '.join(FORMS)}")
    return FORMS[name]


def read_properties(body: bytes) -> dict[str, str]:
    """Options as Java's properties files have them, as far as brokers use that: `name=value` lines and comments."""
    pairs = (line.partition("=") for line in body.decode("utf-8", "replace").splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals}


def write_properties(options: Mapping[str, str]) -> bytes:
    return "".join(f"{name}={value}\n" for name, value in sorted(options.items())).encode()


def kind_of(code: int) -> str:
    """The name under which faults know this request."""
    return KINDS.get(code) or str(code)

"""Owns the first byte of a RocketMQ connection: it tells whether TLS is spoken, as on a permissive broker of upstream.

`tlsServerMode` is `permissive` (both on one port), `enforcing` (TLS only) or `disabled`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from mqclient.broker.tls import server_context
from mqclient.errors import ConfigError

LOG = logging.getLogger("mqclient.broker")
HANDSHAKE: Final = 0x16
CHUNK: Final = 1 << 16
MODES: Final = ("permissive", "enforcing", "disabled")


class Guest(asyncio.BufferedProtocol):
    """Who is served in the end: reads from the socket into room of its own, and is told what a doorstep read."""

    def data_received(self, data: bytes) -> None:
        """As if it had come by `get_buffer`."""
        raise NotImplementedError


def greeter(settings: Mapping[str, Any], make: Callable[[], Guest]) -> Callable[[], asyncio.BaseProtocol]:
    """What listens for connections: the protocol itself, or somebody before it who looks at the first byte."""
    mode = str(settings.get("tlsServerMode", "permissive"))
    if mode not in MODES:
        raise ConfigError(f"tlsServerMode={mode!r}: it is one of {', '.join(MODES)}")
    context = server_context(settings)
    if mode == "enforcing" and context is None:
        raise ConfigError("tlsServerMode='enforcing' needs tlsCertificateFilePath and tlsKeyFilePath")
    if context is None or mode == "disabled":
        return make
    known = context
    return lambda: Doorstep(make, known, mode == "enforcing")


class Doorstep(asyncio.Protocol):
    """A connection that has not said anything yet."""

    def __init__(self, make: Callable[[], Guest], context: ssl.SSLContext, enforce: bool) -> None:
        self._make = make
        self._context = context
        self._enforce = enforce

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if data[0] == HANDSHAKE:
            line = Line(self._transport, self._context, self._make())
            self._transport.set_protocol(line)
            line.data_received(data)
        elif self._enforce:
            LOG.warning("%s: closed: it does not speak TLS", self._transport.get_extra_info("peername"))
            self._transport.abort()
        else:
            protocol = self._make()
            self._transport.set_protocol(protocol)
            protocol.connection_made(self._transport)
            protocol.data_received(data)


class Line(asyncio.Protocol):
    """The encrypted side of a connection; whoever serves it sees plain bytes on a transport of its own."""

    def __init__(self, transport: asyncio.Transport, context: ssl.SSLContext, inner: Guest) -> None:
        self._transport = transport
        self._inner = inner
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._ready = False
        inner.connection_made(Plain(self, transport))

    def data_received(self, data: bytes) -> None:
        self._incoming.write(data)
        try:
            if not self._ready:
                self._tls.do_handshake()
                self._ready = True
            self._read()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # the alert that says why
            LOG.warning("%s: closed after bad TLS: %s", self._transport.get_extra_info("peername"), error)
            self._transport.close()

    def _read(self) -> None:
        while True:
            self._flush()
            data = self._tls.read(CHUNK)
            if not data:
                self._goodbye()
                return
            self._inner.data_received(data)

    def _goodbye(self) -> None:
        """Answered with ours, as TLS wants it."""
        self._tls.unwrap()
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._transport.write(self._outgoing.read())

    def write(self, data: bytes) -> None:
        self._tls.write(data)
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


class Plain(asyncio.Transport):
    """What a server writes to: encrypted on its way out."""

    def __init__(self, line: Line, outer: asyncio.Transport) -> None:
        super().__init__()
        self._line = line
        self._outer = outer

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._outer.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self._line.write(bytes(data))

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self._line.write(b"".join(list_of_data))

    def close(self) -> None:
        self._outer.close()

    def abort(self) -> None:
        self._outer.abort()

    def is_closing(self) -> bool:
        return self._outer.is_closing()

    def pause_reading(self) -> None:
        self._outer.pause_reading()

    def resume_reading(self) -> None:
        self._outer.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._outer.set_write_buffer_limits(high, low)

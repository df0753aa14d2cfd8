"""A Pulsar proxy in front of a broker that clients cannot reach: lookups are answered with a name of the inside."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

from mqclient import _impl, _schema

CONNECT, LOOKUP_RESPONSE = 2, 24
INSIDE = "pulsar://broker-inside.invalid:6650"


class PulsarProxy:
    """`with PulsarProxy(host, port) as proxy: proxy.url`. `proxied`: which broker connections were to be led to."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._codec: Any = _impl.select("pure").pulsar
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._sockets: list[socket.socket] = [self._listener]
        self.url = f"pulsar://127.0.0.1:{self._listener.getsockname()[1]}"
        self.proxied: list[str] = []

    def __enter__(self) -> PulsarProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._sockets += [near, far]
                threading.Thread(target=self._serve, args=(near, far), daemon=True).start()

    def _serve(self, near: socket.socket, far: socket.socket) -> None:
        """The first frame says where to; a connection that is not led on is for lookups."""
        size = int.from_bytes(_exactly(near, 4), "big")
        [(kind, body)] = self._codec.FrameReader().feed(size.to_bytes(4, "big") + _exactly(near, size))
        assert kind == CONNECT
        connect = _schema.read_command(kind, body)
        led = connect.proxy_to_broker_url
        if led:
            self.proxied.append(led)
            connect.ClearField("proxy_to_broker_url")
        far.sendall(self._codec.encode_command(kind, connect.SerializeToString()))
        threading.Thread(target=_copy, args=(near, far), daemon=True).start()
        if led:
            _copy(far, near)
        else:
            self._answer(far, near)

    def _answer(self, far: socket.socket, near: socket.socket) -> None:
        """Answers as they are; those of lookups name a broker that only the proxy finds."""
        reader = self._codec.FrameReader()
        with suppress(OSError):
            while data := far.recv(65536):
                for kind, body in (event for event in reader.feed(data) if len(event) == 2):
                    near.sendall(self._codec.encode_command(kind, self._named(kind, body)))
            near.shutdown(socket.SHUT_RDWR)

    def _named(self, kind: int, body: bytes) -> bytes:
        if kind != LOOKUP_RESPONSE:
            return body
        answer = _schema.read_command(kind, body)
        answer.brokerServiceUrl = INSIDE
        answer.proxy_through_service_url = True
        named: bytes = answer.SerializeToString()
        return named


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = source.recv(size - len(data))
        if not more:
            raise ConnectionError("the client left before it said CONNECT")
        data += more
    return data


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)

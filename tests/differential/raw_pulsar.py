"""Owns a client of bare Pulsar commands over a plain socket, for any broker."""

from __future__ import annotations

import socket
import time
from itertools import count
from typing import Any

from mqclient import _schema
from mqclient.broker.pulsar.session import NAMES
from tests.support.pulsar_world import command_class

TYPES = {name: number for number, name in NAMES.items()}


class RawPulsar:
    """One blocking connection; what comes is kept in `events`: (name, command), entries as (MESSAGE, entry)."""

    def __init__(self, codec: Any, url: str, *, connect: bool = True) -> None:
        host, _, port = url.partition("://")[2].rstrip("/").rpartition(":")
        self.codec = codec
        self._socket = socket.create_connection((host, int(port)), 10)
        self._reader = codec.FrameReader()
        self._requests = count(1)
        self.events: list[tuple[str, Any]] = []
        if connect:
            self.tell("CONNECT", client_version="raw", protocol_version=21)
            self.until(lambda name, _: name == "CONNECTED")

    def __enter__(self) -> RawPulsar:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def write(self, data: bytes) -> None:
        self._socket.sendall(data)

    def tell(self, kind: str, **fields: Any) -> None:
        body = command_class(TYPES[kind])(**fields).SerializeToString()
        self.write(self.codec.encode_command(TYPES[kind], body))

    def ask(self, kind: str, **fields: Any) -> tuple[str, Any]:
        """The one reply to a command with a request id."""
        request_id = next(self._requests)
        self.tell(kind, request_id=request_id, **fields)
        return self.until(lambda _, reply: getattr(reply, "request_id", None) == request_id)

    def until(self, wanted: Any, timeout: float = 10.0) -> tuple[str, Any]:
        """The first event that is wanted, taken out; those before it stay."""
        end = time.monotonic() + timeout
        while True:
            for place, event in enumerate(self.events):
                if wanted(*event):
                    return self.events.pop(place)
            self._socket.settimeout(max(0.01, end - time.monotonic()))
            self._read()

    def quiet(self, seconds: float = 0.3) -> list[tuple[str, Any]]:
        """All that came until nothing came for so long, taken out."""
        self._socket.settimeout(seconds)
        try:
            while True:
                self._read()
        except TimeoutError:
            events, self.events = self.events, []
            return events

    def _read(self) -> None:
        data = self._socket.recv(1 << 20)
        if not data:
            raise EOFError("the broker closed the connection")
        for event in self._reader.feed(data):
            if NAMES[event[0]] == "PING":
                self.write(self.codec.PONG_FRAME)
                continue
            cold = len(event) == 2 and isinstance(event[1], bytes)
            self.events.append((NAMES[event[0]], _schema.read_command(*event) if cold else event[1:]))

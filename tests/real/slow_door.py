"""Owns a door before a real RocketMQ behind which heartbeats arrive late and everything else on time (story 1)."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress

from mqclient.rocketmq.codes import Request

HOST = "127.0.0.1"


class SlowHeartbeats:
    """`with SlowHeartbeats(cluster.name_server, 0.5) as door: door.name_server`; routes name the door's own ports."""

    def __init__(self, name_server: str, late: float) -> None:
        self._late = late
        self._fronts: dict[str, str] = {}
        """The real address of a broker to the door's."""
        self._lock = threading.Lock()
        self._listeners: list[socket.socket] = []
        self._sockets: list[socket.socket] = []
        self.name_server = self._front(name_server)

    def __enter__(self) -> SlowHeartbeats:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in [*self._listeners, *self._sockets]:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _front(self, real: str) -> str:
        """The door's address for a server, opened at the first asking."""
        with self._lock:
            if real not in self._fronts:
                listener = socket.create_server((HOST, 0))
                self._listeners.append(listener)
                self._fronts[real] = f"{HOST}:{listener.getsockname()[1]}"
                threading.Thread(target=self._accept, args=(listener, real), daemon=True).start()
            return self._fronts[real]

    def _accept(self, listener: socket.socket, real: str) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                host, port = real.rsplit(":", 1)
                server = socket.create_connection((host, int(port)))
                self._sockets += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        """Frame by frame; a late one is sent by a timer, so that those behind it overtake it."""
        with suppress(OSError, EOFError):
            while True:
                frame = self._readdressed(_read(source, int.from_bytes(_read(source, 4), "big")))
                whole = len(frame).to_bytes(4, "big") + frame
                if _header(frame).get("code") == Request.HEART_BEAT and not _header(frame).get("flag"):
                    threading.Timer(self._late, self._send, (target, whole)).start()
                else:
                    self._send(target, whole)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def _send(self, target: socket.socket, data: bytes) -> None:
        with suppress(OSError), self._lock:
            target.sendall(data)

    def _readdressed(self, frame: bytes) -> bytes:
        """Routes lead to the door; header lengths stay, since addresses stand in bodies."""
        body_at = 4 + (int.from_bytes(frame[:4], "big") & 0xFFFFFF)
        body = frame[body_at:]
        if b'"brokerAddrs"' not in body:
            return frame
        for line in json.loads(body.replace(b"{0:", b'{"0":'))["brokerDatas"]:
            for real in line["brokerAddrs"].values():
                body = body.replace(real.encode(), self._front(real).encode())
        return frame[:body_at] + body


def _header(frame: bytes) -> dict[str, object]:
    header: dict[str, object] = json.loads(frame[4 : 4 + (int.from_bytes(frame[:4], "big") & 0xFFFFFF)])
    return header


def _read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data

"""Owns two unkind ways of being connected, for tests: bytes that leave one at a time, and doors that are shut."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any


class Trickle(asyncio.Transport):
    """What is written to it leaves a byte at a time, so long after each other; the rest is as the transport has it."""

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        super().__init__()
        self._transport = transport
        self._seconds = seconds
        self._waiting: deque[int] = deque()
        self._closing = False

    def write(self, data: Any) -> None:
        if self._closing:
            return
        idle = not self._waiting
        self._waiting.extend(memoryview(data).cast("B"))
        if idle and self._waiting:
            self._next()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        for data in list_of_data:
            self.write(data)

    def close(self) -> None:
        """When all has left."""
        self._closing = True
        if not self._waiting:
            self._transport.close()

    def abort(self) -> None:
        self._waiting.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        if name == "socket":  # nobody else writes to it
            return default
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def _next(self) -> None:
        if self._transport.is_closing():
            self._waiting.clear()
        if self._waiting:
            self._transport.write(bytes((self._waiting[0],)))
            self._waiting.popleft()
        if self._waiting:
            asyncio.get_running_loop().call_later(self._seconds, self._next)
        elif self._closing:
            self._transport.close()


class Shut(asyncio.Protocol):
    """In place of a visitor's protocol while nobody is let in: the connection ends at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()

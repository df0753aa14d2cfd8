"""Messages to bytes: the elements of a batch send; addresses to bytes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from socket import AF_INET, AF_INET6, inet_pton
from struct import Struct
from typing import TYPE_CHECKING, Final, final

from mqclient.errors import ConfigError

from .properties import checked_size

if TYPE_CHECKING:
    from typing_extensions import Buffer

MOST: Final = 16 * 1024 * 1024
_BEFORE_BODY: Final = Struct(">5i").pack  # size, magic, crc, flag, body size
_SIZE: Final = Struct(">h").pack


def element(body: bytes, properties: bytes, flag: int) -> bytes:
    """One element of a batch body; its magic and crc are 0, the broker makes its own."""
    size = 22 + len(body) + len(properties)
    return b"".join((_BEFORE_BODY(size, 0, 0, flag, len(body)), body, _SIZE(len(checked_size(properties))), properties))


@final
class BatchBuilder:
    """Gathers messages into the body of a batch send."""

    __slots__ = ("_parts", "_size")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def size(self) -> int:
        return self._size

    @property
    def count(self) -> int:
        return len(self._parts)

    def add(self, body: Buffer, properties: Buffer = b"", flag: int = 0) -> int:
        """Append one; gives the size so far."""
        if not -(2**31) <= flag < 2**31:
            raise ConfigError(f"flag {flag} is no 32-bit integer")
        part = element(as_bytes(body), as_bytes(properties), flag)
        self._parts.append(part)
        self._size += len(part)
        return self._size

    def add_many(
        self,
        bodies: Sequence[Buffer],
        properties: Sequence[Buffer],
        start: int = 0,
        max_size: int = MOST,
        max_count: int = sys.maxsize,
        flags: Sequence[int] | None = None,
    ) -> int:
        """Append messages from `start` on while the batch stays within its limits; gives the first not added."""
        if start < 0 or not len(properties) == len(bodies if flags is None else flags) == len(bodies):
            raise ConfigError("as many properties and flags as bodies are wanted, and a place among them")
        for place in range(start, len(bodies)):
            size = 22 + memoryview(bodies[place]).nbytes + memoryview(properties[place]).nbytes
            if self.count >= max_count or (self.count and self._size + size > max_size):
                return place
            self.add(bodies[place], properties[place], 0 if flags is None else flags[place])
        return max(start, len(bodies))

    def seal(self) -> bytes:
        """The body; the builder is empty again."""
        body = b"".join(self._parts)
        self._parts, self._size = [], 0
        return body


def as_bytes(data: Buffer) -> bytes:
    """Bytes of anything bytes-like; an int or a str is none."""
    return data if isinstance(data, bytes) else bytes(memoryview(data))


def address(ip: str) -> bytes:
    """4 or 16 bytes; ConfigError if the text is no IP address."""
    try:
        return inet_pton(AF_INET6 if ":" in ip else AF_INET, ip)
    except (OSError, ValueError):
        raise ConfigError(f"{ip!r} is no IP address") from None

"""Ids of messages: the producer's unique keys and the broker's offset ids."""

from __future__ import annotations

import re
import time
from socket import AF_INET, AF_INET6, inet_ntop
from struct import error, pack, unpack
from typing import Final, final

from mqclient.errors import ConfigError

from .batch import address

_hex: Final = re.compile(r"(?:[0-9A-Fa-f]{32}|[0-9A-Fa-f]{56})\Z").match
LATE: Final = -1_000_000  # a clock that went back less than this counts as the month's first moment


@final
class UniqueKeys:
    """Makes the unique keys of one process."""

    __slots__ = ("_counter", "_next_month", "_prefix", "_start")

    def __init__(self, ip: bytes, pid: int, salt: int, counter: int = 0) -> None:
        if len(ip) not in (4, 16):
            raise ConfigError(f"an IP address has 4 or 16 bytes, not {len(ip)}")
        self._prefix = ip + pack(">HI", pid & 0xFFFF, salt & 0xFFFFFFFF)
        self._counter = counter
        self._start = 0
        self._next_month = 0

    def next(self, now_ms: int) -> str:
        """The next key, upper-case hex."""
        if now_ms >= self._next_month:
            self._start, self._next_month = _month(now_ms)
        since = now_ms - self._start
        if LATE < since < 0:
            since = 0
        counter, self._counter = self._counter, self._counter + 1
        return (self._prefix + pack(">IH", since & 0xFFFFFFFF, counter & 0xFFFF)).hex().upper()


def _month(now_ms: int) -> tuple[int, int]:
    """First moment of the local month that holds `now_ms`, and of the next, in ms."""
    now = time.localtime(now_ms // 1000)
    first = time.mktime((now.tm_year, now.tm_mon, 1, 0, 0, 0, 0, 0, -1))
    following = time.mktime((now.tm_year, now.tm_mon + 1, 1, 0, 0, 0, 0, 0, -1))
    return int(first) * 1000, int(following) * 1000


def parse_unique_key(text: str) -> tuple[bytes, int, int, int, int]:
    """(ip, pid, salt, ms since the month began, counter)."""
    data = _unhex(text, "unique key")
    pid, salt, since, counter = unpack(">HIIH", data[-12:])
    return data[:-12], pid, salt, since, counter


def offset_id(host: str, port: int, physical_offset: int) -> str:
    """The broker's id of a message."""
    try:
        return (address(host) + pack(">iq", port, physical_offset)).hex().upper()
    except error as cause:
        raise ConfigError(f"port {port} or offset {physical_offset} does not fit an offset id") from cause


def offset_ids(host: str, port: int, physical_offset: int, ends: bytes) -> str:
    """The broker's ids of messages that lie in a row from there on, with commas between."""
    count = len(ends) // 4
    if count == 0 and not ends:
        offset_id(host, port, physical_offset)
        return ""
    try:
        behind = unpack(f"={count}I", ends)
        if not -(2**63) <= physical_offset + max(behind) < 2**63:
            raise error("beyond 64 bits")
    except (error, IndexError) as cause:
        raise ConfigError(f"{count} messages behind {physical_offset}: their ends do not fit offset ids") from cause
    prefix = offset_id(host, port, physical_offset)[:-16]
    places = pack(f">{count}q", physical_offset, *map(physical_offset.__add__, behind[:-1]))
    return prefix + places.hex(",", 8).upper().replace(",", "," + prefix)


def parse_offset_id(text: str) -> tuple[str, int, int]:
    """(host, port, physical offset)."""
    data = _unhex(text, "offset id")
    ip = inet_ntop(AF_INET if len(data) == 16 else AF_INET6, data[:-12])
    port, physical_offset = unpack(">iq", data[-12:])
    return ip, port, physical_offset


def _unhex(text: str, what: str) -> bytes:
    if not _hex(text):
        raise ConfigError(f"{text!r} is no {what}")
    return bytes.fromhex(text)

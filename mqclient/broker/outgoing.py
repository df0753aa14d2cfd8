"""Owns how what a turn has to say goes to a transport: small parts together, large ones from where they lie."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final

from mqclient.core.link import Buffer, unsent

LARGE: Final = 1 << 18
"""A part of so many bytes is worth a system call of its own: before CPython 3.12 `writelines` copies all of them into
one. Below that the calls cost more, here and where each wakes a reader for less (measured with parts of 128 KiB)."""
WORTH: Final = 1 << 16
"""So many bytes are worth to be sent from where they lie, in one system call, before the transport has its turn."""
MOST: Final = 64
"""Parts of one such call."""
SendNow = Callable[[int, Sequence[Buffer]], int]


def write_parts(transport: asyncio.Transport, parts: Iterable[Buffer], send_now: SendNow | None = None) -> None:
    """In order. With the codec's `send_now` much of it is sent at once where the transport is a plain socket's: its
    `writelines` would copy all of it, and the memory for that may be new at every turn, page by page."""
    if send_now is not None and os.name == "posix":
        parts = left_by(transport, list(parts), send_now)
    for large, run in groupby(parts, lambda part: len(part) >= LARGE):
        if large:
            for part in run:
                transport.write(part)
        else:
            transport.writelines(run)


def left_by(transport: asyncio.Transport, parts: list[Buffer], send_now: SendNow) -> list[Buffer]:
    """What is left after the socket took what it could; an error is left for the transport to meet."""
    if sum(map(len, parts)) < WORTH or transport.get_extra_info("sslcontext") is not None:
        return parts
    sock = transport.get_extra_info("socket")
    if sock is None or transport.get_write_buffer_size():
        return parts
    while parts:
        given = parts[:MOST]
        sent = send_now(sock.fileno(), given)
        if sent > 0:
            parts = unsent(parts, sent)
        if sent < sum(map(len, given)):
            break
    return parts

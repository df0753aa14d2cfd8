"""Owns how what a turn has to say goes to a transport: small parts together, large ones from where they lie."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import groupby
from typing import Final

Buffer = bytes | bytearray | memoryview

LARGE: Final = 1 << 18
"""A part of so many bytes is worth a system call of its own: before CPython 3.12 `writelines` copies all of them into
one. Below that the calls cost more, here and where each wakes a reader for less (measured with parts of 128 KiB)."""


def write_parts(transport: asyncio.Transport, parts: Iterable[Buffer]) -> None:
    """In order."""
    for large, run in groupby(parts, lambda part: len(part) >= LARGE):
        if large:
            for part in run:
                transport.write(part)
        else:
            transport.writelines(run)
